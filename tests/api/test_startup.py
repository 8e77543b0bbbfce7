"""What cannot work as it is configured ends at its start with one sentence; what may still come is waited for."""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from backend.commands import check as backend_check
from common.database.schema import check_url
from mcp_server.commands import check as mcp_check
from tests.conftest import find_free_port, migrate
from tests.logins import as_admin, as_service
from tests.processes import INHERITED, ServiceProcess, run
from tests.scale.pooler import run_pgbouncer
from tests.serving import http_client, serve
from tests.support.stack import SIGN_IN, Services
from tests.tokens import IDP_SECRET, MCP_TOKEN_SECRET
from tests.waiting import until

URL = "postgresql://localhost/todo"
JWT = {**SIGN_IN, "AUTH_AUDIENCE": "todo"}
OIDC = {
    "AUTH_MODE": "oidc",
    "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET,
    "OIDC_ISSUER": "https://auth.example",
    "OIDC_CLIENT_ID": "todo",
    "OIDC_CLIENT_SECRET": "very-secret",
    "OIDC_ALLOWED": "groups=household,email_domain=example.com",
}
PROXY = {"AUTH_MODE": "proxy", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET, "TRUSTED_PROXIES": "10.0.0.7"}
BOTH = ("backend", "mcp_server")


@dataclass(frozen=True)
class Case:
    """Settings that cannot work, and what the sentence must name."""

    settings: dict[str, str]
    names: str
    services: tuple[str, ...] = ("backend",)
    secrets: tuple[str, ...] = field(default=(IDP_SECRET, MCP_TOKEN_SECRET, "very-secret"))


