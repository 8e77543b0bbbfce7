"""The services that are measured, and what is stored in them."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from psycopg.types.json import Jsonb

from bench.seed import copy_conversation
from tests.event_loop.measured_service import MeasuredService
from tests.logins import as_admin
from tests.processes import ServiceProcess
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.support.script import call, calls, says, start_coder
from tests.tokens import MCP_TOKEN_SECRET
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, create_workspace_service
from todo_client.chatkit import request, user_input

_LETTERS = [*map(chr, range(0x4E00, 0x5200)), *"<|>hiddencontext \u0445\u0435"]
CHINESE = "".join(random.Random(1).choices(_LETTERS, k=500_000)).replace("  ", "> ")
"""Without repetitions, which would end an answer."""
TITLE, DESCRIPTION, MESSAGE = "x" + CHINESE[:198] + "x", CHINESE[:4_000], CHINESE[:8_000]
ANSWER = CHINESE[:399_000]
_DISTINCT = [chr(c) for c in [*range(0x20, 0xD800), *range(0xF900, 0x110000)] if chr(c).isprintable()]
DISTINCT = "<" + "".join(random.Random(3).choices(_DISTINCT, k=398_999))
"""Of nearly all characters."""
_WORDS = ["I", "added", "the", "task", "<b>", "milk", "for", "you.", "\n-", "It", "is", "done:", "all", "3", "tasks"]
ENGLISH = " ".join(random.Random(2).choices(_WORDS, k=90_000))
LABELS = [f"{CHINESE[:2]}{number}" for number in range(10)]
QUERY = " ".join(f"{number}{CHINESE[:7]}" for number in range(20))
TASKS, TURNS, FILES = 10_000, 40, 100
_CHANGED_AT_ONCE, _CALLS = 50, 50  # of one run about as many as are allowed: six in each of ten model turns
_TASKS = """
WITH new_user AS (INSERT INTO people (user_id, last_task_id) VALUES ('local', %(count)s))
INSERT INTO tasks (user_id, id, title, description, status, due_on, labels, completed_at)
SELECT 'local', n, %(title)s, CASE WHEN n %% 2 = 0 THEN %(description)s ELSE '' END,
       CASE WHEN n %% 10 = 0 THEN 'completed' ELSE 'pending' END, current_date + n %% 400, %(labels)s,
       CASE WHEN n %% 10 = 0 THEN now() - n * interval '1 minute' END
FROM generate_series(1, %(count)s) n
"""
_NEWEST_CHANGE = "SELECT run_id, id, details FROM tool_calls WHERE tool = 'update_task' ORDER BY seq DESC LIMIT 1"
_COPY_OF_CALL = """
INSERT INTO tool_calls (user_id, run_id, id, conversation_id, seq, result_seq, model_turn, tool, arguments, state,
    idempotency_key, output, details, seconds)
SELECT user_id, run_id, %s, conversation_id, nextval('event_seq'), nextval('event_seq'), model_turn, tool, arguments,
    state, idempotency_key || nextval('event_seq'), output, %s, seconds
