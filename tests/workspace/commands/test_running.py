"""A command from its start to its end, whatever it does, in each confinement that works here."""

import asyncio
import os
import platform
import shutil
import signal
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import until
from tests.workspace.accounts import accounts, done_as, fork
from tests.workspace.kinds import made, usable
from workspace.commands.running import CommandResult, Limits, run_process
from workspace.confinement import base
from workspace.confinement.base import PATH, Confinement

pytestmark = pytest.mark.long
SECONDS = 240
OWN = Path("/proc/self")
ACCOUNTS = accounts()
VENV_AND_GIT = """
set -e
python3 -m venv own
own/bin/python -m pip --version >&2
own/bin/python -c 'import getpass, platform; print(getpass.getuser(), bool(platform.freedesktop_os_release()))'
echo "$USER $LOGNAME"
git init -q a
cd a
echo x >f
git add f
git commit -qm first
git clone -q . ../b
git worktree add -q ../c
git config --global a.b c
git stash list
git gc -q
cd ../b
git log --format=%an,%s
"""


@pytest.fixture(params=[*usable(), "none"])
def confinement(request: pytest.FixtureRequest) -> Confinement:
    return made(request.param)


@pytest.fixture(params=usable())
def real_confinement(request: pytest.FixtureRequest) -> Confinement:
    return made(request.param)


async def sh(
    confinement: Confinement, folder: Path, script: str, *, timeout_s: int = SECONDS, stop: asyncio.Event | None = None
) -> CommandResult:
    return await run_process(confinement, folder, ["sh", "-c", script], timeout_s=timeout_s, stop=stop)


async def test_it_ends_as_it_ends(confinement: Confinement, tmp_path: Path) -> None:
    ran = await sh(confinement, tmp_path, "echo said; echo wrong >&2; cat; exit 3")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, "said\n", "wrong\n")
    assert (ran.truncated, ran.timed_out, ran.stopped) == (False, False, False)
    assert (await sh(confinement, tmp_path, "kill -TERM 0")).exit_code == 128 + 15


@pytest.mark.parametrize("kind", [*usable(old=True), "none"])
async def test_it_works_in_its_folder(kind: str, tmp_path: Path) -> None:
    script = (
        "mkdir -p a/b && echo text > a/b/c && chmod 750 a/b/c && chmod +x a/b/c && touch -d 2001-01-01T00:00Z a/b/c && "
        "mv a/b/c a/d && ln -s d a/e && cat a/e && cp -p a/d f && tar cf g a && tar xf g --no-same-owner && "
        "cat <(cat f) && mktemp -d"
    )
    ran = await run_process(made(kind), tmp_path, ["bash", "-c", script], timeout_s=SECONDS)
    assert ran.exit_code == 0, ran
    assert ran.stdout.startswith("text\ntext\n")
    status = (tmp_path / "f").stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o750 | 0o111, 978307200)
    assert sorted(os.listdir(tmp_path)) == ["a", "f", "g"]


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("kind", usable(old=True))
async def test_virtual_environments_and_git_work(kind: str, tmp_path: Path) -> None:
    ran = await run_process(made(kind), tmp_path, ["bash", "-c", VENV_AND_GIT], timeout_s=SECONDS)
    assert ran.exit_code == 0, ran
    me = "todo-assistant"
    assert ran.stdout.splitlines() == [f"{me} True", f"{me} {me}", f"{me},first"]
    assert "pip" in ran.stderr


async def test_a_time_limit_keeps_what_was_said(confinement: Confinement, tmp_path: Path) -> None:
    ran = await sh(confinement, tmp_path, "echo before; echo wrong >&2; sleep 100", timeout_s=8)
    assert (ran.exit_code, ran.stdout, ran.timed_out) == (124, "before\n", True)
    assert ran.stderr == "wrong\n[stopped at the time limit of 8 seconds]"
    assert ran.seconds < 90


