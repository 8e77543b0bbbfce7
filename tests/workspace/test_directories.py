# ruff: noqa: ASYNC221, ASYNC240 - what blocks here blocks only the test
"""Conversations that work in a directory of the user's: which are refused, what stays, and what cannot escape."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.processes import ServiceProcess
from tests.workspace.confinement import attempts
from tests.workspace.confinement.test_escapes import CALLS, refused_calls
from tests.workspace.kinds import usable
from tests.workspace.outside import is_running, outside
from tests.workspace.running import ACCOUNT, Person, acting, service

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[2]
OWNER = ACCOUNT or os.getuid()
KINDS = usable()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A home, in which the data directory and projects are, of the account that runs the workspace."""
    home = Path(tempfile.mkdtemp(prefix="todo-home-")).resolve()
    for name in ("data", "data/workspaces"):
        (home / name).mkdir(mode=0o700)
    given_to_owner(home)
    home.chmod(0o711)
    yield home
    shutil.rmtree(home)


@contextmanager
def served(place: Path, log: Path, kind: str, **variables: str) -> Iterator[ServiceProcess]:
    given = {"WORKSPACE_DATA_DIR": str(place / "data"), "WORKSPACE_CONFINEMENT": kind, "HOME": str(place)}
    process = service(place / "data/workspaces", log, **(given | variables))
    process.start()
    process.wait_until_ready()
    yield process
    assert process.end() == 0
    assert "Traceback" not in process.log_text


@pytest.fixture(scope="module", params=KINDS)
def workspace(
    request: pytest.FixtureRequest, place: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceProcess]:
    limits = {"LIMIT_FOLDER_BYTES": "60000000", "LIMIT_FOLDER_FILES": "300"}
    with served(place, tmp_path_factory.mktemp("workspace") / "log", request.param, **limits) as process:
        yield process


@pytest.fixture
def can_write(workspace: ServiceProcess) -> bool:
    """Whether commands may write in directories of the user's."""
    return workspace.environment["WORKSPACE_CONFINEMENT"] == "bubblewrap"


