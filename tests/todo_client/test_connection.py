"""The client against a server that says what no good server says."""

import asyncio
import json
from typing import Any

import pytest

from tests.todo_client.server import END, EVENTS, answering, chunk, whole
from tests.waiting import WAIT_SECONDS
from todo_client.chatkit import ChatKit, user_input
from todo_client.connection import ApiError, ConnectionLost, RunEvent
from todo_client.runs import Events, Runs
from todo_client.sse import EventParser

SENT = [RunEvent(1, "a", {"text": "Zażółć \u2028 🥛"}), RunEvent(None, "b", {}), RunEvent(12, "c", {"n": [1, 2]})]


def frame(event: RunEvent, *, end: bytes = b"\n", data: bytes = b"data: ", lines: int = 1) -> bytes:
    number = [b"id: %d" % event.number] if event.number else []
    name = b"event: " + event.name.encode()
    pieces = json.dumps(event.data, ensure_ascii=False).encode().split(b" ", lines - 1)
    return end.join([*number, name, *(data + piece for piece in pieces), b"", b""])


FORMS = {
    "as our server writes": b"".join(frame(event) for event in SENT),
    "CRLF": b"".join(frame(event, end=b"\r\n") for event in SENT),
    "no space": b"".join(frame(event, data=b"data:") for event in SENT),
    "comments": b": keep-alive\n" + b": keep-alive\n".join(frame(event) for event in SENT),
    "other fields": b"retry: 3\n\nid: 7\n\n" + b"".join(b"foo\nretry: 1\n" + frame(event) for event in SENT),
    "several lines": b"".join(frame(event, lines=2) for event in SENT),
}


async def read(opened: Events) -> list[RunEvent]:
    async with opened as events:
        return [event async for event in events]


@pytest.mark.parametrize("form", FORMS)
def test_events_are_the_same_wherever_their_bytes_are_cut(form: str) -> None:
    stream = FORMS[form]
    for cut in range(len(stream) + 1):
        parser = EventParser()
        found = [event for piece in (stream[:cut], stream[cut:]) for event in parser.feed(piece)]
        assert found == SENT
        assert not parser.is_incomplete


async def test_message_is_sent_with_its_key_and_its_events_are_read() -> None:
    stream = FORMS["comments"]
    pieces = [chunk(stream[at : at + 7]) for at in range(0, len(stream), 7)]
    async with (
        answering(EVENTS, *pieces, END, closes=False) as server,
        Runs(server.url, token="t", headers={"X-Time-Zone": "Europe/Prague"}) as runs,
    ):
        assert await read(runs.interact("one", "hello", key="k")) == SENT
    head = server.heads[0].lower()
    assert head.startswith("post /chats/one/interactions http/1.1\r\n")
    assert {"idempotency-key: k", "authorization: bearer t", "x-time-zone: europe/prague"} <= {*head.splitlines()}
    assert server.bodies == [{"user_message": "hello"}]


async def test_chatkit() -> None:
    async with (
        answering(EVENTS, chunk(FORMS["as our server writes"]), END) as server,
        ChatKit(server.url) as chat,
        chat.open("threads.create", {"detached": True}, input=user_input("hello")) as events,
    ):
        assert [event async for event in events] == [event.data for event in SENT]
    message = {"content": [{"type": "input_text", "text": "hello"}], "attachments": [], "inference_options": {}}
    assert server.bodies == [
        {"type": "threads.create", "params": {"input": message}, "metadata": {"detached": True}},
    ]


async def test_event_is_there_as_soon_as_it_was_sent_and_leaving_closes_the_connection() -> None:
    async with answering(EVENTS, chunk(FORMS["CRLF"]), closes=False) as server, Runs(server.url) as runs:
        async with runs.interact("one", "hello") as events:
            assert await anext(events) == SENT[0]
            assert not server.left.is_set()
        async with asyncio.timeout(WAIT_SECONDS):
            await server.left.wait()


