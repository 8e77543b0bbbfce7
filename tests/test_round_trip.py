"""A person's data in their hands: export, backup as the documentation tells, forget, restore, and the same again."""

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg.rows import dict_row

from cli.database import postgres_binaries
from cli.database.postgres import Cluster
from service.database import create_engine, schema
from tests.chaos.system import reachable_directory
from tests.chatkit_client import ChatKit
from tests.conftest import ROOT
from tests.logins import as_admin, as_owner
from tests.mcp_server.wire import call, result, send
from tests.processes import INHERITED, ServiceProcess
from tests.scripted_model import serve_scripted_model
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET, for_mcp, minted
from workspace.files.folder import Store
from workspace.files.quota import Quota

pytestmark = pytest.mark.long(seconds=60)

TASKS, THREADS = 300, 50  # rows of several portions, in which an export is written
LIMITS = ("TURNS_PER_MINUTE", "REQUESTS_PER_MINUTE", "TOOL_CALLS_PER_MINUTE", "CHANGES_PER_DAY", "TASKS")
AUDIENCE = "https://todo.example"
TABLES = (
    "conversations",
    "messages",
    "runs",
    "ended_sessions",
    "profiles",
    "people",
    "tasks",
    "task_calls",
    "task_changes",
)
DOCUMENTATION = (ROOT / "docs/data.md").read_text()


