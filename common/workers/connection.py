"""One HTTP connection: uvicorn's, with an end to what a client may send and to how long it may take.

What is used of uvicorn's inside is in this file alone; tests/api/test_connections.py tells when it changes.
"""

import asyncio
import json
import weakref
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from common.workers.watch import Watch

_LINGER_SECONDS = 2.0  # after the last that came: many clients read the refusal when they have sent all

_DROP_AGAIN_SECONDS = 0.1  # between two looks at what it sends
_RETRY_SECONDS = 5
_SMALL = 4_096  # bytes of a request: what people and programs send most


class _Refusal(NamedTuple):
    status: HTTPStatus
    sentence: str


class _Stop(Exception):
    """Ends the parser in the middle of what it was given."""


_INVALID = _Refusal(HTTPStatus.BAD_REQUEST, "This is not a valid HTTP request.")


class _Flow(FlowControl):
    """Lets nothing more come while what came before waits for its turn, though the application wants more."""

    def __init__(self, transport: asyncio.Transport, connection: "Connection") -> None:
        super().__init__(transport)
        self._connection = weakref.ref(connection)  # or they would keep each other until garbage is looked for

    def resume_reading(self) -> None:
        connection = self._connection()
        if self.read_paused and connection is not None and connection.waits_for_its_turn():
            self.read_paused = False
        else:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """Counts what arrives while it arrives: what is too much is refused before it is kept."""

    def __init__(self, watch: Watch, **given: Any) -> None:
        super().__init__(**given)
        self._watch = watch
        self._limits = watch.limits
        self._deaf = False  # what still comes is not read
        self._ends_at: float | None = None
        self._ends_by = 0.0  # whatever still comes
        self._part: Literal["head", "body"] | None = None  # of a request that is not whole yet
        self._number = 0  # of that request
        self._size = 0  # of that part, in bytes
        self._most = self._limits.limit_request_bytes  # of its body
        self._refusal: _Refusal | None = None
        self._waits_since = 0.0
        self._unread = 0
        self._unread_since = 0.0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        self._unread_since = self.loop.time()
        self._wait()
        if not self._watch.has_room_for(self, open_now=len(self.connections)):
            most = self._limits.limit_connections
            if len(self.connections) > 2 * most:
                transport.abort()
                return
            sentence = f"The service has {most:,} connections open, which is its limit. Try again in a moment."
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, sentence)

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.waiting.pop(self, None)
        super().connection_lost(exc)

    def waits_for_its_turn(self) -> bool:
        """Whether what it received is still to be read."""
        return self._watch.is_queued(self)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            if self._ends_at is not None:
                self._ends_at = min(self.loop.time() + _LINGER_SECONDS, self._ends_by)
            self.transport.pause_reading()
            self.loop.call_later(_DROP_AGAIN_SECONDS, self._read_on)
        elif self._size + len(data) <= _SMALL and not self.waits_for_its_turn():
            self.take(data)
        else:  # many that send much would hold up those who send little: one of them has its turn at a time
            self.transport.pause_reading()
            self._watch.queue(self, data)

    def take(self, data: bytes, *, last: bool = True) -> None:
        """Read what came; after the last of it the transport reads on."""
        if self.parser is None:  # the connection was lost meanwhile
            return
        if not self._deaf:
            self._unset_keepalive_if_required()
            self._feed(data)
        if last and not self.flow.read_paused:
            self._read_on()

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _feed(self, data: bytes) -> None:
        part, number, size = self._part, self._number, self._size
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess] - see take()
        except httptools.HttpParserUpgrade:
            self._answer_and_close()  # it was answered as if it had asked for nothing; what follows is not HTTP
            return
        except httptools.HttpParserError:
            self._refuse(*(self._refusal or _INVALID))
            return
        if self._part is None:
            return
        if part is None and self._number == number + 1 and self._part == "head":
            self._size = len(data)  # with a line that has no end yet
        elif part == self._part and self._number == number:
            self._size = size + len(data)  # with what frames the body
        if refusal := self._too_large():
            self._refuse(*refusal)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_answering:
            return
        if self._deaf:
            self._end()
        else:
            self._wait()

    # The request, told by the parser: an exception ends it there

    def on_message_begin(self) -> None:
        if self.pipeline:
            # One is being answered and one waits: more would cost memory and the others' time.
            self._stop(
                HTTPStatus.BAD_REQUEST,
                "More than two requests were sent without waiting for responses. Only the first two are answered.",
            )
        super().on_message_begin()
        self._part, self._size = "head", 0
        self._most = self._limits.limit_request_bytes
        self._number += 1
        if not self._is_answering:
            self._wait()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(b": \r\n"))
        if self._part == "body":
            return  # a trailer: it is no part of what the application was given
        super().on_header(name, value)
        if len(self.headers) > self._limits.limit_headers:
            sentence = f"The request has more than {self._limits.limit_headers:,} headers. Send fewer."
            self._stop(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, sentence)

    def on_headers_complete(self) -> None:
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._stop(HTTPStatus.BAD_REQUEST, "The request has more than one Host header. Send one.")
        path = self.url.partition(b"?")[0].decode("latin-1")
        method = self.parser.get_method()  # pyright: ignore[reportOptionalMemberAccess] - it is what calls
        self._most = self._limits.largest_body(method.decode("latin-1"), path)
        for name, value in self.headers:
            if name == b"content-length" and int(value) > self._most:
                self._stop(*self._body_too_large())
        super().on_headers_complete()
        self._part, self._size = "body", 0

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._most:
            self._stop(*self._body_too_large())
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._part = None
        if self._is_answering:
            self._watch.waiting.pop(self, None)
        else:
            self._wait()

    # What it waits for

    def look(self, now: float) -> None:
        """End it when its time is over; asked about twice a second."""
        unread = self.transport.get_write_buffer_size()
        if not unread or unread < self._unread:
            self._unread_since = now
        self._unread = unread
        waits = now - self._waits_since if self in self._watch.waiting else 0
        if self._ends_at is not None:
            if now > self._ends_at:
                self.transport.abort()
        elif now > self._unread_since + self._limits.write_timeout_seconds:
            self._watch.say(
                "A client did not read a response in time, so its connection was closed (WRITE_TIMEOUT_SECONDS)."
            )
            self.transport.abort()
        elif self._deaf:
            pass
        elif self._part is None and waits > self._limits.idle_timeout_seconds:
            self.transport.close()
        elif self._part is not None and waits > (seconds := self._read_seconds()):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"The request was not complete after {seconds:g} seconds.")

    def _read_seconds(self) -> float:
        """What may be larger than usual may take longer, at the same pace."""
        return self._limits.read_timeout_seconds * max(1, self._most / self._limits.limit_request_bytes)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._waits_since = self.loop.time()
        self._watch.waiting[self] = None
        self._watch.waiting.move_to_end(self)

    # What is refused

    def _count(self, more: int) -> None:
        self._size += more
        if refusal := self._too_large():
            self._stop(*refusal)

    def _too_large(self) -> _Refusal | None:
        """The head's lines, or the body with what frames it: chunks of one byte cost far more than a byte."""
        most = self._limits.limit_header_bytes
        if self._part == "body":
            return self._body_too_large() if self._size > self._most + most else None
        if self._size <= most:
            return None
        sentence = f"The request's headers and address are larger than {most:,} bytes. Send less."
        return _Refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, sentence)

    def _body_too_large(self) -> _Refusal:
        sentence = f"The request is larger than {self._most:,} bytes. Send less at once."
        return _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)

    def _stop(self, status: HTTPStatus, sentence: str) -> None:
        self._refusal = _Refusal(status, sentence)
        raise _Stop

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Answer with the sentence and close; what is answered already, or before it, is left as it is."""
        if self.transport.is_closing():
            return
        self._watch.say(f"{status.value} {sentence}")
        if self.pipeline or (self._is_answering and self._part != "body"):
            self._answer_and_close()
            return
        self._deaf = True
        begun = self._part == "body" and self.cycle.response_started
        if begun and self._is_answering:
            self.transport.abort()
            return
        if self._is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not begun:
            self.transport.write(self._answer(status, sentence))
        self._end()

    def _answer_and_close(self) -> None:
        """Read nothing more, and close after the answer of the last request that is whole."""
        self._deaf = True
        if self._part == "body":  # that one will never be
            self.transport.abort()
        elif not self._is_answering:
            self._end()

    def _end(self) -> None:
        """Say that nothing more comes; what is still being sent is dropped as it comes, or the answer could be lost.

        For as long as a request may take.
        """
        if not self.transport.is_closing():
            self.transport.write_eof()
        now = self.loop.time()
        self._ends_at = now + _LINGER_SECONDS
        self._ends_by = now + max(_LINGER_SECONDS, self._limits.read_timeout_seconds)
        self._wait()
        self._watch.waiting.move_to_end(self, last=False)  # the first to go when others need the room

    def _answer(self, status: HTTPStatus, sentence: str) -> bytes:
        body = json.dumps({"error": sentence}).encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append((b"retry-after", str(_RETRY_SECONDS).encode()))
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), *(b": ".join(header) for header in headers)]
        return b"\r\n".join([*lines, b"", body])