@pytest.mark.parametrize(
    ("rest", "ends"),
    [
        (b"", False),
        (b"data: {}\n", True),
        (b"data: {", True),
        (b"id", True),
        (b"\r", True),
        (b"data: {\n\n", True),
        (b"data: \xff\n\n", True),
    ],
)
async def test_stream_that_breaks_off_is_a_lost_connection(rest: bytes, ends: bool) -> None:
    sent = [EVENTS, chunk(FORMS["comments"]), *([chunk(rest)] if rest else []), *([END] if ends else [])]
    received: list[RunEvent] = []
    async with answering(*sent) as server, Runs(server.url) as runs:
        with pytest.raises(ConnectionLost, match="connection to the server is lost"):
            async with runs.interact("one", "hello") as events:
                async for event in events:
                    received.append(event)  # noqa: PERF401 - what came before the end
    assert received == SENT


async def test_response_that_does_not_come_is_a_lost_connection() -> None:
    async with answering(EVENTS, closes=False) as silent, Runs(silent.url, timeout=0.1) as runs:
        with pytest.raises(ConnectionLost):
            await read(runs.interact("one", "hello"))
    async with Runs(silent.url) as runs:
        for operation in (runs.compact("one"), read(runs.interact("one", "hello"))):
            with pytest.raises(ConnectionLost):
                await operation
    for pieces in ([], [whole(200, b'{"id": "thr')[:-2]], [whole(200, b'{"id": "thr')]):
        async with answering(*pieces) as server, ChatKit(server.url) as chat:
            with pytest.raises(ConnectionLost):
                await chat.ask("threads.get_by_id", thread_id="thr_1")


async def test_error_of_the_reader_is_its_own() -> None:
    async with answering(EVENTS, chunk(FORMS["CRLF"]), END) as server, Runs(server.url) as runs:
        with pytest.raises(ValueError, match="mine"):
            async with runs.interact("one", "hello") as events:
                await anext(events)
                raise ValueError("mine")


NO_SENTENCE = "The server answered with status {}. Is this the assistant's address?"


@pytest.mark.parametrize(
    ("status", "body", "kind", "sentence"),
    [
        (400, b'{"error": "It is caf\xc3\xa9 time."}', "application/json", "It is café time."),
        (503, b'{"error": "Wait."}', "application/json", "Wait."),
        (502, b"<h1>Bad gateway</h1>", "text/html", NO_SENTENCE),
        (502, b"", "", NO_SENTENCE),
        (404, b"[]", "application/json", NO_SENTENCE),
        (404, b'{"detail": "Not Found"}', "application/json", NO_SENTENCE),
        (500, b"\xff", "application/json", NO_SENTENCE),
        (307, b"", "text/plain", NO_SENTENCE),
        (200, b"<h1>Sign in</h1>", "text/html", NO_SENTENCE),
        (204, b"", "", NO_SENTENCE),
    ],
)
async def test_rejection_is_raised_with_its_sentence(status: int, body: bytes, kind: str, sentence: str) -> None:
    async with answering(whole(status, body, kind)) as server, Runs(server.url) as runs:
        for operation in (runs.branch("one", None), read(runs.interact("one", "hello"))):
            with pytest.raises(ApiError) as rejected:
                await operation
            assert (rejected.value.status, str(rejected.value)) == (status, sentence.format(status))


async def test_token_goes_nowhere_that_a_response_names() -> None:
    async with answering(whole(200, b"{}")) as other:
        moved = b"HTTP/1.1 307 X\r\nLocation: %b/chatkit\r\nContent-Length: 0\r\n\r\n" % other.url.encode()
        async with answering(moved) as server, ChatKit(server.url, token="secret") as chat:
            with pytest.raises(ApiError) as rejected:
                await chat.ask("threads.list")
        assert rejected.value.status == 307
        assert other.heads == []


@pytest.mark.parametrize("url", ["https://todo.example", "HTTPS://todo.example"])
async def test_certificate_is_checked_however_its_address_is_written(url: str) -> None:
    made: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx2.AsyncClient", lambda **options: made.append(options))
        Runs(url, token="secret")
    assert [(one["verify"], one["trust_env"]) for one in made] == [(True, True)]
