"""Backup and restore as the documentation describes them, to a server that never had this program's tables."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cli.database import postgres_binaries
from cli.database.postgres import Cluster
from tests.chaos.system import reachable_directory
from tests.conftest import ROOT
from tests.logins import as_admin, as_owner, as_service
from tests.scripted_model import ScriptedModel
from tests.support.commands import todo_at
from tests.support.fixtures import NewUser
from tests.support.row_level_security import Database
from tests.support.script import add_task, says
from tests.support.stack import Stack, StackSettings, running_services, running_stack
from tests.support.users import User

pytestmark = pytest.mark.long(seconds=30)

DOCUMENTATION = (ROOT / "docs/data.md").read_text()
THREADS = 20


def run_documented(heading: str, directory: Path, **variables: str) -> None:
    """Runs the commands under a heading of the documentation as they stand there."""
    section = DOCUMENTATION.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    commands = "".join(re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))
    assert commands
    binaries = postgres_binaries.find(None).directory
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=directory,
        env={**os.environ, **variables, "PATH": f"{binaries}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def another_server() -> Iterator[str]:
    """The address of an empty database."""
    with reachable_directory() as directory, Cluster.start(directory / "data", durable=False) as cluster:
        with psycopg.connect(cluster.admin_url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE restored")
        yield cluster.url.replace("/todo?", "/restored?")


async def export(stack: Stack, user: User) -> str:
    done = await todo_at(stack, "export", "--user", user.name)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_backup_and_restore(
    stack: Stack, user: User, new_user: NewUser, model: ScriptedModel, tmp_path: Path
) -> None:
    other = new_user()
    await model.script(
        *({**step, "when": f"wish {n} of"} for n in range(THREADS) for step in (add_task(f"Größe {n}"), says("Done."))),
        {**says("Hello."), "when": "hello"},
    )
    await asyncio.gather(*(user.chatkit.say(f"add wish {n} of mine") for n in range(THREADS)))
    await other.chatkit.say("hello")
    exported = await export(stack, user)
    original = Database(stack.database_url)
    before = {one.name: original.rows_of(one.name) for one in (user, other)}
    original.close()
    run_documented("Back up", tmp_path, MIGRATION_DATABASE_URL=as_owner(stack.database_url))

    with another_server() as url:
        (tmp_path / "common").symlink_to(ROOT / "common")
        logins = {"ADMIN_DATABASE_URL": as_admin(url), "MIGRATION_DATABASE_URL": as_owner(url)}
        run_documented("Restore", tmp_path, **logins)
        restored = Database(url)
        assert {name: restored.rows_of(name) for name in before} == before
        assert {name: found for name, found in restored.violations().items() if found} == {}
        restored.close()
        with (
            reachable_directory() as directory,
            running_services(as_service(url), directory) as services,
            running_stack(services, StackSettings(), directory) as restored_stack,
        ):
            assert await export(restored_stack, user) == exported
            await check_it_is_used(restored_stack, user, other)


async def check_it_is_used(stack: Stack, user: User, other: User) -> None:
    """New rows get numbers of their own; an old conversation goes on; users are kept apart."""
    model = ScriptedModel(stack.services.model.url)
    await model.script(add_task("one more"), says("Done."))
    async with User(stack, user.name) as again, User(stack, other.name) as stranger:
        thread = (await again.chatkit.list_threads()).data[0]["id"]
        before = await again.chatkit.items(thread)
        answer = await again.chatkit.say("add one more", thread)
        assert answer.error is None
        assert await again.chatkit.items(thread) == before + answer.items
        assert len((await again.page.tasks("all"))["tasks"]) == THREADS + 1
        assert (await stranger.chatkit.post("threads.get_by_id", thread_id=thread)).status_code == 404
    await model.aclose()