@pytest.fixture
def project(place: Path) -> Iterator[Path]:
    """A git repository with files that conversations leave alone."""
    path = Path(tempfile.mkdtemp(prefix="project-", dir=place))
    (path / "src").mkdir()
    (path / "src/main.py").write_text("print('hello')\n")
    (path / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (path / "run.sh").chmod(0o750)
    (path / "closed").mkdir()
    (path / "closed/notes").write_text("private\n")
    (path / "link").symlink_to("/etc/passwd")
    git(path, "init", "-q", "-b", "main")
    git(path, "add", "src", "run.sh")
    git(path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    given_to_owner(path)
    (path / "closed").chmod(0o000)
    yield path
    (path / "closed").chmod(0o700)
    shutil.rmtree(path)


@pytest.fixture
async def here(workspace: ServiceProcess, project: Path) -> AsyncIterator[Person]:
    async with acting(workspace.url, directory=str(project)) as person:
        yield person


def git(path: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(path), *arguments], check=True, capture_output=True)


def given_to_owner(path: Path) -> None:
    if ACCOUNT:
        for one in (path, *path.rglob("*")):
            os.chown(one, ACCOUNT, ACCOUNT, follow_symlinks=False)


def state_of(path: Path) -> dict[str, tuple[object, ...]]:
    """Every file with its kind, mode, owner, size, time and content."""
    found: dict[str, tuple[object, ...]] = {}
    for one in sorted(path.rglob("*")):
        status = one.lstat()
        content = one.read_bytes() if one.is_file() and not one.is_symlink() else None
        kept = (status.st_mode, status.st_uid, status.st_ino, status.st_nlink, content)
        found[str(one.relative_to(path))] = (*kept, status.st_mtime_ns if one.is_file() else None)
    return found


async def error_of(workspace: ServiceProcess, directory: str) -> str | None:
    """What is said of a directory in which no conversation may work."""
    async with acting(workspace.url, directory=directory) as person:
        answer = await person.http.get("/directory")
        tool = await person.client.call_tool_mcp("write_file", {"path": "a", "content": "b"}, meta={"todo/folder": "c"})
        assert tool.is_error is not answer.is_success
        return None if answer.is_success else answer.json()["error"]


class TestRefusedDirectories:
    async def test_refused(self, workspace: ServiceProcess, place: Path, project: Path) -> None:
        somebody_elses = Path(tempfile.mkdtemp(prefix="todo-elses-"))
        somebody_elses.chmod(0o755)
        (place / "door").symlink_to(project)
        (project / "inner").symlink_to(place / "data")
        rows = {
            "/": "not valid",
            "": "not valid",
            "relative": "not valid",
            f"{project}/": "not valid",
            f"{project}/../{project.name}": "not valid",
            f"{project}/./src": "not valid",
            f"{project}\n": "not valid",
            str(place): "home directory",
            str(place.parent): "does not belong" if ACCOUNT else "",
            str(place / "data"): "its data",
            str(place / "data/workspaces"): "its data",
            str(CHECKOUT): "does not belong" if ACCOUNT else "this program",
            str(CHECKOUT / "docs"): "does not belong" if ACCOUNT else "this program",
            str(place / "door"): "without following links",
            str(project / "inner/workspaces"): "without following links",
            str(place / "nothing"): "without following links",
            str(project / "run.sh"): "without following links",
            str(project / ".git"): "git keeps",
            str(project / ".git/hooks"): "git keeps",
            f"/proc/{os.getpid()}/cwd": "without following links",
            f"/proc/{os.getpid()}/task": "",
            "/proc/self/fd": "",
            "/etc": "does not belong",
            "/usr/local": "",
            "/dev/shm": "",
        }
        if ACCOUNT:
            rows[str(somebody_elses)] = "does not belong"
        try:
            for directory, why in rows.items():
                error = await error_of(workspace, directory)
                assert error is not None, directory
                assert why in error, (directory, error)
        finally:
            (place / "door").unlink()
            (project / "inner").unlink()
            somebody_elses.rmdir()

    async def test_other_names_of_refused_directories(self, workspace: ServiceProcess, place: Path) -> None:
        """What is mounted a second time is recognized, whatever it is called."""
        if os.getuid() != 0:
            pytest.skip("mounting needs root")
        alias = place / "alias"
        alias.mkdir()
        given_to_owner(alias)
        subprocess.run(["mount", "--bind", str(place / "data"), str(alias)], check=True)
        try:
            for name in ("alias", "alias/workspaces"):
                assert "its data" in (await error_of(workspace, str(place / name)) or "")
        finally:
            subprocess.run(["umount", str(alias)], check=True)
            alias.rmdir()

    async def test_without_the_data_directory(self, project: Path, tmp_path: Path) -> None:
        with tempfile.TemporaryDirectory() as root:
            os.chmod(root, 0o711)
            (folders := Path(root, "workspaces")).mkdir(mode=0o700)
            given_to_owner(folders)
            process = service(folders, tmp_path / "log")
            process.start()
            process.wait_until_ready()
            error = await error_of(process, str(project))
            process.end()
        assert error is not None
        assert "./todo up" in error


class TestFiles:
    async def test_read_written_and_edited(self, here: Person, project: Path) -> None:
        assert (await here.call("read_file", path="src/main.py"))[0].endswith("1: print('hello')")
        listed, _ = await here.call("list_files", depth=2)
        assert "src/main.py" in listed
        await here.call("write_file", path="new/notes.md", content="x\n")
        await here.call("edit_file", path="src/main.py", old_text="hello", new_text="bye")
        await here.call("write_file", path="run.sh", content="#!/bin/sh\n")
        assert (project / "new/notes.md").read_text() == "x\n"
        assert (project / "src/main.py").read_text() == "print('bye')\n"
        assert (project / "run.sh").stat().st_mode & 0o777 == 0o750
        assert {one.lstat().st_uid for one in project.rglob("*")} == {OWNER}
        assert not [*project.rglob(".todo-*")]

    async def test_git_and_what_is_outside_are_not_written(self, here: Person, project: Path) -> None:
        before = state_of(project)
        for path in (
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/x",
            ".GIT/config",
            "src/.git/config",
            "a/.git",
            "link",
        ):
            assert await here.refusal("write_file", path=path, content="[core]\n")
        assert await here.refusal("edit_file", path=".git/config", old_text="[core]", new_text="x")
        for path in ("../x", "/etc/passwd", "link", "closed/notes"):
            assert await here.refusal("read_file", path=path)
        assert "read-only" in await here.refusal("commit", message="mine")
        assert state_of(project) == before

    async def test_quotas_ignore_what_was_there(self, here: Person, project: Path) -> None:
        """The limits of a folder are 60 MB and 300 files."""
        (project / "large").touch()
        os.truncate(project / "large", 100_000_000)
        for number in range(400):
            (project / f"file{number}").touch()
        given_to_owner(project)
        await here.call("write_file", path="one-more", content="x")
        _, ran = await here.call("run_command", command="echo ran; ls | wc -l")
        assert ran["exit_code"] == 0, ran
        assert ran["stdout"].startswith("ran")


class TestNeverTouched:
    """No operation but the coder's own changes anything in the directory."""

    async def test_uploads_deletion_copies_and_listing(
        self, workspace: ServiceProcess, here: Person, project: Path
    ) -> None:
        before = state_of(project)
        assert (await here.http.put("/files/cnv_1/src/main.py", content=b"mine")).status_code == 400
        assert (await here.http.put("/files/cnv_1/new", content=b"mine")).status_code == 400
        assert (await here.http.delete("/files/cnv_1/src/main.py")).status_code == 400
        assert (await here.http.post("/uploads/cnv_1/cnv_2")).status_code == 400
        assert (await here.http.get("/files/cnv_1")).is_success
        assert (await here.http.delete("/files/cnv_1")).is_success
        assert (await here.http.delete("/files")).is_success
        async with acting(workspace.url) as without:  # as the backend deletes and copies
            await without.http.put("/files/cnv_1/mine", content=b"mine")
            await without.http.post("/uploads/cnv_2/cnv_1")
            await without.http.post("/uploads/cnv_1/cnv_2")
            await without.http.delete("/files/cnv_1")
            await without.http.delete("/files")
        assert state_of(project) == before

    async def test_forget_export_and_clean_up(
        self, workspace: ServiceProcess, here: Person, project: Path, place: Path
    ) -> None:
        await here.call("run_command", command="true")  # the conversation has a folder for its results
        before = state_of(project)
        variables = {**os.environ, "WORKSPACE_DIR": str(place / "data/workspaces"), "PYTHONPATH": str(CHECKOUT)}
        for arguments in (["export", "--user", "alice"], ["forget", "--user", "alice"]):
            command = [CHECKOUT / ".venv/bin/python", "-m", "workspace", *arguments]
            process = await asyncio.create_subprocess_exec(*map(str, command), env=variables, cwd=CHECKOUT)
            await process.wait()
        from workspace.files.folder import Store
        from workspace.files.quota import Quota

        await here.call("run_command", command="true")
        given_to_owner(place / "data")
        Store(place / "data/workspaces", Quota(1, 1)).remove_unused(before=2**33)
        assert state_of(project) == before


ATTACKS_ON_GIT = [
    "echo '[core] fsmonitor=x' >> .git/config",
    "rm -rf .git",
    "rm .git/config",
    "mv .git old",
    "mv .git/config .git/old",
    "mv .git/hooks .git/old",
    "touch .git/hooks/pre-commit",
    "touch .git/commondir",
    "touch .git/config.worktree",
    "ln .git/config mine && echo x >> mine",
    "ln -sf /tmp .git/hooks",
    "ln -sfn /tmp .git",
    "chmod 777 .git/config",
    "git config core.fsmonitor x",
    "git init -q",
    "mount -o remount,rw .git",
    "umount .git",
    "cd .git && touch x",
    "exec 3<.git && touch /proc/self/fd/3/x",
    "mkdir x && mount --bind x .git",
    "git worktree add ../w",
    "truncate -s 0 .git/config",
    "python3 -c \"import os; os.rename('.git', 'y')\"",
    "python3 -c \"import os; os.replace('src/main.py', '.git/config')\"",
    "git commit --allow-empty -qm mine",
]
ATTACKS_ON_OTHERS = [
    "cat {outside}/secret",
    "echo x > {outside}/new",
    "cat {home}/data/workspaces/*/*/*",
    "ls {home}/data",
    "touch {home}/new",
    "cat closed/../../secret",
    "ln -s {outside}/secret s && cat s",
    "ln {outside}/secret h",
    "cat /etc/passwd",
    "cat link",
    "cd .. && cat outside/secret",
    "cat /proc/1/root{outside}/secret",
    "for p in /proc/[0-9]*; do for d in $p/fd/*; do cat $d/../outside/secret $d/outside/secret; done; done",
    "for d in 3 4 5 6 7 8 9 10 11 12 13; do cat /dev/fd/$d/../outside/secret /proc/self/fd/$d/secret; done",
]


@pytest.fixture
def secret(place: Path) -> Iterator[Path]:
    """A directory beside the project."""
    path = place / "outside"
    path.mkdir()
    (path / "secret").write_text("the secret plan\n")
    given_to_owner(path)
    yield path
    shutil.rmtree(path)


class TestCommands:
    async def test_work_in_the_directory(self, here: Person, project: Path, can_write: bool) -> None:
        _, ran = await here.call("run_command", command="cat src/main.py; sh run.sh; git log --oneline | wc -l")
        assert (ran["exit_code"], ran["stdout"]) == (0, "print('hello')\nran\n1\n"), ran
        assert "src/main.py:1:" in (await here.call("search_files", pattern="hello"))[0]
        _, ran = await here.call("run_python", code="open('made', 'w').write('x'); print('ok')")
        assert (project / "made").exists() is can_write
        assert (ran["exit_code"] == 0) is can_write
        assert ("only read" in ran["stderr"]) is not can_write
        _, ran = await here.call("run_command", command='echo x > "$TMPDIR/x" && cat "$TMPDIR/x"; ls -A "$HOME"')
        assert ran["stdout"] == "x\n"
        if can_write:
            _, ran = await here.call("run_command", command="mv src lib && rm made && echo y > lib/new")
            assert {one["path"] for one in ran["files"]} == {"lib/main.py", "lib/new"}
            assert (project / "lib/new").stat().st_uid == OWNER

    async def test_git_cannot_be_changed(self, here: Person, project: Path) -> None:
        before = state_of(project / ".git")
        for attack in ATTACKS_ON_GIT:
            await here.call("run_command", command=attack)
            assert state_of(project / ".git") == before, attack

    async def test_no_repository_can_be_made(self, here: Person, project: Path, can_write: bool) -> None:
        shutil.rmtree(project / ".git")
        for attack in (
            "git init",
            "mkdir .git; touch .git/config",
            "rmdir .git; mkdir .git; touch .git/HEAD",
            "touch .git",
        ):
            await here.call("run_command", command=attack)
            assert not (project / ".git").exists(), attack
        _, ran = await here.call("run_command", command="touch made")
        assert (ran["exit_code"] == 0) is can_write

    async def test_other_repositories_in_it_make_it_read_only(self, here: Person, project: Path) -> None:
        (project / "vendor/sub").mkdir(parents=True)
        (project / "vendor/sub/.git").write_text("gitdir: ../../.git/modules/sub\n")
        given_to_owner(project)
        before = state_of(project)
        _, ran = await here.call("run_command", command="rm vendor/sub/.git; mv vendor x; touch y")
        assert "only read" in ran["stderr"]
        assert state_of(project) == before

    async def test_a_git_directory_of_another_name_makes_it_read_only(self, here: Person, project: Path) -> None:
        git(project, "init", "-q", "--bare", "served.git")
        given_to_owner(project / "served.git")
        _, ran = await here.call("run_command", command="echo x >served.git/hooks/pre-receive")
        assert "only read" in ran["stderr"]
        assert not (project / "served.git/hooks/pre-receive").exists()

    @pytest.mark.parametrize("link", [True, False], ids=["link", "file"])
    async def test_nothing_is_done_where_git_is_kept_under_another_name(
        self, here: Person, project: Path, link: bool
    ) -> None:
        (project / ".git").rename(project / "bare")
        if link:
            (project / ".git").symlink_to("bare")
        else:
            (project / ".git").write_text("gitdir: ./bare\n")
        given_to_owner(project)
        for name, arguments in (("run_command", {"command": "ls"}), ("write_file", {"path": "bare/x", "content": "x"})):
            with pytest.raises(AssertionError, match=r"its \.git"):
                await here.call(name, **arguments)
        assert not (project / "bare/x").exists()

    async def test_nothing_outside_is_reached(self, here: Person, project: Path, secret: Path) -> None:
        values = {"outside": secret, "home": project.parent}
        for attack in ATTACKS_ON_OTHERS:
            _, ran = await here.call("run_command", command=attack.format(**values))
            assert "plan" not in ran["stdout"], (attack, ran)
            assert "root:" not in ran["stdout"], (attack, ran)
        assert os.listdir(secret) == ["secret"]
        assert not (project.parent / "new").exists()

    async def test_sockets_of_programs_outside_are_not_reached(self, here: Person, project: Path) -> None:
        """As those of a database that a project has in its directory."""
        received: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            received.append(await reader.read(10))
            writer.close()

        (project / "run").mkdir()
        server = await asyncio.start_unix_server(serve, project / "run/stream")
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(str(project / "run/datagrams"))
        datagrams.setblocking(False)
        given_to_owner(project / "run")
        attacks = (
            "s = socket.socket(socket.AF_UNIX); s.connect('run/stream'); s.send(b'x')",
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', 'run/datagrams')",
            "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', 'run/datagrams')",
            "s, _ = socket.socketpair(); s.connect('run/stream'); s.send(b'x')",
            "s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.sendto(b'x', 'run/datagrams')",
        )
        for attack in attacks:
            await here.call("run_python", code=f"import socket\n{attack}")
        server.close()
        with datagrams, pytest.raises(BlockingIOError):
            datagrams.recv(1)
        assert received == []

    async def test_a_directory_swapped_for_a_link(self, workspace: ServiceProcess, project: Path, secret: Path) -> None:
        """A command never works where a link leads to that has taken the directory's name."""
        aside = project.with_name("aside")
        stopped = asyncio.Event()

        async def swap() -> None:
            while not stopped.is_set():
                project.rename(aside)
                project.symlink_to(secret)
                await asyncio.sleep(0.001)
                project.unlink()
                aside.rename(project)
                await asyncio.sleep(0.001)

        async with acting(workspace.url, directory=str(project)) as person:
            swapping = asyncio.create_task(swap())
            call = partial(person.client.call_tool_mcp, meta={"todo/folder": "c"})
            for _ in range(30):
                told = await call("run_command", {"command": "cat secret; touch came"})
                assert "plan" not in str(told.content), told
                await call("write_file", {"path": "w", "content": "x"})
            stopped.set()
            await swapping
        assert os.listdir(secret) == ["secret"]

    async def test_what_is_added_is_limited(self, here: Person, project: Path, can_write: bool) -> None:
        """The limit of 60 MB counts from what was there."""
        (project / "large").touch()
        os.truncate(project / "large", 100_000_000)
        given_to_owner(project)
        _, ran = await here.call("run_command", command="head -c 30000000 /dev/zero > a; echo $?")
        if not can_write:
            assert "only read" in ran["stderr"]
            assert not (project / "a").exists()
            return
        assert ran["stdout"] == "0\n"
        _, ran = await here.call(
            "run_command", command="while :; do head -c 5000000 /dev/zero >> b; done", timeout_s=600
        )
        assert ran["exit_code"] == 153, ran
        assert (project / "b").stat().st_size < 200_000_000  # without a limit: gigabytes

    async def test_modes_stay(self, here: Person, project: Path) -> None:
        for _ in range(2):
            await here.call("run_command", command="ls -R")
            await here.call("list_files", depth=3)
        assert (project / "closed").stat().st_mode & 0o777 == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_escape_table(kind: str, place: Path, project: Path, tmp_path: Path) -> None:
    shutil.copy(attempts.__file__, project / "attempts.py")
    (table := place / f"table-{kind}").mkdir()
    rows = [(name, code) for name, code, _ in attempts.ROWS] + refused_calls(kind)
    with served(place, tmp_path / "log", kind, LIMIT_FOLDER_BYTES="2000000000") as process:
        async with outside(table) as reached, acting(process.url, directory=str(project)) as here:
            (project / "told.json").write_text(json.dumps({"outside": reached, "calls": CALLS, "rows": rows}))
            given_to_owner(project)
            given_to_owner(table)
            before, niceness = state_of(project / ".git"), os.getpriority(os.PRIO_PROCESS, reached["bystander"])
            where = "" if kind == "bubblewrap" else 'cp attempts.py "$TMPDIR"; cd "$TMPDIR";'
            command = f'told=$(pwd)/told.json; {where} python3 attempts.py < "$told"'
            _, ran = await here.call("run_command", command=command, timeout_s=600)
            unseen = {"signal a process by a descriptor's owner": is_running(reached["victim"])}
            is_as_nice = os.getpriority(os.PRIO_PROCESS, reached["bystander"]) == niceness
            unseen["slow everything of the account down"] = is_as_nice
    assert ran["exit_code"] == 0, ran
    assert [name for name in json.loads(ran["stdout"]) if not unseen.get(name)] == []
    assert state_of(project / ".git") == before


async def test_without_a_sandbox_nothing_is_run(place: Path, project: Path, tmp_path: Path) -> None:
    with served(place, tmp_path / "log", "none") as process:
        async with acting(process.url, directory=str(project)) as person:
            assert "bubblewrap or Landlock" in await person.refusal("run_command", command="touch made")
            await person.call("write_file", path="a", content="x")
    assert not (project / "made").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_additional_directories_are_readable(
    kind: str, place: Path, secret: Path, project: Path, tmp_path: Path
) -> None:
    with served(place, tmp_path / "log", kind, WORKSPACE_READ=str(secret)) as process:
        for directory in (None, str(project)):
            async with acting(process.url, directory=directory) as person:
                command = f"cat {secret}/secret; echo x > {secret}/new; cat {place}/data/workspaces/*"
                _, ran = await person.call("run_command", command=command)
                assert ran["stdout"] == "the secret plan\n"
    assert os.listdir(secret) == ["secret"]


Given = Callable[[Path], str]


@pytest.mark.parametrize(
    "given",
    [lambda _: "/", lambda place: str(place), lambda place: f"{place}/data", lambda _: str(CHECKOUT), lambda _: "x"],
    ids=["the root", "above the data", "the data", "the checkout", "no full path"],
)
def test_directories_that_must_not_be_read(given: Given, place: Path) -> None:
    from tests.workspace.running import SECRET
    from workspace.settings import Settings

    directory = place / "data/workspaces"
    with pytest.raises(ValidationError, match="WORKSPACE_READ") as rejected:
        Settings.model_validate(
            {"workspace_dir": directory, "workspace_token_secret": SECRET, "workspace_read": given(place)}
        )
    assert "input_value" not in str(rejected.value), "it has the secrets"