SLEEP = f"sleep {100_000 + os.getpid()}"  # for so many seconds nobody else does
SLEEPING = f"{SLEEP} ".replace(" ", "\0").encode()
LEFT = 4  # processes of the next line
LEAVE = f"({SLEEP} & setsid {SLEEP} & setsid sh -c 'setsid {SLEEP} & {SLEEP}' &) >/dev/null 2>&1 </dev/null; {{}}"


async def test_without_a_confinement_what_has_a_session_of_its_own_is_left(tmp_path: Path) -> None:
    """So what the next test finds is the confinements' doing."""
    stop = asyncio.Event()
    running = asyncio.create_task(sh(made("none"), tmp_path, LEAVE.format("sleep 300"), stop=stop))
    await until(lambda: len(all_with(SLEEPING)) == LEFT)
    stop.set()
    await running
    left = all_with(SLEEPING)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)
    assert left


@pytest.mark.parametrize("end", ["true", "sleep 300"])
async def test_it_leaves_no_process_behind(real_confinement: Confinement, tmp_path: Path, end: str) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(sh(real_confinement, tmp_path, LEAVE.format(f"touch left; {end}"), stop=stop))
    await until((tmp_path / "left").exists)
    if end != "true":  # which ends by itself
        stop.set()
    await running
    await until(lambda: not all_with(SLEEPING))


FORKING = f"forking-all-the-time-{os.getpid()}"
# ELF's number of the processor, and: a new session, if asked for; fork; all again in the child; exit in the parent.
MACHINE_CODE = {
    ("x86_64", "fork"): (62, "b839000000 0f05 85c0 74f5 b83c000000 31ff 0f05"),
    ("x86_64", "session"): (62, "b870000000 0f05 b839000000 0f05 85c0 74ee b83c000000 31ff 0f05"),
    ("aarch64", "fork"): (
        183,
        "881b80d2 200280d2 010080d2 020080d2 030080d2 040080d2 010000d4 20ffffb4 a80b80d2 000080d2 010000d4",
    ),
    ("aarch64", "session"): (
        183,
        "a81380d2 010000d4 881b80d2 200280d2 010080d2 020080d2 030080d2 040080d2 010000d4 e0feffb4 a80b80d2 000080d2"
        " 010000d4",
    ),
}


def write_forking_program(path: Path, kind: str) -> None:
    """Writes a program that is never seen alive for long: a script would fork too slowly to be missed."""
    machine, code = MACHINE_CODE[platform.machine(), kind]
    base, start = 0x400000, 64 + 56
    identification = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, base + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    size = start + len(bytes.fromhex(code))
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    path.write_bytes(identification + header + segment + bytes.fromhex(code))
    path.chmod(0o755)


@pytest.mark.parametrize("kind", ["fork", "session"])
@pytest.mark.parametrize("end", ["exit", "sleep 300"])
async def test_processes_that_fork_all_the_time_end(
    real_confinement: Confinement, tmp_path: Path, kind: str, end: str
) -> None:
    """Each is gone before it can be killed, and has left another one."""
    write_forking_program(tmp_path / FORKING, kind)
    start = f"for chain in $(seq 8); do ./{FORKING} & done; touch forking; {end}"
    stop = asyncio.Event()
    running = asyncio.create_task(
        run_process(real_confinement, tmp_path, ["sh", "-c", start], timeout_s=SECONDS, stop=stop)
    )
    await until((tmp_path / "forking").exists)
    await asyncio.sleep(0.2)
    began = time.monotonic()
    stop.set()
    await running
    seconds = time.monotonic() - began
    left = all_with(FORKING.encode())
    for process in left:
        with suppress(OSError):
            os.killpg(os.getpgid(int(process.name)), signal.SIGKILL)
    assert not left
    assert seconds < 120  # one by one they are killed much later, or never


