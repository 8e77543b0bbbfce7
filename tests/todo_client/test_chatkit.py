"""The client against a server that says what no good server says."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from chatkit.types import ChatKitReq
from pydantic import TypeAdapter

from tests.todo_client.server import END, EVENTS, answering, chunk, whole
from todo_client.chatkit import ChatKit, Events, Page
from todo_client.connection import ApiError, ConnectionLost
from todo_client.sse import EventParser

TOLD: list[dict[str, Any]] = [{"type": "a", "text": "Zażółć \u2028 🥛"}, {"type": "b"}, {"type": "c", "n": [1, 2]}]
JSON = [json.dumps(event, ensure_ascii=False).encode() for event in TOLD]
FORMS = {
    "as our server writes": b"".join(b"data: %b\n\n" % data for data in JSON),
    "CRLF": b"".join(b"data: %b\r\n\r\n" % data for data in JSON),
    "no space": b"".join(b"data:%b\n\n" % data for data in JSON),
    "comments": b": hello\n\n" + b"".join(b":\n\ndata: %b\n: still here\n\n:\n" % data for data in JSON),
    "other fields": b"retry: 3\n\n" + b"".join(b"event: x\nid: 1\ndata: %b\nfoo\n\n\n" % data for data in JSON),
    "several lines": b"".join(b"data: %b\n\n" % b"\ndata: ".join(data.split(b" ", 1)) for data in JSON),
}


async def read(events: Events) -> list[dict[str, Any]]:
    async with events as told:
        return [event async for event in told]


@pytest.mark.parametrize("form", FORMS)
def test_events_are_the_same_wherever_their_bytes_are_cut(form: str) -> None:
    stream = FORMS[form]
    for cut in range(len(stream) + 1):
        parser = EventParser()
        pieces = (stream[:cut], stream[cut:])
        assert [json.loads(one.data) for piece in pieces for one in parser.feed(piece)] == TOLD
        assert not parser.is_incomplete


@pytest.mark.parametrize("size", [1, 2, 7, 1_000_000])
@pytest.mark.parametrize("form", FORMS)
async def test_events_arrive_in_chunks_of_any_size(form: str, size: int) -> None:
    stream = FORMS[form]
    chunks = [chunk(stream[at : at + size]) for at in range(0, len(stream), size)]
    async with answering(EVENTS, *chunks, END, closes=False) as server, ChatKit(server.url) as chat:
        assert await read(chat.create_thread("hello")) == TOLD


async def test_an_event_is_there_as_soon_as_it_was_sent_and_leaving_closes_the_connection() -> None:
    async with answering(EVENTS, chunk(FORMS["CRLF"]), closes=False) as server, ChatKit(server.url) as chat:
        async with chat.create_thread("hello") as events:
            assert await anext(events) == TOLD[0]
            assert not server.left.is_set()
        async with asyncio.timeout(5):
            await server.left.wait()


@pytest.mark.parametrize(
    ("rest", "ends"),
    [
        (b"", False),
        (b"data: {}\n", True),
        (b"data: {", True),
        (b"da", True),
        (b"\r", True),
        (b"data: {\n\n", True),
        (b"data: \xff\n\n", True),
    ],
)
async def test_a_stream_that_ends_without_its_end_is_told_after_what_came(rest: bytes, ends: bool) -> None:
    sent = [EVENTS, chunk(FORMS["comments"]), *([chunk(rest)] if rest else []), *([END] if ends else [])]
    told: list[dict[str, Any]] = []
    async with answering(*sent) as server, ChatKit(server.url) as chat:
        with pytest.raises(ConnectionLost, match="connection to the server is lost"):
            async with chat.create_thread("hello") as events:
                async for event in events:
                    told.append(event)  # noqa: PERF401 - what came before the end
    assert told == TOLD


async def test_an_answer_that_does_not_come_is_a_lost_connection() -> None:
    async with answering(EVENTS, closes=False) as silent, ChatKit(silent.url, timeout=0.1) as chat:
        with pytest.raises(ConnectionLost):
            await read(chat.create_thread("hello"))
    async with ChatKit(silent.url) as chat:
        for operation in (chat.get_thread("thr_1"), read(chat.create_thread("hello"))):
            with pytest.raises(ConnectionLost):
                await operation
    async with answering(whole(200, b'{"id": "thr')[:-2]) as server, ChatKit(server.url) as chat:
        with pytest.raises(ConnectionLost):
            await chat.get_thread("thr_1")
    async with answering(whole(200, b'{"id": "thr')) as server, ChatKit(server.url) as chat:
        with pytest.raises(ConnectionLost):
            await chat.get_thread("thr_1")


async def test_what_the_reader_does_wrong_is_its_own() -> None:
    async with answering(EVENTS, chunk(FORMS["CRLF"]), END) as server, ChatKit(server.url) as chat:
        with pytest.raises(ValueError, match="mine"):
            async with chat.create_thread("hello") as events:
                await anext(events)
                raise ValueError("mine")


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 429, 503])
async def test_a_refusal_is_the_servers_sentence(status: int) -> None:
    async with answering(whole(status, b'{"error": "It is caf\xc3\xa9 time."}')) as server, ChatKit(server.url) as chat:
        for operation in (chat.get_thread("thr_1"), read(chat.retry_after_item("thr_1", "msg_1"))):
            with pytest.raises(ApiError, match="café") as refused:
                await operation
            assert (refused.value.status, str(refused.value)) == (status, "It is café time.")


NO_SENTENCE = "The server answered with status {}. Is this the assistant's address?"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (502, b"<h1>Bad gateway</h1>", "text/html"),
        (502, b"", ""),
        (404, b"[]", "application/json"),
        (404, b'{"detail": "Not Found"}', "application/json"),
        (500, b"\xff", "application/json"),
        (307, b"", "text/plain"),
        (200, b"<h1>Sign in</h1>", "text/html"),
        (204, b"", "application/json"),
    ],
)
async def test_an_answer_that_is_not_chatkits_is_named_by_its_status(status: int, body: bytes, kind: str) -> None:
    async with answering(whole(status, body, kind)) as server, ChatKit(server.url) as chat:
        for operation in (chat.get_thread("thr_1"), read(chat.create_thread("hello"))):
            with pytest.raises(ApiError) as refused:
                await operation
            assert str(refused.value) == NO_SENTENCE.format(status)


ACTION = {"type": "tick", "payload": {"id": 1}}
STREAMING: dict[str, Callable[[ChatKit], Events]] = {
    "threads.create": lambda chat: chat.create_thread("hello"),
    "threads.add_user_message": lambda chat: chat.add_user_message("thr_1", "hello"),
    "threads.retry_after_item": lambda chat: chat.retry_after_item("thr_1", "msg_1"),
    "threads.custom_action": lambda chat: chat.custom_action("thr_1", "wid_1", ACTION),
}
OTHERS: dict[str, Callable[[ChatKit], Coroutine[Any, Any, Any]]] = {
    "threads.sync_custom_action": lambda chat: chat.sync_custom_action("thr_1", "wid_1", ACTION),
    "threads.get_by_id": lambda chat: chat.get_thread("thr_1"),
    "threads.list": lambda chat: chat.list_threads(limit=2, order="asc", after="thr_0"),
    "items.list": lambda chat: chat.list_items("thr_1"),
    "threads.update": lambda chat: chat.update_thread("thr_1", "Milk"),
    "threads.delete": lambda chat: chat.delete_thread("thr_1"),
    "items.feedback": lambda chat: chat.feedback("thr_1", ["msg_1"], "positive"),
}


@pytest.mark.parametrize("kind", [*STREAMING, *OTHERS])
async def test_each_operation_asks_what_chatkit_knows(kind: str) -> None:
    page = b'{"data": [{"id": "msg_1"}], "has_more": false}'
    answer = [EVENTS, END] if kind in STREAMING else [whole(200, page)]
    async with answering(*answer) as server, ChatKit(server.url) as chat:
        if kind in STREAMING:
            assert await read(STREAMING[kind](chat)) == []
        else:
            found = await OTHERS[kind](chat)
            assert kind not in ("threads.list", "items.list") or found == Page([{"id": "msg_1"}], False, None)
    (body,) = server.bodies
    parsed = TypeAdapter[Any](ChatKitReq).validate_python(body)
    assert body["type"] == parsed.type == kind
    assert parsed.model_dump(mode="json", exclude_unset=True)["params"] == body["params"]


async def test_a_token_and_headers_go_with_every_request() -> None:
    headers = {"X-Time-Zone": "Europe/Prague"}
    async with (
        answering(EVENTS, END) as server,
        ChatKit(server.url, token="abc", headers=headers) as chat,
    ):
        await read(chat.create_thread("hello"))
        await read(chat.add_user_message("thr_1", "hello"))
    for head in server.heads:
        assert head.startswith("POST /chatkit HTTP/1.1\r\n")
        for line in ("Authorization: Bearer abc", "X-Time-Zone: Europe/Prague", "Content-Type: application/json"):
            assert line in head
    assert len(server.heads) == 2


async def test_a_token_goes_nowhere_that_an_answer_names() -> None:
    async with answering(whole(200, b"{}")) as other:
        moved = b"HTTP/1.1 307 X\r\nLocation: %b/chatkit\r\nContent-Length: 0\r\n\r\n" % other.url.encode()
        async with answering(moved) as server, ChatKit(server.url, token="secret") as chat:
            with pytest.raises(ApiError) as refused:
                await chat.list_threads()
        assert refused.value.status == 307
        assert other.heads == []