INVALID = [
    Case({"DATABASE_URL": ""}, "DATABASE_URL", BOTH),
    Case({"DATABASE_URL": "mysql://very-secret@x"}, "DATABASE_URL", BOTH),
    Case({"DATABASE_URL": "postgresql://me:very-secret@host:port/todo"}, "DATABASE_URL"),
    Case({"TIME_ZONE": "Mars/Olympus"}, "TIME_ZONE", BOTH),
    Case({"TEST_CLOCK_OFFSET_SECONDS": "tomorrow"}, "TEST_CLOCK_OFFSET_SECONDS"),
    Case(
        {"TEST_CLOCK_OFFSET_SECONDS": "60", "MCP_HOST": "0.0.0.0", **JWT},
        "TEST_CLOCK_OFFSET_SECONDS",
        ("mcp_server",),
    ),
    Case({"TRUSTED_PROXIES": "10.0.0.7:80"}, "TRUSTED_PROXIES"),
    Case({"LIMIT_HEADERS": "none"}, "LIMIT_HEADERS", BOTH),
    Case({"LIMIT_RUN_SECONDS": "0"}, "LIMIT_RUN_SECONDS"),
    Case({"BACKEND_PORT": "many"}, "BACKEND_PORT"),
    Case({"BACKEND_HOST": "0.0.0.0"}, "BACKEND_HOST"),
    Case({"LLM_TEMPERATURE": "9"}, "LLM_TEMPERATURE"),
    Case({"HISTORY_TOKENS": "999"}, "HISTORY_TOKENS"),
    Case({"LLM_PROVIDER": "skynet"}, "LLM_PROVIDER"),
    Case({"LLM_PROVIDER": "openai"}, "OPENAI_API_KEY"),
    Case({"LLM_PROVIDER": "custom", "LLM_MODEL": "m"}, "LLM_BASE_URL"),
    Case({"APPROVALS": "bulk,delete_tsk"}, "delete_tsk"),
    Case({"APPROVALS": "none,bulk"}, "APPROVALS"),
    Case({**JWT, "AUTH_ISSUER": ""}, "AUTH_ISSUER", BOTH),
    Case({**JWT, "AUTH_AUDIENCE": ""}, "AUTH_AUDIENCE"),
    Case({**JWT, "MCP_TOKEN_SECRET": ""}, "MCP_TOKEN_SECRET"),
    Case({**JWT, "AUTH_JWKS_URL": "http://127.0.0.1/keys"}, "AUTH_JWKS_URL", BOTH),
    Case({**JWT, "AUTH_JWT_SECRET": "", "AUTH_JWKS_URL": "keys.json"}, "AUTH_JWKS_URL"),
    Case({**JWT, "AUTH_JWT_SECRET": "short"}, "AUTH_JWT_SECRET", BOTH),
    Case({**JWT, "AUTH_JWT_SECRET": "0123456789abcdef0123456789abcde"}, "AUTH_JWT_SECRET"),
    Case({"MCP_TOKEN_SECRET": "password1" * 3}, "MCP_TOKEN_SECRET", BOTH),
    Case({"MCP_PORT": "70000"}, "MCP_PORT", ("mcp_server",)),
    Case({"MCP_HOST": "0.0.0.0"}, "AUTH_NONE_BEYOND_LOOPBACK", ("mcp_server",)),
    Case({"AUTH_MODE": "jwt"}, "MCP_TOKEN_SECRET", ("mcp_server",)),
    Case({"MCP_URL": "https://host:443/mcp"}, "MCP_URL", ("mcp_server",)),
    Case({**JWT, "AUTH_ISSUER": "todo-assistant"}, "AUTH_ISSUER", ("mcp_server",)),
    Case({**JWT, "AUTH_JWT_SECRET": MCP_TOKEN_SECRET}, "must differ"),
    Case({**JWT, "AUTH_JWT_SECRET": MCP_TOKEN_SECRET}, "AUTH_JWT_SECRET", ("mcp_server",)),
    Case({**OIDC, "MCP_TOKEN_SECRET": ""}, "MCP_TOKEN_SECRET", BOTH),
    Case({**OIDC, "OIDC_ISSUER": ""}, "OIDC_ISSUER"),
    Case({**OIDC, "OIDC_ISSUER": "auth.example"}, "OIDC_ISSUER"),
    Case({**OIDC, "OIDC_ISSUER": "http://auth.example"}, "https"),
    Case({**OIDC, "OIDC_ISSUER": "https://auth.example/?a=b"}, "OIDC_ISSUER"),
    Case({**OIDC, "OIDC_CLIENT_ID": ""}, "OIDC_CLIENT_ID"),
    Case({**OIDC, "OIDC_ALLOWED": ""}, "OIDC_ALLOWED"),
    Case({**OIDC, "OIDC_ALLOWED": "*,groups=household"}, "OIDC_ALLOWED"),
    Case({**OIDC, "OIDC_ALLOWED": "household"}, "OIDC_ALLOWED"),
    Case({**OIDC, "OIDC_ALLOWED": "groups="}, "OIDC_ALLOWED"),
    Case({**OIDC, "OIDC_SCOPES": "profile email"}, "OIDC_SCOPES"),
    Case({**PROXY, "MCP_TOKEN_SECRET": ""}, "MCP_TOKEN_SECRET", BOTH),
    Case({**PROXY, "TRUSTED_PROXIES": ""}, "TRUSTED_PROXIES"),
    Case({**PROXY, "TRUSTED_PROXIES": "*"}, "TRUSTED_PROXIES"),
    Case({**PROXY, "TRUSTED_PROXIES": "10.0.0.7,::/0"}, "TRUSTED_PROXIES"),
    Case({**PROXY, "PROXY_USER_HEADER": "Remote_User"}, "PROXY_USER_HEADER"),
    Case({**PROXY, "PROXY_NAME_HEADER": "remote-user"}, "PROXY_USER_HEADER"),
    Case({**PROXY, "PROXY_SIGN_OUT_URL": "javascript:x"}, "PROXY_SIGN_OUT_URL"),
]