@pytest.mark.parametrize("kind", usable())
def test_it_ends_with_the_service(kind: str, tmp_path: Path) -> None:
    """However that ends."""
    service = fork()
    if service == 0:
        asyncio.run(sh(made(kind), tmp_path, LEAVE.format("touch left; sleep 300")))
    asyncio.run(until((tmp_path / "left").exists))
    os.kill(service, signal.SIGKILL)
    os.waitpid(service, 0)
    asyncio.run(until(lambda: not all_with(SLEEPING)))


@pytest.mark.parametrize("kind", usable())
async def test_it_ends_before_a_service_does_where_memory_runs_out(kind: str, tmp_path: Path) -> None:
    """And before a launcher that is no process of its namespace, whose end would leave its daemons without a limit."""
    mark = f"echo {tmp_path.name}"
    running = asyncio.create_task(sh(made(kind), tmp_path, f"touch begun; sleep 300; {mark}"))
    await until((tmp_path / "begun").exists)
    processes = all_with(mark.encode())
    launchers = [process for process in processes if b"/dev/fd/" in (process / "cmdline").read_bytes()]
    scores = {process: oom_score(process) for process in processes}
    running.cancel()
    await asyncio.wait([running])
    assert len(processes) > len(launchers) > 0
    assert {scores[process] for process in processes if process not in launchers} == {"500\n"}
    if kind == "landlock":
        assert {scores[process] for process in launchers} == {oom_score(OWN)}


@pytest.mark.parametrize("argv", [["java", "-version"], ["node", "-e", "fetch('http://127.0.0.1:1').catch(() => {})"]])
async def test_programs_that_reserve_many_addresses_start(
    real_confinement: Confinement, tmp_path: Path, argv: list[str]
) -> None:
    if not shutil.which(argv[0], path=PATH):
        pytest.skip(f"{argv[0]} is not installed")
    ran = await run_process(real_confinement, tmp_path, argv, timeout_s=SECONDS)
    assert ran.exit_code == 0, ran


BAD_CALLS = """
import ctypes
libc = ctypes.CDLL(None)
for address in (2**64 - 1, 2**63, 2**63 - 1, 1, 0):
    pointer = ctypes.c_void_p(address)
    libc.chmod(pointer, 0)
    libc.utimensat(-100, pointer, pointer, 0)
    libc.utimensat(-100, b"file", pointer, 0)
for descriptor in (-1, -100, 1 << 20, 2**31 - 1):
    libc.fchmod(descriptor, 0o700)
    libc.futimens(descriptor, None)
    libc.fchmodat(descriptor, b"x", 0o700, 0)
"""


async def test_no_system_call_ends_the_launcher(real_confinement: Confinement, tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(BAD_CALLS)
    ran = await sh(real_confinement, tmp_path, "touch file && python3 calls.py && chmod 700 file && echo well")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "well\n", "")


NEST = """
import os
os.chdir(os.environ["TMPDIR"])
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.chmod(os.environ["TMPDIR"] + "/d", 0)
"""


async def test_what_a_command_leaves_in_its_temporary_directory_is_removed(
    real_confinement: Confinement, tmp_path: Path
) -> None:
    ran = await run_process(real_confinement, tmp_path, ["python3", "-c", NEST], timeout_s=SECONDS)
    assert (ran.exit_code, ran.stderr, os.listdir(tmp_path)) == (0, "", [])


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("kind", usable())
def test_it_knows_its_user(kind: str, account: str) -> None:
    """By the same name for each account, also one that this machine has no name for."""

    async def names() -> CommandResult:
        with tempfile.TemporaryDirectory() as folder:
            return await sh(made(kind), Path(folder), "whoami; cd /; whoami")

    ran = done_as(ACCOUNTS[account], names)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "todo-assistant\n" * 2, "")


LOOKUPS = """
import grp, os, pwd, socket, threading, urllib.request
from http.server import HTTPServer, SimpleHTTPRequestHandler
user = pwd.getpwuid(os.getuid())
print(user.pw_name, user.pw_dir == os.environ["HOME"], grp.getgrgid(os.getgid()).gr_name)
print([user.pw_name for user in pwd.getpwall()])
print("127.0.0.1" in {where[4][0] for where in socket.getaddrinfo("localhost", 80)})
print(socket.gethostbyname("localhost"), socket.gethostbyname(socket.gethostname()))
server = HTTPServer(("localhost", 0), SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}").status)
"""