FROM tool_calls WHERE run_id = %s AND id = %s
"""
_MOVE_ANSWER = """
UPDATE entries SET seq = nextval('event_seq'), completion_seq = nextval('event_seq')
WHERE run_id = %s AND kind IN ('assistant_message', 'changes')
"""
_MOVE_END = "UPDATE runs SET end_seq = nextval('event_seq') WHERE id = %s AND end_seq IS NOT NULL"


@dataclass
class System:
    """The services, and clients and ids of what is stored."""

    backend: MeasuredService
    mcp: MeasuredService
    workspace: MeasuredService
    model: ServiceProcess
    database_url: str
    ids: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def measured(self) -> dict[str, MeasuredService]:
        return {"backend": self.backend, "mcp": self.mcp, "workspace": self.workspace}


@dataclass
class Clients:
    backend: httpx2.AsyncClient
    mcp: httpx2.AsyncClient
    model: ScriptedModel
    system: System

    @property
    def ids(self) -> dict[str, str]:
        return self.system.ids


@contextmanager
def run_system(database_url: str, directory: Path) -> Iterator[System]:
    common = {"DATABASE_URL": database_url, "TIME_ZONE": "Europe/Berlin", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
    mcp = MeasuredService("mcp_server", "MCP_PORT", directory / "mcp.log", **common)
    mcp.environment["MCP_URL"] = f"{mcp.url}/mcp"
    plain, _ = create_workspace_service(directory)
    workspace = MeasuredService.__new__(MeasuredService)
    workspace.__dict__ |= plain.__dict__
    model = ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", directory / "model.log")
    addresses = {
        "MCP_URL": f"{mcp.url}/mcp",
        "WORKSPACE_URL": f"{workspace.url}/mcp",
        "WORKSPACE_TOKEN_SECRET": WORKSPACE_TOKEN_SECRET,
        "LLM_PROVIDER": "offline",
        "LLM_BASE_URL": f"{model.url}/v1",
        "AGENTS": "on",
        "APPROVALS": "commit",
    }
    backend = MeasuredService("backend", "BACKEND_PORT", directory / "backend.log", **common, **addresses)
    system = System(backend, mcp, workspace, model, database_url)
    services = [mcp, workspace, model, backend]
    try:
        for name, service in system.measured.items():
            service.measure_with(directory / f"{name}.hold")
        for service in services:
            service.start()
            service.wait_until_ready(path="/health" if service is model else "/ready")
        yield system
    finally:
        for service in services:
            if service.is_running:
                service.end()


async def seed(clients: Clients) -> None:
    """Stores 10,000 tasks, a conversation of 40 answers, one with the longest answer, one whose calls have changed
    thousands of tasks, and files.
    """
    values = {"count": TASKS, "title": TITLE, "description": DESCRIPTION, "labels": LABELS}
    with psycopg.connect(as_admin(clients.system.database_url)) as connection:
        connection.execute(_TASKS, values)
    ids = clients.ids
    await clients.model.script(
        calls(call("list_tasks", limit=100), reasoning=MESSAGE), says(MESSAGE, reasoning=MESSAGE), says(ANSWER)
    )
    async with Runs(clients.system.backend.url) as runs:
        await runs.say("template", MESSAGE)
        await runs.say("answer", MESSAGE)
        template = await runs.get_chat("template")
        answer = await runs.get_chat("answer")
        assert len(answer["interactions"][0]["agent_events"][-1]["content"]) > 300_000, str(answer)[:3000]
        ids |= {"answer": answer["leaf"], "answer_chat": answer["chat_id"]}
    url = as_admin(clients.system.database_url)
    (ids["chat"],) = copy_conversation(url, template["chat_id"], prefix="thr_long", threads=1, turns=TURNS)
    ids["run"] = f"{ids['chat']}_run_{TURNS}"
    ids["files"] = (await clients.backend.post("/conversations", json={"title": "files"})).json()["id"]
    for number in range(FILES):
        path = f"/chats/{ids['files']}/files/{number}.txt"
        assert (await clients.backend.put(path, content=b"x")).status_code == 201
    await _seed_changes(clients)
    await clients.backend.put(f"/chats/{ids['files']}/files/large.txt", content=b"x" * 9_000_000)
    await clients.backend.put("/memory", json={"text": CHINESE[:28_000]}, headers={"if-match": "*"})
    ids["calendar"] = (await clients.backend.post("/calendar")).json()["url"].rpartition("/")[2]


async def _seed_changes(clients: Clients) -> None:
    """Stores a conversation of two runs that have changed thousands of tasks; the second one waits for an approval."""
    first = TASKS - _CALLS * _CHANGED_AT_ONCE + 1
    others = [*range(first + 1, first + _CHANGED_AT_ONCE)]
    change = calls(call("update_task", task_id=first, also=others, description=DESCRIPTION))
    await clients.model.script(change, says("Fine."))
    answer = (await post_keyed_message(clients)).json()
    assert answer["status"] == "completed", answer
    _copy_newest_change(clients.system.database_url)
    chat = (await clients.backend.get("/chats/changes?brief=true")).json()
    clients.ids.update(changes=chat["chat_id"], changes_run=answer["interactionId"])
    await clients.model.script(change, start_coder("x"), calls(call("commit", message="x")))
    events = (await post_keyed_chatkit_message(clients)).text
    assert '"apr_' in events, events[-3000:]
    _copy_newest_change(clients.system.database_url)
    await clients.model.reset()


async def post_keyed_message(clients: Clients) -> httpx2.Response:
    """Sends a message, which is answered once: a repetition gets the same answer."""
    body = {"threadId": "changes", "messages": [{"role": "user", "content": "x"}]}
    return await clients.backend.post("/chat", json=body, headers={"idempotency-key": "changes"})


async def post_keyed_chatkit_message(clients: Clients) -> httpx2.Response:
    """Sends a message, which is answered once: a repetition gets all events of the answer."""
    message = {"thread_id": clients.ids["changes"], "input": user_input("x")}
    body = request("threads.add_user_message", {"idempotency_key": "chatkit"}, **message)
    return await clients.backend.post("/chatkit", json=body)


def _copy_newest_change(database_url: str) -> None:
    """Repeats the newest call of `update_task` for other tasks; its run's answer comes after the copies."""
    with psycopg.connect(as_admin(database_url)) as connection:
        run_id, call_id, details = connection.execute(_NEWEST_CHANGE).fetchall()[0]
        for number in range(1, _CALLS):
            details_of_copy = _shift_ids(details, number * _CHANGED_AT_ONCE)
            connection.execute(_COPY_OF_CALL, [f"{call_id}_{number}", details_of_copy, run_id, call_id])
        for statement in (_MOVE_ANSWER, _MOVE_END):
            connection.execute(statement, [run_id])


def _shift_ids(details: dict[str, Any], by: int) -> Jsonb:
    return Jsonb(
        {**details, "id": details["id"] + by, "also": [{**one, "id": one["id"] + by} for one in details["also"]]}
    )
