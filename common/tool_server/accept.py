"""Clients that send fewer media types in Accept than MCP asks for: they are answered in one that they do accept.

The MCP library (2.3) answers 406 without `application/json`, although RFC 9110 takes a missing header for `*/*`, and
although a client that accepts only `text/event-stream` can be sent its JSON as an event.
"""

from collections.abc import Iterable

from starlette.types import Message, Send

Headers = list[tuple[bytes, bytes]]
_BOTH = (b"accept", b"application/json, text/event-stream")
_JSON, _EVENTS = b"application/json", b"text/event-stream"


def with_both(headers: Headers) -> tuple[Headers, bool]:
    """The headers with an Accept that the library takes, and whether the client accepts events alone."""
    accepted = {part.split(b";")[0].strip().lower() for part in b",".join(_values(headers)).split(b",")} - {b""}
    if accepted & {b"*/*", b"application/*", _JSON}:
        return headers, False
    as_events = bool(accepted & {b"text/*", _EVENTS})
    if accepted and not as_events:
        return headers, False
    return [*((name, value) for name, value in headers if name != b"accept"), _BOTH], as_events


def _values(headers: Headers) -> Iterable[bytes]:
    return (value for name, value in headers if name == b"accept")


def sending_events(send: Send) -> Send:
    """Sends a JSON answer as one server-sent event; an HTTP error is sent as it is."""
    start: Message | None = None
    body = bytearray()

    async def send_event(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] == 200 and _is_json(message["headers"]):
            start = message
        elif start is None or message["type"] != "http.response.body":
            await send(message)
        else:
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            event = b"event: message\r\ndata: " + bytes(body) + b"\r\n\r\n"
            replaced = (b"content-type", b"content-length")
            rest = [(name, value) for name, value in start["headers"] if name.lower() not in replaced]
            length = (b"content-length", str(len(event)).encode())
            await send({**start, "headers": [*rest, (b"content-type", _EVENTS), length]})
            await send({"type": "http.response.body", "body": event})

    return send_event


def _is_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(_JSON) for name, value in headers)
