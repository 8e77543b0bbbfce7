"""Where ntfy and webhooks may send: listed hosts only, at the addresses that were checked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from backend.alerts.channels.channel import Outcome, Problem, SendResult
from backend.alerts.channels.http import HttpSender, Resolve, is_internal
from backend.alerts.channels.webhook import WebhookChannel
from common.web_origins import AllowedOrigins, parse_origin
from tests.channels.certificates import create_contexts
from tests.channels.http_server import HttpServer, serve_http
from tests.channels.messages import create_message

SECRET = "a secret of a webhook"
ACCEPTED = SendResult(Outcome.ACCEPTED)
INTERNAL = SendResult(Outcome.RETRY, problem=Problem.INTERNAL_ADDRESS)


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with serve_http() as server:
        yield server


async def send(
    url: str, *listed: str, resolve: Resolve | None = None, tls: ssl.SSLContext | None = None, seconds: float = 60
) -> SendResult:
    http = HttpSender(AllowedOrigins(listed), seconds=seconds, resolve=resolve, tls=tls)
    return await WebhookChannel(http).send({"url": url, "secret": SECRET}, create_message())


def resolve_to(*addresses: str) -> Resolve:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


LISTED = ["ntfy.sh", "https://hooks.example:8443", "http://192.168.1.5:8080", "bücher.example", "[2001:db8::1]"]


@pytest.mark.parametrize(
    "url",
    [
        "https://ntfy.sh",
        "https://ntfy.sh:443/a?b=c",
        "https://NTFY.sh/a",
        "https://ntfy.sh./a",
        "HTTPS://ntfy.sh/a#fragment",
        "https://hooks.example:8443/a",
        "http://192.168.1.5:8080/a",
        "https://bücher.example/a",
        "https://xn--bcher-kva.example/a",
        "https://[2001:db8::1]/a",
        "https://[2001:0db8:0:0::1]/a",
    ],
)
def test_listed_host(url: str) -> None:
    assert HttpSender(AllowedOrigins(LISTED)).find_problem(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://ntfy.sh/a",
        "https://ntfy.sh:8443/a",
        "https://hooks.example/a",
        "https://192.168.1.5:8080/a",
        "http://192.168.1.5/a",
        "http://192.168.1.6:8080/a",
        "http://3232235781:8080/a",
        "http://0xc0a80105:8080/a",
        "http://192.168.261:8080/a",
        "http://[::ffff:192.168.1.5]:8080/a",
        "https://a.ntfy.sh/a",
        "https://ntfy.sh.example/a",
        "https://sh/a",
        "https://localhost/a",
        "https://127.0.0.1/a",
        "https://b\u0075cher.example/a",
    ],
)
def test_host_that_is_not_listed(url: str) -> None:
    assert HttpSender(AllowedOrigins(LISTED)).find_problem(url) is Problem.HOST_NOT_LISTED


@pytest.mark.parametrize(
    "url",
    [
        "https://user@ntfy.sh/a",
        "https://user:password@ntfy.sh/a",
        "https://ntfy.sh\\@example/a",
        "https://ntfy.sh\t/a",
        "https://ntfy.sh\r\nhost: example/a",
        "https://ntfy.sh /a",
        "https://ntfy.sh../a",
        "https://ntfy.sh:0/a",
        "https://ntfy.sh:99999/a",
        "https://ntfy.sh%00/a",
        "https://ntfy.s\uff48/a",
        "https://[::1%25lo]/a",
        "https://[::1",
        "ftp://ntfy.sh/a",
        "gopher://ntfy.sh/a",
        "https:ntfy.sh",
        "//ntfy.sh/a",
        "ntfy.sh",
        "",
    ],
)
def test_address_that_is_none(url: str) -> None:
    assert HttpSender(AllowedOrigins(LISTED)).find_problem(url) is Problem.INVALID_TARGET


@pytest.mark.parametrize(
    "entry", ["", "ftp://a.example", "https://a.example/path", "https://user@a.example", "*", "a b"]
)
def test_entry_that_cannot_be_listed(entry: str) -> None:
    with pytest.raises(ValueError, match="it "):
        parse_origin(entry)


def test_star_stands_for_hosts_below_a_name() -> None:
    allowed = AllowedOrigins(["*.push.example"])
    hosts = {"a.push.example": True, "a.b.push.example": True, "push.example": False, "xpush.example": False}
    assert {host: allowed.allows(parse_origin(host)) for host in hosts} == hosts


async def test_only_listed_hosts_are_looked_up(server: HttpServer) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(f"{host} was looked up")

    result = await send("https://other.example/a", "ntfy.sh", resolve=resolve)
    assert result == SendResult(Outcome.PERMANENT, problem=Problem.HOST_NOT_LISTED)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["127.8.9.10"],
        ["0.0.0.0"],
        ["169.254.169.254"],
        ["224.0.0.1"],
        ["::1"],
        ["::"],
        ["fe80::1%eth0"],
        ["::ffff:127.0.0.1"],
        ["::ffff:169.254.169.254"],
        ["2002:7f00:1::"],
        ["192.0.2.1", "127.0.0.1"],
        ["127.0.0.1", "192.0.2.1"],
    ],
)
async def test_name_that_leads_to_this_machine_gets_nothing(server: HttpServer, addresses: list[str]) -> None:
    name = f"http://rebinding.example:{server.port}"
    assert await send(f"{name}/a", name, resolve=resolve_to(*addresses)) == INTERNAL
    assert server.received == []


@pytest.mark.parametrize("address", ["192.168.1.5", "10.0.0.1", "172.17.0.1", "fd00::1", "93.184.216.34"])
def test_addresses_of_the_local_network_are_not_internal(address: str) -> None:
    assert not is_internal(address)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_this_machine_is_used_if_it_is_listed_as_such(server: HttpServer, host: str) -> None:
    origin = f"http://{host}:{server.port}"
    assert await send(f"{origin}/a?b=c", origin) == ACCEPTED
    [request] = server.received
    assert (request.method, request.path, request.headers["host"]) == ("POST", "/a?b=c", f"{host}:{server.port}")


async def test_name_is_looked_up_once_for_each_message(server: HttpServer) -> None:
    lookups = list[str]()

    async def rebind(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["127.0.0.2"]

    origin = f"http://localhost:{server.port}"
    assert await send(f"{origin}/a", origin, resolve=rebind) == ACCEPTED
    assert lookups == ["localhost"]


async def test_next_address_is_tried_if_one_cannot_be_reached(server: HttpServer) -> None:
    origin = f"http://localhost:{server.port}"
    assert await send(origin, origin, resolve=resolve_to("::1", "127.0.0.2", "127.0.0.1")) == ACCEPTED
    assert len(server.received) == 1


async def test_unknown_name_is_tried_again() -> None:
    async def fail(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    unreachable = SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)
    assert await send("https://hooks.example", "hooks.example", resolve=fail) == unreachable
    assert await send(f"https://{'a' * 64}.example", f"{'a' * 64}.example") == unreachable
    assert await send("https://hooks.example", "hooks.example", resolve=resolve_to()) == unreachable


async def test_dns_that_does_not_answer_is_tried_again() -> None:
    async def wait(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    result = await send("https://hooks.example", "hooks.example", resolve=wait, seconds=0.2)
    assert result == SendResult(Outcome.RETRY, problem=Problem.UNREACHABLE)


async def test_certificate_must_be_of_the_name_and_trusted(tmp_path: Path) -> None:
    invalid = SendResult(Outcome.RETRY, problem=Problem.CERTIFICATE)
    own, client = create_contexts(tmp_path)
    other, other_client = create_contexts(tmp_path, "other.example")
    async with serve_http(own) as server:
        origin = f"https://localhost:{server.port}"
        assert await send(f"{origin}/a", origin, tls=client) == ACCEPTED
        assert await send(f"{origin}/a", origin) == invalid
        by_address = f"https://127.0.0.1:{server.port}"
        assert await send(f"{by_address}/a", by_address, tls=client) == invalid
    async with serve_http(other) as server:
        origin = f"https://localhost:{server.port}"
        assert await send(f"{origin}/a", origin, tls=other_client) == invalid
        assert server.received == []


async def test_proxies_and_logins_of_the_environment_are_not_used(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ann password secret")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert await send(f"{server.origin}/a", server.origin) == ACCEPTED
    assert "authorization" not in server.received[0].headers
