"""Who is believed that a request came by https."""

from pathlib import Path

import httpx2
import pytest
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from service.workers import Proxies
from tests.processes import ServiceProcess
from tests.serving import serve

HTTPS = {"X-Forwarded-Proto": "https"}


async def scheme(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(Request(scope).url.scheme)(scope, receive, send)


@pytest.mark.parametrize(
    ("proxies", "seen"),
    [
        (("127.0.0.1", "::1"), "https"),
        (("10.0.0.0/8", "127.0.0.0/8"), "https"),
        (("*",), "https"),
        (("10.0.0.7",), "http"),
        ((), "http"),
    ],
)
async def test_only_those_named_are_believed(proxies: tuple[str, ...], seen: str) -> None:
    async with (
        serve(scheme, lifespan="off", trusted_proxies=proxies) as url,
        httpx2.AsyncClient(base_url=url, verify=False) as http,
    ):
        assert (await http.get("/", headers=HTTPS)).text == seen
        assert (await http.get("/")).text == "http"


class Given(BaseModel):
    proxies: Proxies


def test_addresses_are_read_from_one_line() -> None:
    assert Given.model_validate({"proxies": " 10.0.0.7, 172.16.0.0/12,, ::1 "}).proxies == (
        "10.0.0.7",
        "172.16.0.0/12",
        "::1",
    )


@pytest.mark.parametrize("given", ["proxy.example", "10.0.0.7:80", "10.0.0.7/8", "10.0.0"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="must be addresses or networks"):
        Given.model_validate({"proxies": given})


@pytest.mark.long
@pytest.mark.parametrize(("module", "port"), [("backend", "BACKEND_PORT"), ("mcp_server", "MCP_PORT")])
def test_both_services_take_the_setting(session_database_url: str, tmp_path: Path, module: str, port: str) -> None:
    """Without it uvicorn believes a proxy on this machine."""
    given = {"DATABASE_URL": session_database_url, "TRUSTED_PROXIES": "10.0.0.7"}
    service = ServiceProcess(module, port, tmp_path / "log", **given)
    service.start()
    try:
        service.wait_until_ready(path="/health")
        answer = httpx2.get(f"{service.url}/health", headers=HTTPS, trust_env=False, verify=False)
        assert "strict-transport-security" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
    finally:
        service.end()
