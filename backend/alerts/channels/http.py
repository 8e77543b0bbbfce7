"""Sends one request to a server that users or push services name, and reads nothing of its answer but the status."""

import asyncio
import email.utils
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx2

from backend.alerts.channels.channel import Outcome, Problem, SendResult
from common.clock import Clock, utc_now
from common.telemetry.logs import fields
from common.tls import get_tls_context
from common.web_origins import AllowedOrigins, Origin, parse_url

_log = logging.getLogger(__name__)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Answers = Mapping[int, tuple[Outcome, Problem]]
_SECONDS, _CONNECT_SECONDS = 15.0, 5.0
_MAX_RETRY_SECONDS = 43_200.0  # as long as an alert is worth sending
_BUSY = (408, 425, 429)


class UnsuitableAddress(Exception):
    """The name of a host leads to an address of this machine or its links."""


class HttpSender:
    """POSTs to allowed origins over one connection each, without redirects, cookies, proxies or logins of a URL."""

    def __init__(
        self,
        allowed: AllowedOrigins,
        *,
        seconds: float = _SECONDS,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self.allowed = allowed
        self._seconds = seconds
        self._connect_seconds = min(_CONNECT_SECONDS, seconds / 2)
        self._tls = tls
        self._resolve = resolve or resolve_host
        self._clock = clock

    def find_problem(self, url: str) -> Problem | None:
        try:
            origin, _ = parse_url(url)
        except ValueError:
            return Problem.INVALID_TARGET
        return None if self.allowed.allows(origin) else Problem.HOST_NOT_LISTED

    async def post(self, url: str, headers: Mapping[str, str], content: bytes, answers: Answers) -> SendResult:
        """Sends it; `answers` has the statuses that mean something of their own to this channel."""
        if problem := self.find_problem(url):
            return SendResult(Outcome.PERMANENT, problem=problem)
        origin, normal = parse_url(url)
        try:
            addresses = await self._find_addresses(origin)
        except UnsuitableAddress:
            return SendResult(Outcome.RETRY, problem=Problem.INTERNAL_ADDRESS)
        except Exception:  # noqa: BLE001 - whatever the name is, nothing was sent
            return SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._request(origin, normal, addresses, headers, content, answers)
        except Exception as error:  # noqa: BLE001 - a channel never raises, and what a server sends may raise anything
            return _read_error(error)

    async def _find_addresses(self, origin: Origin) -> Sequence[str]:
        async with asyncio.timeout(self._connect_seconds):
            addresses = await self._resolve(origin.host, origin.port)
        if not origin.names_address and any(map(is_internal, addresses)):
            raise UnsuitableAddress
        return addresses

    async def _request(
        self,
        origin: Origin,
        url: str,
        addresses: Sequence[str],
        headers: Mapping[str, str],
        content: bytes,
        answers: Answers,
    ) -> SendResult:
        """Tries one address after the other until a connection is made.

        The addresses that were checked are those that are used: another answer of the DNS changes nothing.
        """
        failure = SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)
        for address in addresses:
            host = f"[{address}]" if ":" in address else address
            request = httpx2.Request(
                "POST",
                httpx2.URL(url).copy_with(host=host),
                headers={**headers, "host": httpx2.URL(url).netloc.decode("ascii")},
                content=content,
                extensions={
                    "sni_hostname": origin.host,
                    "timeout": httpx2.Timeout(self._seconds, connect=self._connect_seconds).as_dict(),
                },
            )
            try:
                async with self._open(request) as response:
                    return self._read_answer(response, answers)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = _read_error(error)
        return failure

    @asynccontextmanager
    async def _open(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        # Not a client, which would store cookies and read proxies and logins from the environment and ~/.netrc.
        transport = httpx2.AsyncHTTPTransport(verify=self._tls or get_tls_context(), trust_env=False)
        async with transport:
            response = await transport.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()  # closes the connection, as the body has not been read

    def _read_answer(self, response: httpx2.Response, answers: Answers) -> SendResult:
        status = response.status_code
        if 200 <= status < 300:
            return SendResult(Outcome.ACCEPTED)
        wait = self._read_retry_after(response.headers.get("retry-after", ""))
        if status in answers:
            outcome, problem = answers[status]
            return SendResult(outcome, wait if outcome is Outcome.RETRY else None, problem)
        if status in _BUSY:
            return SendResult(Outcome.RETRY, wait, Problem.BUSY)
        if 300 <= status < 400:
            return SendResult(Outcome.PERMANENT, problem=Problem.REDIRECTED)
        if 400 <= status < 500:
            return SendResult(Outcome.PERMANENT, problem=Problem.TOO_LARGE if status == 413 else Problem.REJECTED)
        return SendResult(Outcome.RETRY, wait, Problem.SERVER_ERROR)

    def _read_retry_after(self, value: str) -> float | None:
        """Reads a number of seconds or a date (RFC 9110, section 10.2.3)."""
        value = value.strip()
        if value.isascii() and value.isdigit():
            return min(float(value[:10]), _MAX_RETRY_SECONDS)
        try:
            moment = email.utils.parsedate_to_datetime(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            seconds = (moment - self._clock()).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
        return min(max(seconds, 0.0), _MAX_RETRY_SECONDS)


def _read_error(error: BaseException) -> SendResult:
    """Returns what an error means: the request was certainly not sent, or that is not known."""
    match error:
        case httpx2.ConnectTimeout():
            return SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)
        case httpx2.ConnectError():
            is_invalid = has_cause(error, ssl.SSLCertVerificationError)
            return SendResult(Outcome.RETRY, problem=Problem.CERTIFICATE if is_invalid else Problem.UNREACHABLE)
        case TimeoutError() | httpx2.TimeoutException():
            return SendResult(Outcome.UNKNOWN, problem=Problem.TIMEOUT)
        case httpx2.TransportError():
            return SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)
        case _:
            # Not the error itself, whose text may quote the address.
            _log.warning("A notification could not be sent", extra=fields(error=type(error).__name__))
            return SendResult(Outcome.UNKNOWN, problem=Problem.INTERRUPTED)


def has_cause(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Returns the addresses of a host, each once; raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_internal(host: str) -> bool:
    """Whether an address is of this machine or of its links, where servers answer that trust this machine."""
    address: IPv4Address | IPv6Address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address.sixtofour or address
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
