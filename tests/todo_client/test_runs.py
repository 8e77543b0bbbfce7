"""The client of the run API against a server that says what no good server says."""

import json
from typing import Any

import pytest

from tests.todo_client.server import END, EVENTS, answering, chunk, whole
from todo_client.connection import ApiError, ConnectionLost
from todo_client.runs import RunEvent, Runs
from todo_client.sse import EventParser

TOLD = [RunEvent(1, "a", {"text": "Zażółć \u2028 🥛"}), RunEvent(None, "b", {}), RunEvent(12, "c", {"n": [1, 2]})]


def frame(event: RunEvent, *, end: bytes = b"\n", data: bytes = b"data: ") -> bytes:
    number = [b"id: %d" % event.number] if event.number else []
    name = b"event: " + event.name.encode()
    return end.join([*number, name, data + json.dumps(event.data, ensure_ascii=False).encode(), b"", b""])


FORMS = {
    "as our server writes": b"".join(frame(event) for event in TOLD),
    "CRLF": b"".join(frame(event, end=b"\r\n") for event in TOLD),
    "no space": b"".join(frame(event, data=b"data:") for event in TOLD),
    "comments": b": keep-alive\n" + b": keep-alive\n".join(frame(event) for event in TOLD),
    "other fields": b"retry: 3\n\nid: 7\n\n" + b"".join(b"foo\nretry: 1\n" + frame(event) for event in TOLD),
}


@pytest.mark.parametrize("form", FORMS)
def test_events_are_the_same_wherever_their_bytes_are_cut(form: str) -> None:
    stream = FORMS[form]
    for cut in range(len(stream) + 1):
        parser = EventParser()
        found = [event for piece in (stream[:cut], stream[cut:]) for event in parser.feed(piece)]
        assert [RunEvent(int(one.id) if one.id else None, one.name, json.loads(one.data)) for one in found] == TOLD
        assert not parser.is_incomplete


async def test_a_message_is_sent_with_its_key_and_its_events_are_read() -> None:
    async with (
        answering(EVENTS, chunk(FORMS["comments"]), END) as server,
        Runs(server.url, token="t") as runs,
        runs.interact("one", "hello", key="k") as events,
    ):
        assert [event async for event in events] == TOLD
    assert server.heads[0].startswith("POST /chats/one/interactions HTTP/1.1\r\n")
    assert {"idempotency-key: k", "authorization: Bearer t"} <= {
        line.replace("Idempotency-Key", "idempotency-key").replace("Authorization", "authorization")
        for line in server.heads[0].splitlines()
    }
    assert server.bodies == [{"user_message": "hello"}]


async def test_a_refusal_is_raised_with_its_sentence() -> None:
    refusal = whole(409, b'{"error": "Wait."}')
    async with answering(refusal) as server, Runs(server.url) as runs:
        with pytest.raises(ApiError, match="Wait") as refused:
            async with runs.interact("one", "hello"):
                pass
        assert refused.value.status == 409


@pytest.mark.parametrize("pieces", [[], [EVENTS], [EVENTS, chunk(b"id: 1\nevent: a\nda")], [EVENTS, chunk(b"id"), END]])
async def test_a_stream_that_breaks_off_is_a_lost_connection(pieces: Any) -> None:
    async with answering(*pieces) as server, Runs(server.url) as runs:
        with pytest.raises(ConnectionLost):
            async with runs.interact("one", "hello") as events:
                async for _ in events:
                    pass


@pytest.mark.parametrize("url", ["https://todo.example", "HTTPS://todo.example"])
async def test_a_certificate_is_looked_at_however_its_address_is_written(url: str) -> None:
    made: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx2.AsyncClient", lambda **options: made.append(options))
        Runs(url, token="secret")
    assert [(one["verify"], one["trust_env"]) for one in made] == [(True, True)]
