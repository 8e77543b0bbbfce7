"""Turns while parts of the system are killed, then a check that nothing was lost, mixed or done twice.

`python -m tests.chaos --turns 300` runs it by hand; `--seed` repeats the choices of a run.
"""

import argparse
import asyncio
import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from cli.database.postgres import Cluster
from client.chatkit import ConnectionLost, Refused
from tests.backend.completions import check_pairs
from tests.chatkit_client import ChatKit, text_of
from tests.conftest import migrate
from tests.logins import as_admin
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel, serve_scripted_model

CONVERSATIONS = 4
LONGEST_LOCK = 30.0  # seconds
PATIENCE = 180.0  # seconds a client goes on asking while everything is killed around it
NOT_DONE = re.compile("I could not|did not work")  # an answer, as the database was away when a tool asked for it


@dataclass
class Record:
    """What a client saw."""

    acknowledged: dict[str, str] = field(default_factory=dict)  # item id → text
    completed: set[str] = field(default_factory=set)
    threads: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    longest_wait: float = 0.0


class System:
    """PostgreSQL, the MCP server and the backend as processes; the model is an endpoint in this one."""

    def __init__(self, directory: Path, model: ScriptedModel, workers: int) -> None:
        self._directory = directory
        self._several = workers > 1
        self.cluster = Cluster.start(directory / "data")
        migrate(self.cluster.url)
        self.mcp = ServiceProcess(
            "mcp_server",
            "MCP_PORT",
            directory / "mcp.log",
            DATABASE_URL=self.cluster.url,
            MCP_WORKERS=str(workers),
        )
        self.backend = ServiceProcess(
            "backend",
            "BACKEND_PORT",
            directory / "backend.log",
            DATABASE_URL=self.cluster.url,
            MCP_URL=f"{self.mcp.url}/mcp",
            LLM_PROVIDER="offline",
            LLM_BASE_URL=model.openai_base_url,
            HEARTBEAT_SECONDS="0.5",
            LEASE_SECONDS="4",
            BACKEND_WORKERS=str(workers),
        )
        for service in (self.mcp, self.backend):
            service.start()
        for service in (self.mcp, self.backend):
            service.wait_until_ready()

    def kill(self, part: str) -> None:
        if part == "postgres":
            self.cluster.process.kill()
            self.cluster.process.wait()
        elif self._several:
            for pid in getattr(self, part).workers[:1]:
                os.kill(pid, signal.SIGKILL)
        else:
            getattr(self, part).end(signal.SIGKILL)

    def start(self, part: str) -> None:
        if part == "postgres":
            self.cluster.stop()
            self.cluster = Cluster.start(self._directory / "data")
        elif not self._several:
            getattr(self, part).start()

    def stop(self) -> None:
        for service in (self.backend, self.mcp):
            with contextlib.suppress(ProcessLookupError):
                service.end()
        self.cluster.stop()


async def converse(system: System, record: Record, chance: random.Random, turns: int, number: int) -> None:
    """One client that says things, and asks again when it does not get an answer, as a person would."""
    thread: str | None = None
    async with ChatKit(system.backend.url) as chat:
        for turn in range(turns):
            wish = f"wish {number} {turn} {chance.randrange(10**6):06}"
            thread = await say(chat, record, thread, f"add {wish}", wish)
            thread = await say(chat, record, thread, f"complete {wish}", None)
    if thread is not None:
        record.threads.append(thread)


async def say(chat: ChatKit, record: Record, thread: str | None, text: str, wish: str | None) -> str | None:
    """Send, and retry what was acknowledged until it is answered; what was never acknowledged is sent anew."""
    item: str | None = None
    error: Any = None
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if thread is None:
            answer = chat.create_thread(text)
        elif item is None:
            answer = chat.add_user_message(thread, text)
        else:
            answer = chat.retry_after_item(thread, item)
        error = None
        try:
            async with answer as events:
                async for event in events:
                    if event["type"] == "thread.created":
                        thread = event["thread"]["id"]
                    if event["type"] == "thread.item.done" and event["item"]["type"] == "user_message":
                        item = str(event["item"]["id"])
                        record.acknowledged[item] = text
                    if event["type"] == "error" or _says_that_it_was_not_done(event):
                        error = event
        except (ConnectionLost, Refused) as failure:
            error = failure
        record.outcomes["answered" if error is None else "not answered"] += 1
        if error is None:
            if wish is not None:
                record.completed.add(wish)
            return thread
        await asyncio.sleep(0.3)
    raise AssertionError(f"no answer to {text!r} for {PATIENCE:.0f} s: {error}")


