"""`./todo backup` of what runs, and `./todo restore` to a server that never had this program's tables."""

import asyncio
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cli import terminal
from cli.commands import backup, dump
from cli.commands.backup import DESCRIPTION, FILES
from cli.commands.stored_data import Installation
from cli.data_dir import workspaces
from cli.database import postgres, postgres_binaries
from cli.database.postgres import ROLES, Cluster
from cli.errors import CliError
from common.revision import REVISION
from tests.chaos.system import reachable_directory
from tests.conftest import ROOT
from tests.logins import as_admin, as_owner, as_service
from tests.scale.pooler import run_pgbouncer
from tests.scripted_model import ScriptedModel
from tests.support.commands import read_sentences, todo, todo_at
from tests.support.fixtures import NewUser
from tests.support.row_level_security import RowAccessProbe
from tests.support.script import add_task, says
from tests.support.stack import Stack, StackSettings, run_services, run_stack
from tests.support.users import User
from tests.waiting import until
from tests.workspace_service import create_workspace_service

pytestmark = pytest.mark.long(seconds=30)

THREADS = 20
# Runs in place of docker: a container's command on this machine, with the container's environment.
DOCKER = f"""#!/bin/sh
[ "$1 $2 $3" = "compose exec --no-TTY" ] || exit 9
shift 4
cd {ROOT} && exec "$@"
"""


