"""Caddy and HAProxy as docs/sign-in.md configures them, in front of a backend with AUTH_MODE=proxy."""

import base64
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.api.test_proxy_users import SETTINGS
from tests.conftest import ROOT, find_free_port
from tests.processes import Program
from tests.serving import http_client
from tests.support.backends import local_backend
from tests.support.stack import Services
from tests.waiting import until

pytestmark = pytest.mark.long
DOCUMENT = (ROOT / "docs" / "sign-in.md").read_text()
PASSWORD = "a password"
ANN = {"Authorization": f"Basic {base64.b64encode(f'ann:{PASSWORD}'.encode()).decode()}"}


def read_example(language: str) -> str:
    [example] = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return example


def configure_caddy(program: str, port: int, backend: str, directory: Path) -> list[str]:
    hashed = subprocess.run(
        [program, "hash-password", "--plaintext", PASSWORD], check=True, capture_output=True, text=True
    ).stdout.strip()
    site = read_example("caddy").replace("todo.example", f"http://127.0.0.1:{port}").replace("$2a$14$…", hashed)
    file = directory / "Caddyfile"
    file.write_text("{\n\tadmin off\n}\n" + site.replace("127.0.0.1:8000", backend))
    return [program, "run", "--adapter", "caddyfile", "--config", str(file)]


def configure_haproxy(program: str, port: int, backend: str, directory: Path) -> list[str]:
    frontend = read_example("haproxy").replace(":443 ssl crt /etc/haproxy/todo.pem", f"127.0.0.1:{port}")
    file = directory / "haproxy.cfg"
    file.write_text(
        "defaults\n    mode http\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n"
        f"userlist users\n    user ann insecure-password '{PASSWORD}'\n"
        f"{frontend.replace('X-Forwarded-Proto https', 'X-Forwarded-Proto http')}"
        f"backend todo\n    server one {backend}\n"
    )
    return [program, "-db", "-f", str(file)]


PROGRAMS = {"caddy": configure_caddy, "haproxy": configure_haproxy}


@pytest.fixture(params=PROGRAMS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def proxy(name: str, services: Services, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    port = find_free_port()
    async with local_backend(services, **SETTINGS) as backend, http_client(f"http://127.0.0.1:{port}") as http:
        program = Program(tmp_path / "proxy.log")
        program.launch(PROGRAMS[name](found, port, backend.url.removeprefix("http://"), tmp_path))
        try:
            await until_reachable(http)
            yield http
        finally:
            program.end()


async def until_reachable(http: httpx2.AsyncClient) -> None:
    async def is_reachable() -> bool:
        try:
            return (await http.get("/health")).status_code in (200, 401)
        except httpx2.TransportError:
            return False

    await until(is_reachable, seconds=60)


async def test_proxy(proxy: httpx2.AsyncClient) -> None:
    assert (await proxy.get("/session")).status_code == 401
    assert (await proxy.get("/session", headers={"Remote-User": "bob"})).status_code == 401
    forged = [("Remote-User", "bob"), ("remote_user", "bob"), ("REMOTE-USER", "bob"), ("Remote-Name", "Bob")]
    for headers in ([], *([one] for one in forged), [("Remote-User", "bob"), ("Remote-User", "eve")]):
        session = await proxy.get("/session", headers=[*ANN.items(), *headers])
        assert session.status_code == 200, (headers, session.text)
        assert (session.json()["user_id"], session.json()["name"]) == ("ann", "ann"), headers
    own = {**ANN, "Origin": str(proxy.base_url).rstrip("/")}
    assert (await proxy.delete("/sessions", headers=own)).status_code == 204
    assert (await proxy.delete("/sessions", headers=ANN)).status_code == 403