@pytest.mark.parametrize("kind", [kind for kind in usable() if kind == "bubblewrap"])
async def test_it_finds_its_user_and_localhost_in_namespaces(kind: str, tmp_path: Path) -> None:
    ran = await run_process(made(kind), tmp_path, ["python3", "-c", LOOKUPS], timeout_s=SECONDS)
    assert ran.stdout.splitlines() == [
        "todo-assistant True todo-assistant",
        "['todo-assistant', 'nobody']",
        "True",
        "127.0.0.1 127.0.1.1",
        "200",
    ], ran
    change = (
        "cd /etc; for file in passwd group hosts; do chmod 666 $file; echo x >>$file; rm -f $file; done; wc -l passwd"
    )
    ran = await sh(made(kind), tmp_path, change)
    assert (ran.stdout, ran.stderr.count("Read-only file system")) == ("2 passwd\n", 6)


@pytest.mark.parametrize("planted", [".todo-tmp", ".todo-tmp/bin", ".todo-tmp/home"])
async def test_links_in_its_temporary_directory_are_not_followed(
    real_confinement: Confinement, tmp_path: Path, planted: str
) -> None:
    """An agent may plant them, and the service removes what is there before and after a command."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    for name in ("bin", "home"):
        (outside / name).mkdir(parents=True)
    (outside / "bin/whoami").write_text("kept")
    link = folder / planted
    link.parent.mkdir(parents=True)
    if link.name == "bin":
        (link.parent / "home").mkdir()
    link.symlink_to(outside / planted.removeprefix(".todo-tmp").removeprefix("/"))
    assert (await sh(real_confinement, folder, "whoami")).stdout == "todo-assistant\n"
    kept = sorted(path.relative_to(outside).as_posix() for path in outside.rglob("*"))
    assert kept == ["bin", "bin/whoami", "home"]


async def test_its_home_holds_nothing_that_an_agent_wrote(real_confinement: Confinement, tmp_path: Path) -> None:
    planted = tmp_path / ".todo-tmp/home"
    planted.mkdir(parents=True)
    for name in (".bash_profile", ".profile", ".bashrc", ".gitconfig"):
        (planted / name).write_text("touch planted\n")
        (tmp_path / name).write_text("touch planted\n")
    ran = await sh(real_confinement, tmp_path, 'ls -A "$HOME"; bash -lc true; git --version >&2; ls')
    assert (ran.stdout, ran.stderr[:11]) == ("", "git version")


EPOLL = """
import os, select
registered = 0
polls = [select.epoll() for _ in range(100)]
files = [os.pipe()[0] for _ in range(60)]
try:
    for number in range(230, 255):
        for file in files:
            os.dup2(file, number)
            for poll in polls:
                poll.register(number, select.EPOLLIN)
                registered += 1
except OSError as error:
    print(registered, error.strerror)
else:
    print(registered)
"""


async def test_a_command_takes_few_of_the_accounts_epoll_watches(
    real_confinement: Confinement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few hundred descriptors make many thousand watches, and where none is left, services of the account end."""
    few = tmp_path / "max_user_watches"
    few.write_text(str(base.SHARE * 20_000))
    monkeypatch.setattr(base, "MAX_USER_WATCHES", few)
    ran = await run_process(real_confinement, tmp_path, ["python3", "-c", EPOLL], timeout_s=SECONDS)
    assert ran.stdout == "20000 No space left on device\n"


