"""`./todo user`: accounts with passwords, made and changed by the operator."""

import asyncio
import itertools
import json
import os
import pty
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_up import ask, up, wait_until_up  # noqa: F401 - fixtures
from tests.conftest import ROOT
from tests.logins import as_owner
from tests.processes import INHERITED
from tests.serving import http_client
from tests.support.accounts import PASSWORD, hash_password
from tests.support.backends import local_backend
from tests.support.commands import todo_at
from tests.support.fixtures import NewUser
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.waiting import until

pytestmark = pytest.mark.long

_numbers = itertools.count(1)


@pytest.fixture
def name() -> str:
    return f"ben-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def account(name: str, stored: Stored) -> str:
    stored.add_password(name, hash_password(PASSWORD))
    return name


async def run(stack: Stack, tmp_path: Path, *arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
    """Returns the exit status and what was printed."""
    (file := tmp_path / "stdin").write_bytes(stdin or b"")
    redirection = "" if stdin is None else f"< {file}"
    done = await todo_at(stack, "user", *arguments, redirection=redirection)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


async def test_account_is_made_changed_and_listed(stack: Stack, tmp_path: Path, name: str, stored: Stored) -> None:
    for rejected, password, why in (
        (name, b"short\n", "too short"),
        (name, b"", "too short"),
        (name, b"password123\n", "among the first that others try"),
        (name, name.upper().encode(), "is the name"),
        (name, b"x" * 10_000, "too long"),
        (name, b"\xff\xfe not text", "is not UTF-8 text"),
        (name, b"a NUL \0 in it", "control character"),
        ("local", PASSWORD.encode(), "local is reserved"),
        ("LOCAL", PASSWORD.encode(), "local is reserved"),
        ("two words", PASSWORD.encode(), "A name has up to 64"),
        ("-x", PASSWORD.encode(), ""),
        ("x" * 65, PASSWORD.encode(), "A name has up to 64"),
    ):
        status, output, errors = await run(stack, tmp_path, "add", rejected, "--stdin", stdin=password)
        assert (status != 0, output) == (True, ""), rejected
        assert why in errors, rejected
    assert stored.rows_of(name, "accounts") == []
    status, _, errors = await run(stack, tmp_path, "add", name)
    assert (status, "There is no terminal to type the password on. Add --stdin" in errors) == (1, True)

    status, output, errors = await run(stack, tmp_path, "add", name.title(), "--stdin", stdin=f"{PASSWORD}\n".encode())
    assert (status, output, errors) == (0, f"Made the account {name.title()}.\n", "")
    [row] = stored.rows_of(name, "accounts")
    assert row["name"] == name.title()
    assert row["password_hash"].startswith("$argon2id$")
    status, _, errors = await run(stack, tmp_path, "add", name.upper(), "--stdin", stdin=b"another good one\n")
    assert (status, "There is already an account" in errors) == (1, True)
    async with local_backend(stack.services, AUTH_MODE="password") as backend, http_client(backend.url) as http:

        async def sign_in(password: str) -> int:
            return (await http.post("/session", json={"name": name, "password": password})).status_code

        async def is_signed_out() -> bool:
            return (await http.get("/tasks?view=all", headers={"Origin": backend.url})).status_code == 401

        assert await sign_in(PASSWORD) == 200
        assert not await is_signed_out()
        status, output, _ = await run(stack, tmp_path, "password", name, "--stdin", stdin=b"another good one\r\n")
        assert (status, "All sessions and tokens" in output) == (0, True)
        await until(is_signed_out, seconds=5)
        assert await sign_in(PASSWORD) == 401
        assert await sign_in("another good one") == 200
        assert (await run(stack, tmp_path, "disable", name))[0] == 0
        await until(is_signed_out, seconds=5)
        [line] = [line for line in (await run(stack, tmp_path, "list"))[1].splitlines() if name.title() in line]
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +\d{4}-\d\d-\d\d \d\d:\d\d +disabled$", line)
        assert (await run(stack, tmp_path, "enable", name))[0] == 0
        assert await sign_in("another good one") == 200
    logged = (await run(stack, tmp_path, "log", name))[1]
    events = ["account made", "signed in", "password changed", "sign-in failed", "account disabled", "account enabled"]
    assert [position for event in events if (position := logged.find(event)) < 0] == []
    assert logged.splitlines()[-1].rstrip().endswith("127.0.0.1, Another program"), "the newest is last"
    assert PASSWORD not in logged
    assert "argon2" not in logged


async def test_an_id_is_meant_before_a_name(stack: Stack, tmp_path: Path, name: str, stored: Stored) -> None:
    """Users of a proxy may differ in case, and who signs in at a provider chooses the name that is shown."""
    other = name.capitalize()
    for each in (name, other):
        stored.add_named_account(each)
    status, printed, _ = await run(stack, tmp_path, "disable", other)
    assert (status, other in printed) == (0, True)
    disabled = {each: stored.rows_of(each, "accounts")[0]["disabled_at"] is not None for each in (name, other)}
    assert disabled == {name: False, other: True}
    assert "There is no account" in (await run(stack, tmp_path, "disable", name.upper()))[2]
    stored.add_password(f"{name}-p", hash_password(PASSWORD))
    assert (await run(stack, tmp_path, "disable", f"{name}-P"))[0] == 0, "names of accounts with passwords are folded"
    listed = (await run(stack, tmp_path, "list"))[1]
    assert name in listed
    assert other in listed


async def test_unknown_account(stack: Stack, tmp_path: Path, name: str) -> None:
    for action in ("password", "disable", "enable", "remove"):
        options = {"password": ["--stdin"], "remove": ["--yes"]}.get(action, [])
        for unknown in (name, "local", "\u202ename"):
            status, output, errors = await run(stack, tmp_path, action, unknown, *options, stdin=b"a good password\n")
            assert (status, output) == (1, "")
            assert "There is no account" in errors
            assert "\u202e" not in errors


async def test_account_is_removed_with_all_data(
    stack: Stack, tmp_path: Path, account: str, new_user: NewUser, stored: Stored
) -> None:
    user = new_user(account)
    await user.runs.http.post("/tasks", json={"title": "milk"})
    await user.runs.add_to_memory("* I work nights")
    status, _, errors = await run(stack, tmp_path, "remove", account)
    assert (status, "Add --yes" in errors) == (1, True)
    assert stored.titles(account) == ["milk"]
    async with local_backend(stack.services, AUTH_MODE="password") as backend, http_client(backend.url) as http:
        body = {"name": account, "password": PASSWORD}
        assert (await http.post("/session", json=body)).status_code == 200
        status, output, errors = await run(stack, tmp_path, "remove", account.upper(), "--yes")
        assert (status, errors) == (0, "")
        assert output == f"Removed the account {account.upper()} and all its data.\n"

        async def is_signed_out() -> bool:
            return (await http.get("/tasks?view=all", headers={"Origin": backend.url})).status_code == 401

        await until(is_signed_out, seconds=5)
        assert (await http.post("/session", json=body)).status_code == 401
    await until(lambda: stored.row_counts(account) == {})
    logged = (await run(stack, tmp_path, "log"))[1]
    assert re.search(rf"account removed +{account}", logged)


async def test_password_is_typed_without_echo(stack: Stack, name: str, stored: Stored) -> None:
    def type_passwords(*typed: str) -> tuple[int, str]:
        inherited = {variable: os.environ[variable] for variable in INHERITED if variable in os.environ}
        variables = {**inherited, "MIGRATION_DATABASE_URL": as_owner(stack.database_url), "PYTHONPATH": str(ROOT)}
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execve(sys.executable, [sys.executable, "-P", "-m", "cli", "user", "add", name], variables)
        shown = b""
        for prompt, password in zip((b"characters): ", b"Again: "), typed, strict=True):
            while not shown.endswith(prompt):
                shown += os.read(terminal, 1024)
            os.write(terminal, f"{password}\n".encode())
        try:
            while piece := os.read(terminal, 1024):
                shown += piece
        except OSError:  # the process has ended
            pass
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()

    status, shown = await asyncio.to_thread(type_passwords, PASSWORD, "something else")
    assert (status, "The two passwords differ" in shown) == (1, True)
    assert stored.rows_of(name, "accounts") == []
    status, shown = await asyncio.to_thread(type_passwords, PASSWORD, PASSWORD)
    assert (status, f"Made the account {name}." in shown) == (0, True)
    assert PASSWORD not in shown


@pytest.mark.long(seconds=20)
def test_up_prints_where_the_first_account_is_made(up: Any, ask: Any) -> None:  # noqa: F811
    process = up(AUTH_MODE="password", AGENTS="off")
    printed = wait_until_up(process)
    url = f"http://localhost:{process.port}"
    [code] = re.findall(rf"account +first open {url}/#setup=([\w-]{{32}}) within an hour, and make an account", printed)

    def post(path: str, **body: str) -> int:
        request = urllib.request.Request(
            f"{url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    assert post("/session", name="anna", password=PASSWORD) == 401
    assert post("/setup", code=code, name="anna", password=PASSWORD) == 200
    assert post("/setup", code=code, name="ben", password=PASSWORD) == 403
    assert post("/session", name="anna", password=PASSWORD) == 200
    output, status = ask("user", "list")
    assert (status, "anna" in output, "enabled" in output) == (0, True, True)
    assert "There is already an account" in ask("user", "setup")[0]
    process.terminate()
    process.communicate(timeout=60)
    logs = [file.read_text(errors="replace") for file in Path(process.args[-1]).rglob("*.log")]
    assert not any(code in text or PASSWORD in text for text in logs)
    again = wait_until_up(up(AUTH_MODE="password", AGENTS="off"))
    assert "#setup=" not in again
