"""Every way out of a folder that we know leads out without a confinement, and not with one."""

import asyncio
import json
import os
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
from workspace.commands.running import run
from workspace.confinement.detection import find

pytestmark = pytest.mark.long
ACCOUNTS = accounts()
IN_CONTAINER = "what is found in a container"
Found = dict[str, bool]


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
def unconfined(place: Path, account: int) -> Found:
    return _tried("none", place, account)


@pytest.fixture(scope="module", params=[*usable(old=True), IN_CONTAINER])
def confined(request: pytest.FixtureRequest, place: Path, account: int) -> Found:
    return _tried(request.param, place, account)


@pytest.fixture(scope="module")
def namespaces(account: int) -> bool:
    """Whether this account may make any here; containers forbid it."""
    command = ["unshare", "--mount", *(["--user"] if account else []), "true"]
    return subprocess.run(command, user=account, capture_output=True, check=False).returncode == 0


def test_this_machine_can_confine_commands() -> None:
    assert usable(), "install bubblewrap, or use Linux 5.13 or newer"


def test_ways_out_are_closed(unconfined: Found, confined: Found, account: int, namespaces: bool) -> None:
    """Each leads out without a confinement, or the attempt itself shows nothing."""
    impossible = attempts.ROOT_ONLY if account else attempts.NOT_ROOT
    impossible = impossible if namespaces else impossible | attempts.NAMESPACES
    assert {name for name, leads_out in unconfined.items() if leads_out} == {*attempts.WAYS} - impossible
    assert [name for name, leads_out in confined.items() if leads_out] == []


_LEFT_OPEN = "import os, sys; os.fstat(int(sys.argv[1])); print('open')"


@pytest.mark.parametrize("kind", usable())
async def test_no_descriptor_of_the_service_is_left_open(kind: str, tmp_path: Path) -> None:
    descriptor = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    argv = ["python3", "-c", _LEFT_OPEN, str(descriptor)]
    careless = await asyncio.create_subprocess_exec(*argv, close_fds=False, stdout=asyncio.subprocess.PIPE)
    said, _ = await careless.communicate()
    assert said == b"open\n"
    ran = await run(made(kind), tmp_path, argv, timeout_s=60)
    os.close(descriptor)
    assert "Bad file descriptor" in ran.stderr


@pytest.mark.parametrize("account", ACCOUNTS)
def test_in_a_container_it_is_landlock_that_is_found(account: str) -> None:
    async def names() -> list[str | None]:
        found = await find()
        return [found.name if found else None]

    assert done_as(ACCOUNTS[account], names, before=container.enter) == ["landlock"]


def _niceness(process: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, process)


def _tried(kind: str, place: Path, account: int) -> Found:
    async def work() -> Found:
        with tempfile.TemporaryDirectory(dir=place) as own:
            os.mkdir(folder := Path(own, "folder"), 0o700)
            shutil.copy(attempts.__file__, folder / "attempts.py")
            async with outside(Path(own)) as reached:
                niceness = _niceness(reached["bystander"])
                told = json.dumps(reached).encode()
                confinement = await find() if kind == IN_CONTAINER else made(kind)
                assert confinement
                ran = await run(confinement, folder, ["python3", "attempts.py"], timeout_s=60, stdin=told)
                seen = {
                    "signal a process by a descriptor": not is_running(reached["victim"]),
                    "slow everything of the account down": _niceness(reached["bystander"]) != niceness,
                }
            assert ran.exit_code == 0, ran
            return json.loads(ran.stdout) | seen

    return done_as(account, work, before=container.enter if kind == IN_CONTAINER else lambda: None)
