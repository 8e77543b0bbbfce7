"""uvicorn's HTTP connection with limits on what a client may send and how long it may take.

Only this module uses internals of uvicorn (0.54); tests/api/test_connections.py fails when they change.
"""

import asyncio
import json
import logging
from collections import Counter
from http import HTTPStatus
from typing import Any, Literal

import httptools
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from common.fair_shares import FairQueue
from common.server.address_turns import get_network
from common.server.connection_owner import BACKEND, add_connection
from common.server.limits import ClientLimits

log = logging.getLogger(__name__)

_PIECE_BYTES = 4_096  # parsed at once: takes less than a millisecond, even in chunks of one byte
_PAUSE_BYTES = 16_384  # of a response, after which others are served
_CHECK_SECONDS = 0.5  # between two checks of the time-outs
_DROP_SECONDS = 0.1  # between two reads of what is dropped


class _Rejected(Exception):
    """Stops the parser and sends this response."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status, self.sentence = status, sentence


class LimitedConnection(HttpToolsProtocol):
    """Counts bytes while they arrive, so that a request is rejected before it is stored."""

    def __init__(self, limits: ClientLimits, turns: FairQueue, **options: Any) -> None:
        """`turns` has one place, for the connection of the server that parses the next piece of a request."""
        super().__init__(**options)
        self._application, self.app = self.app, self._serve
        self.owner: str | None = None
        self._limits, self._turns = limits, turns
        self._max_body_bytes = limits.limit_request_bytes
        self._part: Literal["head", "body"] | None = None  # of a request that is not complete yet
        self._bytes = self._body_bytes = 0  # of that part with its framing; of the body without
        self._unparsed = b""
        self._parsing: asyncio.Task[None] | None = None
        self._ignores_input = False  # what still arrives is dropped
        self._abort_at = float("inf")
        self._waiting_since = self._read_at = self.loop.time()  # when it began to wait; when the client last read
        self._received_at = self._read_at  # when the client last sent something, or could not
        self._sent_bytes = self._unread_bytes = 0  # of bodies since the last check; of those unread then
        self._read_seconds_left = limits.write_timeout_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.loop.call_later(_CHECK_SECONDS, self._check_times)
        limit = self._limits.limit_connections
        if len(self.connections) <= limit:
            return
        other_connections: Any = self.connections - {self}
        waiting = [each for each in other_connections if each._needs_client]
        if not waiting:
            sentence = f"The service has {limit:,} connections open, which is its limit. Try again in a moment."
            self._reject(_Rejected(503, sentence))
            return
        counts = Counter(each.owner for each in other_connections)
        counts[BACKEND] = 0  # it connects for all users
        oldest = min(waiting, key=lambda each: (each._abort_at, -counts[each.owner], each._needs_client_since))
        log.warning("LIMIT_CONNECTIONS is reached: a waiting connection of the user who has most was closed.")
        self.connections.discard(oldest)
        oldest.transport.abort()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the application until its response is read, except for what the write buffers hold.

        uvicorn would let it end with the last piece unread, and so with a response of any size in one piece.
        """

        unpaused_bytes = 0

        async def send_and_drain(message: Message) -> None:
            nonlocal unpaused_bytes
            await send(message)
            size = len(message.get("body", b""))
            self._sent_bytes += size
            unpaused_bytes += size
            await self.flow.drain()
            if message.get("more_body") and unpaused_bytes >= _PAUSE_BYTES:
                await asyncio.sleep(0)  # nothing else may pause between two pieces that the client can take at once
                unpaused_bytes = 0

        add_connection(scope, self)
        application: Any = self._application
        await application(scope, receive, send_and_drain)

    def data_received(self, data: bytes) -> None:
        self._received_at = self.loop.time()
        if self._ignores_input:
            self.transport.pause_reading()
            self.loop.call_later(_DROP_SECONDS, self._resume_reading)
            return
        is_parsing = self._parsing is not None and not self._parsing.done()
        self._unparsed += data
        is_small = not is_parsing and self._bytes + len(data) <= _PIECE_BYTES
        if is_small and (release := self._turns.take_at_once(self._turn_owner)):
            try:
                self._parse_piece()
            finally:
                self.loop.call_soon(release)
            return
        self.transport.pause_reading()
        if not is_parsing:
            self._parsing = self.loop.create_task(self._parse_pieces())

    async def _parse_pieces(self) -> None:
        """Parses one piece in a round of the event loop, of the requests of all connections together.

        Else large requests would delay small ones, and hundreds that arrive at once would be begun in one round.
        """
        while self._unparsed:
            release = await self._turns.take(self._turn_owner)
            try:
                self._parse_piece()
                await asyncio.sleep(0)
            finally:
                release()

    @property
    def _turn_owner(self) -> str:
        """Who takes turns with others, however many connections each has: a user, or an address of which no user is
        known.
        """
        return get_network(self.client[0] if self.client else "") if self.owner is None else self.owner

    def _parse_piece(self) -> None:
        if self.parser is None or self._ignores_input:  # the connection was lost, or its request rejected
            self._unparsed = b""
            return
        piece, self._unparsed = self._unparsed[:_PIECE_BYTES], self._unparsed[_PIECE_BYTES:]
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(piece)
            self._bytes += len(piece)
            # Lines without end reach no callback, and chunks of one byte cost far more than a byte.
            limit = self._limits.limit_header_bytes + _PIECE_BYTES  # a piece may have begun with another request
            if self._part and self._bytes - self._body_bytes > limit:
                raise self._create_rejection(self._part)
        except httptools.HttpParserUpgrade:
            self._ignores_input = True  # the request is answered without an upgrade; what follows is not HTTP
        except (httptools.HttpParserError, _Rejected) as error:
            invalid = _Rejected(400, "This is not a valid HTTP request.")
            self._reject(next((each for each in (error, error.__context__) if isinstance(each, _Rejected)), invalid))
        if not self.flow.read_paused and (self._ignores_input or not self._unparsed):
            self._resume_reading()

    def _resume_reading(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    # Callbacks of the parser, which stops at an exception

    def on_message_begin(self) -> None:
        if self.pipeline:  # one is being answered and one waits: more would cost memory
            raise _Rejected(400, "More than two requests were sent without waiting for responses. Wait for them.")
        super().on_message_begin()
        self._part, self._bytes, self._body_bytes = "head", 0, 0
        if not self._is_answering:
            self._waiting_since = self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._part == "body":  # a trailer, which ASGI does not pass on
            return
        super().on_header(name, value)
        if len(self.headers) > (limit := self._limits.limit_headers):
            raise _Rejected(431, f"The request has more than {limit:,} headers. Send fewer.")

    def on_headers_complete(self) -> None:
        headers = self.headers
        if sum(name == b"host" for name, _ in headers) > 1:
            raise _Rejected(400, "The request has more than one Host header. Send one.")
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in headers) > self._limits.limit_header_bytes:
            raise self._create_rejection("head")
        path = self.url.partition(b"?")[0].decode("latin-1")
        self._max_body_bytes = self._limits.max_body_bytes(self.parser.get_method().decode(), path)  # pyright: ignore[reportOptionalMemberAccess]
        if any(name == b"content-length" and int(value) > self._max_body_bytes for name, value in headers):
            raise self._create_rejection("body")
        super().on_headers_complete()
        self._part, self._bytes = "body", 0

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._max_body_bytes:
            raise self._create_rejection("body")
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._part, self._waiting_since = None, self.loop.time()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering:
            self._waiting_since = self.loop.time()
            if self._ignores_input:
                self._linger()

    def _create_rejection(self, part: Literal["head", "body"]) -> _Rejected:
        if part == "body":
            return _Rejected(413, f"The request is larger than {self._max_body_bytes:,} bytes. Send less at once.")
        limit = self._limits.limit_header_bytes
        return _Rejected(431, f"The request's headers and address are larger than {limit:,} bytes. Send less.")

    # Time-outs and rejections

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _is_waiting(self) -> bool:
        """Whether the client has to send something next."""
        return not self._is_answering or (self._part == "body" and not self.pipeline)

    @property
    def _is_unread(self) -> bool:
        return self.transport.get_write_buffer_size() > 0

    @property
    def _needs_client(self) -> bool:
        """Whether nothing goes on before the client reads or sends something."""
        return self._is_unread or self._is_waiting

    @property
    def _needs_client_since(self) -> float:
        return self._read_at if self._is_unread else self._waiting_since

    def _check_reading(self, now: float) -> None:
        """Gives the client more time for each byte that it has read, but never more than at first."""
        limits, unread = self._limits, self.transport.get_write_buffer_size()
        read = max(self._unread_bytes + self._sent_bytes - unread, 0)
        self._sent_bytes, self._unread_bytes = 0, unread
        if not unread or read:
            self._read_at = now
        seconds = self._read_seconds_left - _CHECK_SECONDS + read / limits.min_read_bytes_per_second
        self._read_seconds_left = min(seconds, limits.write_timeout_seconds) if unread else limits.write_timeout_seconds

    def _check_times(self) -> None:
        if self.parser is None:  # the connection was lost
            return
        now, limits = self.loop.time(), self._limits
        self._check_reading(now)
        if not self.transport.is_reading():
            self._received_at = now
        waited = now - self._waiting_since if self._is_waiting and not self._ignores_input else 0
        # A body that may be larger may take longer.
        read_seconds = limits.read_timeout_seconds * max(1, self._max_body_bytes / limits.limit_request_bytes)
        if now > self._abort_at:
            self.transport.abort()
        elif self._read_seconds_left < 0:
            log.warning("A client read a response too slowly, so its connection was closed (WRITE_TIMEOUT_SECONDS).")
            self.transport.abort()
        elif self._part is None and waited > limits.idle_timeout_seconds:
            self.transport.close()
        elif self._part and waited > read_seconds:
            self._reject(_Rejected(408, f"The request was not complete after {read_seconds:g} seconds."))
        elif self._part and waited and now - self._received_at > limits.read_timeout_seconds:
            sentence = f"Nothing of the request arrived for {limits.read_timeout_seconds:g} seconds."
            self._reject(_Rejected(408, sentence))
        self.loop.call_later(_CHECK_SECONDS, self._check_times)

    def _reject(self, rejected: _Rejected) -> None:
        """Sends the response and closes, after the responses to earlier requests of this connection."""
        if self.transport.is_closing() or self._ignores_input:
            return
        log.warning(f"{rejected.status} {rejected.sentence}")  # each sentence has lines of its own
        self._ignores_input = True
        if self._part == "body":
            if self.pipeline or (self.cycle.response_started and self._is_answering):
                self.transport.abort()
                return
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        elif self._is_answering:
            return
        if not (self._part == "body" and self.cycle.response_started):
            self.transport.write(_render(rejected))
        self._linger()

    def _linger(self) -> None:
        """Closes only for writing and drops what still arrives: a full close could discard the unread response.

        Many clients read only when they have sent all. A new connection takes the place of this one first.
        """
        self._abort_at = self.loop.time() + self._limits.read_timeout_seconds
        if not self.transport.is_closing():
            self.transport.write_eof()
            self.transport.resume_reading()


def _render(rejected: _Rejected) -> bytes:
    body = json.dumps({"error": rejected.sentence})
    retry = "retry-after: 5\r\n" if rejected.status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    return (
        f"HTTP/1.1 {rejected.status} {HTTPStatus(rejected.status).phrase}\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nx-content-type-options: nosniff\r\n"
        f"{retry}\r\n{body}"
    ).encode()