def _says_that_it_was_not_done(event: dict[str, Any]) -> bool:
    item = event.get("item", {})
    return item.get("type") == "assistant_message" and NOT_DONE.search(text_of(item)) is not None


async def break_things(system: System, chance: random.Random, done: asyncio.Event, log: list[str]) -> None:
    while not done.is_set():
        await asyncio.sleep(chance.uniform(0.5, 4.0))
        part = chance.choice(["backend", "mcp", "postgres"])
        system.kill(part)
        log.append(part)
        await asyncio.sleep(chance.uniform(0, 1.0))
        system.start(part)
        if part == "backend":
            await asyncio.to_thread(system.backend.wait_until_ready)


async def every_thread_is_usable(system: System, record: Record) -> None:
    async with ChatKit(system.backend.url) as chat:
        for thread in record.threads:
            started = time.monotonic()
            while (await chat.say("hello", thread)).error is not None:
                assert time.monotonic() - started < LONGEST_LOCK, f"{thread} stays locked"
                await asyncio.sleep(0.3)
            record.longest_wait = max(record.longest_wait, time.monotonic() - started)


def check_database(url: str, record: Record) -> None:
    with psycopg.connect(as_admin(url)) as connection, connection.cursor(row_factory=dict_row) as cursor:
        messages = cursor.execute("SELECT id FROM messages ORDER BY seq").fetchall()
        tasks = cursor.execute("SELECT title, status FROM tasks").fetchall()
        runs = cursor.execute("SELECT status, outcome, count(*) FROM runs GROUP BY 1, 2").fetchall()
        keys = cursor.execute("SELECT idempotency_key FROM task_calls GROUP BY 1 HAVING count(*) > 1").fetchall()
    ids = [row["id"] for row in messages]
    assert len(ids) == len(set(ids)), "no two items share an id"
    assert set(record.acknowledged) <= set(ids), "no acknowledged message is lost"
    titles = Counter(row["title"] for row in tasks)
    twice = {title: count for title, count in titles.items() if count > 1}
    assert not twice, f"added twice: {twice}"
    assert not keys, "no key acted twice"
    assert record.completed <= set(titles), f"answered, but not there: {record.completed - set(titles)}"
    assert {row["status"] for row in tasks} == {"completed"}, f"added, not completed: {tasks}"
    assert {row["status"] for row in runs} == {"ended"}, runs


@contextlib.contextmanager
def reachable_directory() -> Iterator[Path]:
    """A temporary directory that PostgreSQL can reach when it runs as another user."""
    with tempfile.TemporaryDirectory(prefix="todo-chaos-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


async def run(turns: int, seed: int, workers: int = 1) -> str:
    """Raises AssertionError when anything was lost, mixed or repeated; returns a line of figures."""
    chance = random.Random(seed)
    record, kills, done = Record(), [], asyncio.Event()
    with reachable_directory() as directory:
        async with serve_scripted_model(token_delay=0.02) as model:
            system = System(directory, model, workers)
            try:
                breaking = asyncio.create_task(break_things(system, chance, done, kills))
                each = -(-turns // (2 * CONVERSATIONS))
                try:
                    await asyncio.gather(
                        *(converse(system, record, chance, each, number) for number in range(CONVERSATIONS))
                    )
                finally:
                    done.set()
                    await breaking
                system.mcp.wait_until_ready()
                await every_thread_is_usable(system, record)
                check_database(system.cluster.url, record)
                requests = await model.requests()
                for request in requests:
                    check_pairs(request["body"]["messages"])
            finally:
                system.stop()
    killed = ", ".join(f"{part} {count}" for part, count in sorted(Counter(kills).items()))
    return (
        f"seed {seed}: {sum(record.outcomes.values())} turns ({dict(record.outcomes)}), killed {killed}; "
        f"{len(record.acknowledged)} messages kept, {len(record.completed)} wishes there once, "
        f"{len(requests)} requests paired, longest wait at the end {record.longest_wait:.1f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--workers", type=int, default=1, help="of each service; then one of them is killed at a time")
    arguments = parser.parse_args()
    sys.stdout.write(f"seed {arguments.seed}\n")
    sys.stdout.flush()
    sys.stdout.write(asyncio.run(run(arguments.turns, arguments.seed, arguments.workers)) + "\n")