class Services:
    """Both services on a database, for several people."""

    def __init__(self, database_url: str, model_url: str, logs: Path) -> None:
        identity = {"AUTH_MODE": "jwt", "AUTH_ISSUER": ISSUER, "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
        identity |= {f"LIMIT_{name}": "100000" for name in LIMITS}
        self.mcp = ServiceProcess("mcp_server", "MCP_PORT", logs / "mcp.log", DATABASE_URL=database_url, **identity)
        self.mcp_url = f"{self.mcp.url}/mcp"
        self.mcp.environment["MCP_URL"] = self.mcp_url
        self.backend = ServiceProcess(
            "backend",
            "BACKEND_PORT",
            logs / "backend.log",
            DATABASE_URL=database_url,
            MCP_URL=self.mcp_url,
            AUTH_JWT_SECRET=IDP_SECRET,
            AUTH_AUDIENCE=AUDIENCE,
            LLM_PROVIDER="offline",
            LLM_BASE_URL=model_url,
            LIMIT_RUNNING_TURNS="10",
            **identity,
        )

    async def add(self, http: httpx2.AsyncClient, user: str, title: str) -> int:
        return (await self.call(http, user, "add_task", title=title))["id"]

    async def call(self, http: httpx2.AsyncClient, user: str, tool: str, **arguments: Any) -> dict[str, Any]:
        return result(await send(http, call(tool, arguments, token=for_mcp(user, self.mcp_url))))

    def chat(self, user: str) -> ChatKit:
        token = minted(IDP_SECRET, sub=user, iss=ISSUER, aud=AUDIENCE)
        headers = {"Authorization": f"Bearer {token}", "X-Time-Zone": "Europe/Berlin"}
        return ChatKit(self.backend.url, headers=headers)


@asynccontextmanager
async def running(database_url: str, logs: Path) -> AsyncIterator[tuple[Services, httpx2.AsyncClient]]:
    async with serve_scripted_model() as model:
        services = Services(database_url, model.openai_base_url, logs)
        both = (services.mcp, services.backend)
        for service in both:
            service.start()
        try:
            for service in both:
                await asyncio.to_thread(service.wait_until_ready)
            async with httpx2.AsyncClient(base_url=services.mcp.url, verify=False) as http:
                yield services, http
        finally:
            assert [service.end() for service in both[::-1]] == [0, 0]


async def some_at_once(work: Callable[[int], Awaitable[object]], count: int) -> None:
    """`work` with each number up to `count`, four at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(4)))


async def live(database_url: str, logs: Path) -> None:
    """Alice has tasks and threads of all kinds, bob has a few."""
    async with running(database_url, logs) as (services, http):

        async def task(number: int) -> None:
            task_id = await services.add(http, "alice", f"Größe {number}")
            if number % 10 == 0:
                await services.call(http, "alice", "complete_task", task_id=task_id)

        async def thread(number: int) -> None:
            async with services.chat("alice") as chat:
                first = await chat.say(f"add wish {number}")
                assert first.error is None
                await chat.say("hello", first.thread_id)

        await some_at_once(task, TASKS)
        await some_at_once(thread, THREADS)
        await services.add(http, "bob", "bread")
        async with services.chat("bob") as chat:
            await chat.say("show my tasks")
            deleted = await chat.say("hello")
            await chat.ask("threads.delete", thread_id=deleted.thread_id)


def contents(database_url: str, user: str) -> dict[str, list[dict[str, Any]]]:
    with psycopg.Connection[dict[str, Any]].connect(as_admin(database_url), row_factory=dict_row) as connection:
        return {
            table: connection.execute(
                f"SELECT * FROM {table} t WHERE user_id = %s ORDER BY to_jsonb(t)->'id'".encode(), [user]
            ).fetchall()
            for table in TABLES
        }


def todo(database_url: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=ROOT,
        env={**inherited, "MIGRATION_DATABASE_URL": as_owner(database_url), "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def export(database_url: str, user: str, output: Path) -> bytes:
    done = todo(database_url, "export", "--user", user, "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    return output.read_bytes()


def as_documented(heading: str, directory: Path, **variables: str) -> None:
    """Run the commands under a heading of the documentation as they stand there."""
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
    """An empty database, as the services log in, on a server that never had this program's tables."""
    with reachable_directory() as directory, Cluster.start(directory / "data", durable=False) as cluster:
        with psycopg.connect(cluster.admin_url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE restored")
        yield cluster.url.replace("/todo?", "/restored?")


async def problem(database_url: str) -> str | None:
    engine = create_engine(database_url)
    try:
        return (await schema.look(engine)).problem
    finally:
        await engine.dispose()


async def test_export_backup_forget_restore_and_the_same_export(fresh_database_url: str, tmp_path: Path) -> None:
    await live(fresh_database_url, tmp_path)
    alices, bobs = (contents(fresh_database_url, user) for user in ("alice", "bob"))
    exported = export(fresh_database_url, "alice", tmp_path / "alice.json")
    check_export(json.loads(exported), alices)
    as_documented("Back up", tmp_path, MIGRATION_DATABASE_URL=as_owner(fresh_database_url))

    store = Store(tmp_path / "workspaces", Quota(bytes=1_000, files=10))
    store.root.mkdir(mode=0o700)
    store.prepare()
    for person in ("alice", "bob"):
        with store.folder(person, "cnv_1") as folder:
            (folder.path / "notes.md").write_text(person)
    packed = tmp_path / "alice.tar"
    given = ["--output", str(tmp_path / "with-files.json"), "--files", str(packed)]
    done = todo(fresh_database_url, "export", "--user", "alice", *given, WORKSPACE_DIR=str(store.root))
    assert done.returncode == 0, done.stderr
    assert f"The files of alice are in {packed}." in done.stdout + done.stderr
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    assert (tmp_path / "with-files.json").read_bytes() == exported
    with tarfile.open(packed) as archive:
        assert archive.getnames() == ["cnv_1", "cnv_1/notes.md"]
    forgotten = todo(fresh_database_url, "forget", "--user", "alice", "--yes", WORKSPACE_DIR=str(store.root))
    assert forgotten.returncode == 0, forgotten.stderr
    assert forgotten.stdout == (
        f"Deleted for good: threads {THREADS}, items {len(alices['messages'])}, runs {2 * THREADS}, "
        "kept requests 0, ended sessions 0, profiles 1.\n"
        f"Deleted for good: tasks {TASKS + THREADS}, changes {len(alices['task_changes'])}.\n"
        "Deleted for good: folders 1.\n"
    )
    done = todo(fresh_database_url, "export", "--user", "bob", "--files", str(packed.with_name("none.tar")))
    assert (done.returncode, packed.with_name("none.tar").exists()) == (0, False), done.stderr
    assert (store.names("alice"), store.names("bob")) == ([], ["cnv_1"])
    assert contents(fresh_database_url, "alice") == {table: [] for table in TABLES}
    assert contents(fresh_database_url, "bob") == bobs
    again = todo(fresh_database_url, "export", "--user", "alice")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "error: Nothing is stored of alice: check the name.\n"

    with another_server() as restored_url:
        (tmp_path / "service").symlink_to(ROOT / "service")
        as_documented(
            "Restore",
            tmp_path,
            ADMIN_DATABASE_URL=as_admin(restored_url),
            MIGRATION_DATABASE_URL=as_owner(restored_url),
        )
        assert export(restored_url, "alice", tmp_path / "again.json") == exported
        assert contents(restored_url, "bob") == bobs
        assert await problem(restored_url) is None, "row-level security holds there too"
        await check_it_takes_new_rows(restored_url, tmp_path, alices, bobs)


def check_export(document: dict[str, Any], stored: dict[str, list[dict[str, Any]]]) -> None:
    assert (document["version"], document["user"]) == (1, "alice")
    todo, chat = document["todo"], document["chat"]
    assert {task["id"]: task["title"] for task in todo["tasks"]} == {row["id"]: row["title"] for row in stored["tasks"]}
    assert [change["id"] for change in todo["changes"]] == [row["id"] for row in stored["task_changes"]]
    assert len(chat["threads"]) == THREADS
    items = {item["id"]: item["item"] for thread in chat["threads"] for item in thread["items"]}
    assert items == {row["id"]: row["item"] for row in stored["messages"]}
    assert {run["id"]: run["usage"] for run in chat["runs"]} == {row["id"]: row["usage"] for row in stored["runs"]}


async def check_it_takes_new_rows(
    database_url: str,
    logs: Path,
    alices: dict[str, list[dict[str, Any]]],
    bobs: dict[str, list[dict[str, Any]]],
) -> None:
    highest = {
        column: max(row[column] for rows in (alices, bobs) for row in rows[table])
        for table, column in (("tasks", "id"), ("messages", "seq"))
    }
    thread = alices["conversations"][0]["id"]
    async with running(database_url, logs) as (services, http):
        assert await services.add(http, "alice", "one more") == highest["id"] + 1
        async with services.chat("alice") as chat:
            before = await chat.items(thread)
            answer = await chat.say("hello again", thread)
            assert answer.error is None
            assert await chat.items(thread) == before + answer.items
        async with services.chat("bob") as chat:
            assert (await chat.post("threads.get_by_id", thread_id=thread)).status_code == 404
    added = [row for row in contents(database_url, "alice")["messages"] if row["seq"] > highest["seq"]]
    assert {item["id"] for item in answer.items} <= {row["id"] for row in added}
