"""The escape table: what succeeds without a confinement, and must not with one."""

import asyncio
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspace import container
from tests.workspace.accounts import accounts, done_as
from tests.workspace.confinement import attempts
from tests.workspace.kinds import made, usable
from tests.workspace.outside import is_running, outside
from workspace.commands.detection import find_sandbox
from workspace.commands.running import run_process
from workspace.confinement import system_calls

pytestmark = pytest.mark.long
OTHER_CALLS = {
    "clone": system_calls.CLONE,
    "clone3": system_calls.CLONE3,
    "fallocate": system_calls.FALLOCATE,
    "tkill": system_calls.SIGNALS["tkill"],
    "tgkill": system_calls.SIGNALS["tgkill"],
    **system_calls.EXTENDED_ATTRIBUTES,
}
ACCOUNTS = accounts()
IN_CONTAINER = "what is found in a container"
CALLS = {
    name: number
    for table in (system_calls.REJECTED, system_calls.REJECTED_WITHOUT_NAMESPACES, OTHER_CALLS)
    for name, numbers in table.items()
    if (number := numbers[0 if platform.machine() == "x86_64" else 1]) is not None
}
Rows = list[tuple[str, str]]


def refused_calls(kind: str) -> Rows:
    """Each system call that the filter names, with arguments that no kernel takes."""
    names = [*system_calls.REJECTED]
    if kind != "bubblewrap":
        names += [*system_calls.REJECTED_WITHOUT_NAMESPACES, *system_calls.EXTENDED_ATTRIBUTES]
    return [(f"system call {name}", f"is_not_refused({name!r})") for name in names]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Where any account may make something; pytest's own is closed to others."""
    with tempfile.TemporaryDirectory(prefix="todo-escapes-") as directory:
        os.chmod(directory, 0o1777)
        yield Path(directory)


@pytest.fixture(scope="module", params=ACCOUNTS)
def account(request: pytest.FixtureRequest) -> int:
    return ACCOUNTS[request.param]


@pytest.fixture(scope="module")
def readable(account: int) -> Iterator[Path | None]:
    """A file of the account's among the programs."""
    if os.getuid() != 0:
        yield None
        return
    descriptor, name = tempfile.mkstemp(dir="/usr/local", prefix="todo-attempts-")
    os.fchown(descriptor, account, account)
    os.close(descriptor)
    yield Path(name)
    os.unlink(name)


def may_make_namespaces(account: int) -> bool:
    """Whether this account may make any here; containers forbid it."""
    command = ["unshare", "--mount", *(["--user"] if account else []), "true"]
    return subprocess.run(command, user=account, capture_output=True, check=False).returncode == 0


def test_this_machine_can_confine_commands() -> None:
    assert usable(), "install bubblewrap, or use Linux 5.13 or newer"


def test_the_table_shows_what_it_says(account: int, place: Path, readable: Path | None) -> None:
    """What is refused to commands succeeds without a confinement, or the attempt itself shows nothing."""
    holds = {
        *(attempts.ALL, attempts.USER if account else attempts.ROOT, platform.machine()),
        *([attempts.NAMESPACES] if may_make_namespaces(account) else []),
    }
    rows = [(name, code) for name, code, condition in attempts.ROWS if condition in holds]
    assert set(rows_that_succeed("none", rows, place, account, readable)) == {name for name, _ in rows}


@pytest.mark.parametrize("kind", [*usable(old=True), IN_CONTAINER])
def test_no_attempt_succeeds(kind: str, place: Path, account: int, readable: Path | None) -> None:
    rows = [(name, code) for name, code, _ in attempts.ROWS] + refused_calls(kind)
    assert len(rows) > 200
    assert rows_that_succeed(kind, rows, place, account, readable) == []


@pytest.mark.parametrize("kind", usable())
def test_what_programs_need_works(kind: str, place: Path, account: int) -> None:
    assert rows_that_succeed(kind, [*attempts.WORKS], place, account) == [name for name, _ in attempts.WORKS]


_LEFT_OPEN = "import os, sys; os.fstat(int(sys.argv[1])); print('open')"


@pytest.mark.parametrize("kind", usable())
async def test_no_descriptor_of_the_service_is_left_open(kind: str, tmp_path: Path) -> None:
    descriptor = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    argv = ["python3", "-c", _LEFT_OPEN, str(descriptor)]
    careless = await asyncio.create_subprocess_exec(*argv, close_fds=False, stdout=asyncio.subprocess.PIPE)
    said, _ = await careless.communicate()
    assert said == b"open\n"
    ran = await run_process(made(kind), tmp_path, argv, timeout_s=600)
    os.close(descriptor)
    assert "Bad file descriptor" in ran.stderr


@pytest.mark.parametrize("account", ACCOUNTS)
def test_in_a_container_it_is_landlock_that_is_found(account: str) -> None:
    async def names() -> list[str | None]:
        found = await find_sandbox()
        return [found.name if found else None]

    assert done_as(ACCOUNTS[account], names, before=container.enter) == ["landlock"]


def niceness(process: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, process)


def rows_that_succeed(kind: str, rows: Rows, place: Path, account: int, readable: Path | None = None) -> list[str]:
    async def work() -> list[str]:
        with tempfile.TemporaryDirectory(dir=place) as directory:
            os.mkdir(folder := Path(directory, "folder"), 0o700)
            shutil.copy(attempts.__file__, folder / "attempts.py")
            async with outside(Path(directory), readable) as reached:
                before = niceness(reached["bystander"])
                told = json.dumps({"outside": reached, "calls": CALLS, "rows": rows}).encode()
                confinement = await find_sandbox() if kind == IN_CONTAINER else made(kind)
                assert confinement
                ran = await run_process(confinement, folder, ["python3", "attempts.py"], timeout_s=600, stdin=told)
                unseen = {
                    "signal a process by a descriptor's owner": is_running(reached["victim"]),
                    "slow everything of the account down": niceness(reached["bystander"]) == before,
                }
            assert ran.exit_code == 0, ran
            return [name for name in json.loads(ran.stdout) if not unseen.get(name)]

    return done_as(account, work, before=container.enter if kind == IN_CONTAINER else lambda: None)
