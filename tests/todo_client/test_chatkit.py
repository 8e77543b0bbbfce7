"""The client against a server that says what no good server says."""

import asyncio
import json
from typing import Any

import pytest

from tests.todo_client.server import END, EVENTS, answering, chunk, whole
from todo_client.chatkit import ChatKit, Events, user_input
from todo_client.connection import ApiError, ConnectionLost

HELLO = user_input("hello")
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


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
@pytest.mark.parametrize("form", FORMS)
async def test_events_arrive_in_chunks_of_any_size(form: str, size: int) -> None:
    stream = FORMS[form]
    chunks = [chunk(stream[at : at + size]) for at in range(0, len(stream), size)]
    async with answering(EVENTS, *chunks, END, closes=False) as server, ChatKit(server.url) as chat:
        assert await read(chat.open("threads.create", input=HELLO)) == TOLD


async def test_an_event_is_there_as_soon_as_it_was_sent_and_leaving_closes_the_connection() -> None:
    async with answering(EVENTS, chunk(FORMS["CRLF"]), closes=False) as server, ChatKit(server.url) as chat:
        async with chat.open("threads.create", input=HELLO) as events:
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
            async with chat.open("threads.create", input=HELLO) as events:
                async for event in events:
                    told.append(event)  # noqa: PERF401 - what came before the end
    assert told == TOLD


async def test_an_answer_that_does_not_come_is_a_lost_connection() -> None:
    async with answering(EVENTS, closes=False) as silent, ChatKit(silent.url, timeout=0.1) as chat:
        with pytest.raises(ConnectionLost):
            await read(chat.open("threads.create", input=HELLO))
    async with ChatKit(silent.url) as chat:
        for operation in (
            chat.ask("threads.get_by_id", thread_id="thr_1"),
            read(chat.open("threads.create", input=HELLO)),
        ):
            with pytest.raises(ConnectionLost):
                await operation
    async with answering(whole(200, b'{"id": "thr')[:-2]) as server, ChatKit(server.url) as chat:
        with pytest.raises(ConnectionLost):
            await chat.ask("threads.get_by_id", thread_id="thr_1")
    async with answering(whole(200, b'{"id": "thr')) as server, ChatKit(server.url) as chat:
        with pytest.raises(ConnectionLost):
            await chat.ask("threads.get_by_id", thread_id="thr_1")


async def test_what_the_reader_does_wrong_is_its_own() -> None:
    async with answering(EVENTS, chunk(FORMS["CRLF"]), END) as server, ChatKit(server.url) as chat:
        with pytest.raises(ValueError, match="mine"):
            async with chat.open("threads.create", input=HELLO) as events:
                await anext(events)
                raise ValueError("mine")


@pytest.mark.parametrize("status", [400, 503])
async def test_a_refusal_is_the_servers_sentence(status: int) -> None:
    async with answering(whole(status, b'{"error": "It is caf\xc3\xa9 time."}')) as server, ChatKit(server.url) as chat:
        for operation in (
            chat.ask("threads.get_by_id", thread_id="thr_1"),
            read(chat.open("threads.retry_after_item", thread_id="thr_1", item_id="msg_1")),
        ):
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
        (204, b"", ""),
    ],
)
async def test_an_answer_that_is_not_chatkits_is_named_by_its_status(status: int, body: bytes, kind: str) -> None:
    async with answering(whole(status, body, kind)) as server, ChatKit(server.url) as chat:
        for operation in (
            chat.ask("threads.get_by_id", thread_id="thr_1"),
            read(chat.open("threads.create", input=HELLO)),
        ):
            with pytest.raises(ApiError) as refused:
                await operation
            assert str(refused.value) == NO_SENTENCE.format(status)


async def test_a_token_and_headers_go_with_every_request() -> None:
    headers = {"X-Time-Zone": "Europe/Prague"}
    async with (
        answering(EVENTS, END) as server,
        ChatKit(server.url, token="abc", headers=headers) as chat,
    ):
        await read(chat.open("threads.create", input=HELLO))
        await read(chat.open("threads.add_user_message", thread_id="thr_1", input=HELLO))
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
                await chat.ask("threads.list")
        assert refused.value.status == 307
        assert other.heads == []