@pytest.mark.parametrize("service", BOTH)
def test_check(service: str) -> None:
    valid, invalid = run(service, "check", DATABASE_URL=URL), run(service, "check", DATABASE_URL="")
    assert (valid.returncode, invalid.returncode) == (0, os.EX_CONFIG), valid.stderr
    assert len(invalid.stderr.splitlines()) == 1


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without any settings but the URL of a database."""
    for name in os.environ:
        if name not in INHERITED and not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DATABASE_URL", URL)
    return monkeypatch


CHECKS: dict[str, Callable[[], object]] = {"backend": backend_check.run, "mcp_server": mcp_check.run}


@pytest.mark.parametrize(("case", "service"), [(case, service) for case in INVALID for service in case.services])
def test_invalid_settings(
    case: Case, service: str, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in case.settings.items():
        environment.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        CHECKS[service]()
    said = "".join(capsys.readouterr())
    assert ended.value.code == os.EX_CONFIG
    assert case.names in said
    assert len(said.splitlines()) == 1
    assert [secret for secret in case.secrets if secret in said] == []


def test_all_mistakes_at_once(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mistakes = {
        "BACKEND_PORT": "many",
        "TIME_ZONE": "Mars/Olympus",
        "APPROVALS": "bulk,delete_tsk",
        "MCP_SERVERS_FILE": "/no/such/file",
        "LLM_PROVIDER": "openai",
    }
    for name, value in mistakes.items():
        environment.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        backend_check.run()
    sentences = capsys.readouterr().err.splitlines()
    assert ended.value.code == os.EX_CONFIG
    assert len(sentences) == len(mistakes)
    assert all(any(name in sentence for sentence in sentences) for name in mistakes)


@pytest.mark.parametrize(
    "settings",
    [
        JWT,
        OIDC,
        {**OIDC, "OIDC_ALLOWED": "*", "OIDC_CLIENT_SECRET": "", "OIDC_ISSUER": "http://127.0.0.1:9000/a"},
        PROXY,
        {"BACKEND_HOST": "0.0.0.0", "AUTH_NONE_BEYOND_LOOPBACK": "true"},
        {"TRUSTED_PROXIES": " 10.0.0.7, 172.16.0.0/12,, ::1 "},
    ],
)
def test_valid_settings(settings: dict[str, str], environment: pytest.MonkeyPatch) -> None:
    for name, value in settings.items():
        environment.setenv(name, value)
    backend_check.run()


def test_disabled_servers_are_left_out(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"on": {"command": "x"}, "off": {"command": "x", "disabled": true}}}')
    environment.setenv("MCP_SERVERS_FILE", str(file))
    _, _, servers = backend_check.run()
    assert [server.name for server in servers] == ["on"]


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = run("mcp_server", DATABASE_URL=URL, MCP_PORT=str(taken.getsockname()[1]))
    assert ended.returncode == 1
    [sentence] = ended.stderr.splitlines()
    assert "Address already in use" in sentence


@pytest.mark.parametrize("service", BOTH)
def test_unknown_command(service: str) -> None:
    done = run(service, "chekc")
    assert (done.returncode, done.stdout) == (1, "")
    assert "check" in done.stderr


UNSAFE = {
    "row-level security is off": "ALTER TABLE entries DISABLE ROW LEVEL SECURITY",
    "a policy is missing": "DROP POLICY owner_only ON runs",
    "a policy shows everything": "CREATE POLICY p ON task_changes USING (true)",
    "a table has no policy": "CREATE TABLE notes (user_id text); GRANT SELECT ON notes TO todo_app",
}


@pytest.mark.parametrize("name", UNSAFE)
async def test_database_that_does_not_keep_users_apart(fresh_database_url: str, name: str) -> None:
    with psycopg.connect(as_admin(fresh_database_url)) as connection:
        connection.execute(UNSAFE[name].encode())
    assert (await check_url(fresh_database_url)).exposed


def test_service_with_a_superusers_login_does_not_start(fresh_database_url: str) -> None:
    url = as_admin(fresh_database_url)
    done = run("mcp_server", DATABASE_URL=url, MCP_PORT=str(find_free_port()))
    assert done.returncode == os.EX_CONFIG, done.stderr
    assert url not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_backend_needs_the_address_of_postgresql_behind_a_pooler(services: Services) -> None:
    """The pooler would keep the lock that says that the process is alive."""
    with run_pgbouncer(services.database_url) as url:
        settings = {"DATABASE_URL": url, "LISTEN_DATABASE_URL": "", "BACKEND_PORT": str(find_free_port())}
        done = run("backend", **settings)
    assert done.returncode == os.EX_CONFIG, done.stderr
    assert "LISTEN_DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
async def test_service_waits_for_what_it_needs(services: Services, empty_database_url: str, tmp_path: Path) -> None:
    """Its database is not migrated and its workspace is away when it starts."""
    port = find_free_port()
    settings = services.backend_environment() | {
        "DATABASE_URL": as_service(empty_database_url),
        "WORKSPACE_URL": f"http://127.0.0.1:{port}/mcp",
    }
    backend = ServiceProcess("backend", "BACKEND_PORT", tmp_path / "backend.log", **settings)
    backend.start()
    workspace = Starlette(routes=[Route("/ready", lambda _: JSONResponse({"confinement": "landlock"}))])
    try:
        await asyncio.to_thread(backend.wait_until_ready, path="/health")
        async with http_client(backend.url) as http:

            async def wait_for(status: int, text: str) -> None:
                async def is_answered() -> bool:
                    found = await http.get("/ready")
                    return found.status_code == status and text in found.text

                await until(is_answered)

            await wait_for(503, "migrat")
            await asyncio.to_thread(migrate, empty_database_url)
            await wait_for(503, "workspace")
            async with serve(workspace, lifespan="off", port=port):
                await wait_for(200, "landlock")
    finally:
        backend.end()