# 256 processes where nothing bounds them, which stay; a real one would be a burden on the machine. Each says what it is
# about to fork and what failed, and at last that it is there, so that the first knows when all have come.
BOMB = f"""
process_of_the_test = {os.getpid()}
import os, time
first, (reader, writer) = os.getpid(), os.pipe()
for _ in range(8):
    os.write(writer, b"+")
    try: os.fork()
    except OSError:
        os.write(writer, b"-")
        break
os.write(writer, b"x")
if os.getpid() != first: time.sleep(300)
said = b""
while said.count(b"x") <= said.count(b"+") - said.count(b"-"): said += os.read(reader, 1000)
print(said.count(b"x"))
"""


@pytest.mark.parametrize("kind", usable())
@pytest.mark.parametrize("account", accounts())
def test_a_bomb_of_processes_is_bounded_and_ended(kind: str, account: str) -> None:
    """Root is not bounded, which is why the service refuses to run as root; but it is ended.

    What else the account has running does not count.
    """

    async def work() -> list[CommandResult]:
        others = [await asyncio.create_subprocess_exec("sleep", "300") for _ in range(100)]
        try:
            with tempfile.TemporaryDirectory() as folder:
                several = [Limits(processes=400), Limits(processes=32)]
                argv = ["python3", "-c", BOMB]
                return [
                    await run_process(made(kind), Path(folder), argv, timeout_s=SECONDS, limits=each)
                    for each in several
                ]
        finally:
            for other in others:
                other.kill()
                await other.wait()

    free, bounded = [int(ran.stdout) for ran in done_as(accounts()[account], work)]
    assert free == 256
    most = 32 if made(kind).has_separate_count else 4 * 32
    assert bounded == 256 if account == "root" else 16 < bounded <= most
    assert not all_with(BOMB.encode())


@pytest.mark.parametrize("kind", [*usable(), "none"])
def test_no_file_is_longer_than_may_be(kind: str, tmp_path: Path) -> None:
    def made_of(limits: Limits) -> int:
        argv = ["sh", "-c", "truncate -s 10G much; head -c 3000000 /dev/zero >> much; stat -c %s much"]
        ran = asyncio.run(run_process(made(kind), tmp_path, argv, timeout_s=SECONDS, limits=limits))
        (tmp_path / "much").unlink()
        return int(ran.stdout)

    assert made_of(Limits(file_bytes=20 * 1024**3)) == 10 * 1024**3 + 3_000_000
    assert made_of(Limits(file_bytes=1024**2)) == 1024**2


async def test_no_process_has_more_memory_than_may_be(confinement: Confinement, tmp_path: Path) -> None:
    argv = ["python3", "-c", "print(len(bytearray(300 << 20)))"]
    enough, less = Limits(), Limits(memory_bytes=200 * 1024**2)
    assert (await run_process(confinement, tmp_path, argv, timeout_s=SECONDS, limits=enough)).exit_code == 0
    assert "MemoryError" in (await run_process(confinement, tmp_path, argv, timeout_s=SECONDS, limits=less)).stderr


@pytest.mark.parametrize("kind", usable())
def test_forty_commands_of_another_account_at_once(kind: str) -> None:
    """What one leaves or counts is not another's."""

    async def work() -> list[CommandResult]:
        with tempfile.TemporaryDirectory() as place:
            folders = [Path(place, str(number)) for number in range(40)]
            for folder in folders:
                folder.mkdir()
            argv = ["sh", "-c", "echo $0 > mine; sleep 0.2; cat mine; ls ..; true"]
            return await asyncio.gather(
                *(run_process(made(kind), folder, [*argv, folder.name], timeout_s=SECONDS) for folder in folders)
            )

    found = done_as(list(accounts().values())[-1], work)
    assert [(ran.exit_code, ran.stdout.split()[0]) for ran in found] == [(0, str(number)) for number in range(40)]
    assert not any("0" in ran.stdout.split()[1:] for ran in found)


def oom_score(process: Path) -> str:
    return (process / "oom_score_adj").read_text()


def all_with(mark: bytes) -> list[Path]:
    found: list[Path] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if mark in Path("/proc", name, "cmdline").read_bytes():
                found.append(Path("/proc", name))
    return found