@contextmanager
def another_server() -> Iterator[str]:
    """The address of a database that has nothing but the roles."""
    with reachable_directory() as directory, Cluster.start(directory / "data", durable=False) as cluster:
        with psycopg.connect(cluster.admin_url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE restored")
        url = cluster.url.replace("/todo?", "/restored?")
        with psycopg.connect(as_admin(url), autocommit=True) as connection:
            connection.execute(ROLES.read_bytes())
        yield url


async def export(stack: Stack, user: User) -> str:
    done = await todo_at(stack, "export", "--user", user.name)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_backup_while_messages_are_answered_and_restore(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, tmp_path: Path
) -> None:
    busy = new_user()
    await model.script(
        add_task("Größe"),
        says("Done."),
        *({**step, "when": f"wish {n} of"} for n in range(THREADS) for step in (add_task(f"wish {n}"), says("Done."))),
    )
    thread = (await user.chatkit.say("add it")).thread_id
    await user.runs.put_file(thread, "notes/plan.md", b"one two")
    exported = await export(stack, user)
    original = RowAccessProbe(stack.database_url)
    before = original.rows_of(user.name)
    original.close()

    file = tmp_path / "todo.backup"
    answers = asyncio.gather(*(busy.chatkit.say(f"add wish {n} of mine") for n in range(THREADS)))
    done = await todo_at(stack, "backup", str(file))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    await answers
    assert "already exists" in (await todo_at(stack, "backup", str(file))).stderr
    assert "Stop them first" in (await todo_at(stack, "restore", str(file), "--replace")).stderr
    assert await export(stack, user) == exported

    with another_server() as url, reachable_directory() as directory:
        _, folders = create_workspace_service(directory)
        settings = {"MIGRATION_DATABASE_URL": as_owner(url), "WORKSPACE_DIR": str(folders)}
        done = await asyncio.to_thread(lambda: todo("restore", str(file), **settings))
        assert done.returncode == 0, done.stderr
        restored = RowAccessProbe(url)
        assert restored.rows_of(user.name) == before
        assert {name: found for name, found in restored.find_violations().items() if found} == {}
        with (
            run_services(as_service(url), directory) as services,
            run_stack(services, StackSettings(), directory) as restored_stack,
        ):
            assert await export(restored_stack, user) == exported
            await check_it_is_used(restored_stack, user, busy, thread)
            await until(
                lambda: not any('"status": "running"' in run for (run,) in restored.rows_of(busy.name)["runs"]),
                seconds=60,  # until the new process has been connected for ten
            )
        restored.close()


async def check_it_is_used(stack: Stack, user: User, busy: User, thread: str) -> None:
    """New rows get numbers of their own; a conversation and its files go on; users are kept apart."""
    model = ScriptedModel(stack.services.model.url)
    await model.script(add_task("one more"), says("Done."))
    async with User(stack, user.name) as again, User(stack, busy.name) as stranger:
        before = await again.chatkit.items(thread)
        answer = await again.chatkit.say("add one more", thread)
        assert answer.error is None
        assert await again.chatkit.items(thread) == before + answer.items
        assert len((await again.runs.tasks("all"))["tasks"]) == 2
        assert await again.runs.get_file(thread, "notes/plan.md") == b"one two"
        assert (await stranger.chatkit.post("threads.get_by_id", thread_id=thread)).status_code == 404
    await model.aclose()


class TestRestore:
    """On an installation of this machine, without running services."""

    @pytest.fixture
    def data_dir(self, shared_dir: Path) -> Path:
        done = todo("migrate", "--data-dir", str(shared_dir))
        assert done.returncode == 0, done.stderr
        return shared_dir

    @pytest.fixture
    def file(self, data_dir: Path, tmp_path: Path) -> Path:
        """A backup of one task and one file, a file that a link names, and a link that leads out."""
        self.add_task(data_dir, "milk")
        folders = workspaces(data_dir)
        (folder := folders / ("0" * 32) / "cnv_1").mkdir(parents=True)
        (folder / "a.txt").write_text("one")
        (folder / "link").symlink_to("a.txt")
        (folder / "out").symlink_to("/etc")
        (folder / "a.txt").chmod(0o600)
        for path in (folder, *folder.parents[:1], *folder.iterdir()):
            os.chown(path, folders.stat().st_uid, -1, follow_symlinks=False)
        file = tmp_path / "todo.backup"
        done = todo("backup", str(file), "--data-dir", str(data_dir))
        assert done.returncode == 0, done.stderr
        return file

    def add_task(self, data_dir: Path, title: str) -> None:
        done = todo("import", str(self.written(data_dir, title)), "--user=local", "--data-dir", str(data_dir))
        assert done.returncode == 0, done.stderr

    @staticmethod
    def written(data_dir: Path, title: str) -> Path:
        (path := data_dir / "todo.txt").write_text(title)
        return path

    @staticmethod
    def titles(data_dir: Path) -> list[str]:
        with Cluster.start(data_dir) as cluster, psycopg.connect(cluster.admin_url) as connection:
            return [title for (title,) in connection.execute("SELECT title FROM tasks ORDER BY id")]

    def test_rejected_and_then_replaced(self, data_dir: Path, file: Path, tmp_path: Path) -> None:
        self.add_task(data_dir, "bread")
        content = file.read_bytes()
        damaged = bytearray(content)
        damaged[len(content) // 2] ^= 1
        bad = {
            "cut off": (content[:-100], "damaged"),
            "damaged": (bytes(damaged), "damaged"),
            "no backup": (b"hello", "no backup"),
            "0.1.0": (self.changed(file, tmp_path, REVISION.encode(), b"0021"), "version 0.2.0 (commit 226d620b)"),
            "newer": (self.changed(file, tmp_path, b'"revision": "0', b'"revision": "9'), "newer version"),
            "newer server": (self.changed(file, tmp_path, b'"postgres": ', b'"postgres": 9'), "PostgreSQL 9"),
        }
        for content, sentence in bad.values():
            (broken := tmp_path / "broken").write_bytes(content)
            done = todo("restore", str(broken), "--replace", "--data-dir", str(data_dir))
            assert (done.returncode, sentence in done.stderr, "Nothing was changed" in done.stderr) == (1, True, True)
        done = todo("restore", str(file), "--data-dir", str(data_dir))
        assert "Add --replace" in done.stderr
        with Cluster.start(data_dir) as cluster, psycopg.connect(cluster.admin_url) as connection:
            connection.execute("LOCK TABLE tasks")
            done = todo("restore", str(file), "--replace", "--data-dir", str(data_dir))
            assert (done.returncode, "Another program uses the tables" in done.stderr) == (1, True)
        assert self.titles(data_dir) == ["milk", "bread"]

        folders = data_dir / "workspaces"
        (folders / ("0" * 32) / "cnv_1" / "new.txt").touch()
        done = todo("restore", str(file), "--replace", "--data-dir", str(data_dir))
        assert done.returncode == 0, done.stderr
        assert self.titles(data_dir) == ["milk"]
        folder = folders / ("0" * 32) / "cnv_1"
        assert {path.name for path in folder.iterdir()} == {"a.txt", "link", "out"}
        assert ((folder / "link").read_text(), (folder / "out").readlink()) == ("one", Path("/etc"))
        assert {path.stat().st_uid for path in (folder, folder / "a.txt")} == {folders.stat().st_uid}
        assert stat.S_IMODE((folder / "a.txt").stat().st_mode) == 0o600

    @staticmethod
    def changed(file: Path, tmp_path: Path, old: bytes, new: bytes) -> bytes:
        with zipfile.ZipFile(file) as read, zipfile.ZipFile(tmp_path / "changed", "w") as written:
            for name in read.namelist():
                content = read.read(name)
                written.writestr(name, content.replace(old, new) if name == DESCRIPTION else content)
        return (tmp_path / "changed").read_bytes()

    def test_compose(self, data_dir: Path, file: Path, tmp_path: Path) -> None:
        self.add_task(data_dir, "bread")
        (docker := tmp_path / "docker").write_text(DOCKER)
        docker.chmod(0o755)
        with Cluster.start(data_dir):
            binaries = postgres_binaries.find().directory
            variables = {
                "PATH": f"{tmp_path}:{ROOT / '.venv/bin'}:{binaries}:{os.environ['PATH']}",
                "PGHOST": postgres.url(data_dir).partition("host=")[2],
                "WORKSPACE_DIR": str(data_dir / "workspaces"),
            }
            second = tmp_path / "second.backup"
            assert todo("backup", "--compose", str(second), **variables).returncode == 0
            done = todo("restore", "--compose", "--replace", str(file), **variables)
            assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(file) as one, zipfile.ZipFile(second) as other:
            assert one.read(FILES) == other.read(FILES)
        assert self.titles(data_dir) == ["milk"]
        with Cluster.start(data_dir) as cluster, psycopg.connect(cluster.owner_url) as connection:
            owners = connection.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
            assert owners.fetchall() == [(postgres.OWNER,)]


class TestRowsOfABackup:
    """A backup that lacks rows is none."""

    @pytest.fixture
    def stored_task(self, database_url: str, tmp_path: Path) -> str:
        """The owner's address of a database with a task."""
        url = as_owner(database_url)
        (tmp_path / "todo.txt").write_text("milk")
        settings = {"MIGRATION_DATABASE_URL": url}
        done = todo("import", str(tmp_path / "todo.txt"), "--user=local", **settings)
        assert done.returncode == 0, done.stderr
        return url

    @staticmethod
    def back_up(url: str, tmp_path: Path) -> str:
        """Returns why there is none."""
        settings = {"MIGRATION_DATABASE_URL": url, "WORKSPACE_DIR": str(tmp_path)}
        done = todo("backup", str(tmp_path / "todo.backup"), **settings)
        assert done.returncode == 1, done.stderr
        assert len(read_sentences(done.stderr)) == 1, done.stderr
        assert not [*tmp_path.glob("*.backup*"), *tmp_path.glob(".*.backup*")]
        return done.stderr

    def test_setting_that_does_not_reach_the_server(self, stored_task: str, tmp_path: Path) -> None:
        with run_pgbouncer(stored_task, ignore_startup_parameters="options") as pooled_url:
            sentence = self.back_up(pooled_url, tmp_path)
        assert "The dump has 0 of the 1 rows of public." in sentence
        assert "not of a pooler" in sentence

    def test_login_that_does_not_see_all_rows(self, stored_task: str, tmp_path: Path) -> None:
        name = f"reader_{os.getpid()}"
        with psycopg.connect(as_admin(stored_task), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN; GRANT pg_read_all_data TO {name}".encode())
            connection.execute(f"GRANT CONNECT ON DATABASE {connection.info.dbname} TO {name}".encode())
            try:
                sentence = self.back_up(stored_task.replace(f"{postgres.OWNER}@", f"{name}@"), tmp_path)
            finally:
                connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())
        assert "The login does not see the rows of all users in " in sentence


def test_restore_that_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the database was replaced, the user must know that the files are still the old ones."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dump, "replace_database", lambda *_: None)
    monkeypatch.setattr(backup, "run_program", interrupt)
    with (
        zipfile.ZipFile(tmp_path / "backup", "w") as archive,
        terminal.Progress() as progress,
        pytest.raises(CliError, match="Run it again"),
    ):
        backup.replace_all(archive, Installation((), "", (), {}), {}, progress)
