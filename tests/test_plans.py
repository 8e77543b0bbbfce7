"""No statement reads more than it needs, however much is there."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from backend.doors.time_zone import HEADER
from cli.database.postgres import Cluster
from tests import people, plans
from tests.backend.slow_turns import SLOW, read_text
from tests.backend.widgets import boxes, tick
from tests.chaos.system import reachable_directory
from tests.chatkit_client import ChatKit, user_input
from tests.conftest import migrate
from tests.logins import as_admin
from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.guarded import AUDIENCE
from tests.mcp_server.wire import call, result, send
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel, serve_scripted_model
from tests.tokens import MCP_TOKEN_SECRET, for_mcp
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=30)

TABLES = {"people", "tasks", "task_calls", "task_changes", "conversations", "messages", "runs", "profiles"}
MOST_READ = 700  # rows of one scan: the history of a turn is 600
MOST_COUNTED = 2_001  # rows of an index alone: no list tells a larger total, and no day has more changes looked at
MOST_OWN = 20_100  # rows: what no index serves is looked for in all tasks of the person, and in nobody else's
OWN_ROWS = (
    "tasks.completed_at >=",
    "tasks.labels @>",
    "tasks.folded LIKE",
    "tasks.priority =",
    "coalesce(tasks.priority",
)
PAGE = 101  # rows
KEY = {"todo/idempotency_key": "key-1"}
LOG = ("task_calls", "task_changes")
NEVER = {("DELETE FROM", "messages"), ("DELETE FROM", "runs"), ("UPDATE", "tasks")}
NEVER |= {(verb, table) for verb in ("DELETE FROM", "UPDATE") for table in (*LOG, "profiles")}
NEVER -= {("UPDATE", "task_calls")}  # of an answer that is given again
WISHES: list[dict[str, Any]] = [
    {"status": "pending", "due": "overdue"},
    {"status": "pending", "due": "2026-11-16..2026-11-22", "order": "due"},
    {"status": "pending", "due": "none"},
    {"status": "pending", "order": "due"},
    {"status": "completed", "done": "today"},
    {"status": "completed", "order": "completed"},
    {"status": "pending", "label": "plants"},
    {"status": "pending", "priority": "low"},
    {"status": "pending", "order": "priority"},
    {"query": "plants"},
    {"query": "Task 1999"},
    {"status": "pending", "query": "palnts"},
    {"status": "deleted"},
    {"status": "deleted", "query": "19", "label": "garden"},
]
LONG, SUMMARISED = "thr_long", "thr_summarised"

SEED = """
    INSERT INTO conversations (id, user_id, title, status)
    SELECT 'thr_' || n, 'person-' || n % 200, 'Conversation ' || n, '{"type": "active"}'
    FROM generate_series(1, 2000) n;
    INSERT INTO messages (conversation_id, id, user_id, run_id, role, kind, item)
    SELECT 'thr_' || 1 + n % 2000, 'msg_' || n, 'person-' || (1 + n % 2000) % 200, 'run_' || n / 10, 'user',
        (ARRAY['user_message', 'assistant_message', 'widget', 'tool_calls', 'tool_output'])[1 + n / 2000 % 5],
        jsonb_build_object('id', 'msg_' || n, 'text', repeat('word ', 20))
    FROM generate_series(1, 200000) n;
    INSERT INTO runs (id, conversation_id, user_id, status, outcome, started_at, heartbeat_at)
    SELECT 'run_' || n, 'thr_' || 1 + n % 2000, 'person-' || (1 + n % 2000) % 200, 'ended', 'completed',
        now() - n * interval '1 minute', now() - n * interval '1 minute'
    FROM generate_series(1, 20000) n;
    INSERT INTO profiles (user_id, time_zone) SELECT 'person-' || n, 'Europe/Berlin' FROM generate_series(1, 20000) n;
    INSERT INTO tasks (user_id, id, title, status)
    SELECT 'person-' || n % 200, n, 'Task ' || n, (ARRAY['pending', 'completed'])[1 + n % 2]
    FROM generate_series(1, 100000) n;
    INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key)
    SELECT 'person-' || n % 200, 'add', '{"title": "Task"}', 'backend', 'key-' || n
    FROM generate_series(1, 100000) n;

    INSERT INTO conversations (id, user_id, title, status)
    SELECT 'thr_mine_' || n, 'local', 'Conversation ' || n, '{"type": "active"}' FROM generate_series(1, 1000) n;
    INSERT INTO conversations (id, user_id, title, status) VALUES ('thr_long', 'local', 'Long', '{"type": "active"}');
    INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
    SELECT 'thr_long', 'msg_long_' || n, 'local', 'user', 'user_message', jsonb_build_object(
        'id', 'msg_long_' || n, 'thread_id', 'thr_long', 'type', 'user_message', 'created_at', '2026-01-01T00:00:00Z',
        'content', '[{"type": "input_text", "text": "hello"}]'::jsonb, 'attachments', '[]'::jsonb,
        'inference_options', '{}'::jsonb)
    FROM generate_series(1, 10000) n;
    INSERT INTO conversations (id, user_id, title, status)
    VALUES ('thr_summarised', 'local', 'Summarised', '{"type": "active"}');
    INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
    SELECT 'thr_summarised', 'msg_summarised_' || n, 'local', role, kind, item
    FROM messages, generate_series(1, 10000) n WHERE id = 'msg_long_1';
    INSERT INTO messages (conversation_id, id, user_id, role, kind, item)
    SELECT 'thr_summarised', 'sum_1', 'local', 'app', 'summary', jsonb_build_object('id', 'sum_1',
        'thread_id', 'thr_summarised', 'type', 'hidden_context_item', 'created_at', '2026-01-01T00:00:00Z',
        'content', jsonb_build_object('kind', 'summary', 'text', 'They said hello.', 'covers', max(seq)))
    FROM messages;
    INSERT INTO runs (id, conversation_id, user_id, status, outcome, started_at, heartbeat_at)
    SELECT 'run_mine_' || n, 'thr_mine_' || 1 + n % 1000, 'local', 'ended', 'completed',
        now() - n * interval '1 minute', now() - n * interval '1 minute'
    FROM generate_series(1, 5000) n;
    INSERT INTO tasks (user_id, id, title, status)
    SELECT 'local', n, 'Task ' || n, 'completed' FROM generate_series(1, 20000) n;
    INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key)
    SELECT 'local', 'add', '{"title": "Task"}', 'backend', 'mine-' || n FROM generate_series(1, 20000) n;
    INSERT INTO task_changes (user_id, call_id, task_id, before, after)
    SELECT user_id, id, id, CASE WHEN id % 50 = 0 THEN jsonb_build_object('id', id, 'title', 'Task ' || id,
        'description', '', 'status', 'pending', 'created_at', now(), 'updated_at', now(), 'completed_at', NULL) END,
        CASE WHEN id % 50 > 0 THEN jsonb_build_object('id', id) END
    FROM task_calls ORDER BY id;
    INSERT INTO people (user_id, last_task_id) SELECT user_id, max(id) FROM tasks GROUP BY user_id;
    INSERT INTO people (user_id) SELECT 'somebody-' || n FROM generate_series(1, 20000) n;
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One whose log and settings are ours alone, with much in it."""
    with reachable_directory() as directory, Cluster.start(directory / "data", durable=False) as cluster:
        migrate(cluster.url)
        with psycopg.connect(cluster.admin_url, autocommit=True) as connection:
            connection.execute(SEED.encode())
            connection.execute("VACUUM ANALYZE")
        plans.log_all(cluster.admin_url)
        yield cluster


@pytest.fixture(scope="module")
def sent(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> list[plans.Sent]:
    """Every statement of a day with the product."""
    offset = len(cluster.log.read_text())
    asyncio.run(a_day(cluster.url, tmp_path_factory.mktemp("services")))
    return plans.read_log(cluster.log, offset)


async def a_day(database_url: str, directory: Path) -> None:
    async with serve_scripted_model() as model, services(database_url, model, directory) as (mcp_url, chat):
        await use_the_tools(mcp_url)
        await converse(chat, model)
        await until_swept(database_url)


@asynccontextmanager
async def services(database_url: str, model: ScriptedModel, directory: Path) -> AsyncIterator[tuple[str, ChatKit]]:
    both = {"DATABASE_URL": database_url, "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET, "MCP_URL": AUDIENCE}
    mcp = ServiceProcess("mcp_server", "MCP_PORT", directory / "mcp.log", **both)
    backend = ServiceProcess(
        "backend",
        "BACKEND_PORT",
        directory / "backend.log",
        **both,
        MCP_INTERNAL_URL=f"{mcp.url}/mcp",
        LLM_PROVIDER="offline",
        LLM_BASE_URL=model.openai_base_url,
        LIMIT_TURNS_PER_MINUTE="1000",
        LIMIT_RUNNING_TURNS="10",
        HEARTBEAT_SECONDS="0.2",
        LEASE_SECONDS="2",
    )
    for service in (mcp, backend):
        service.start()
    try:
        for service in (mcp, backend):
            await asyncio.to_thread(service.wait_until_ready)
        async with ChatKit(backend.url) as chat:
            yield mcp.url, chat
    finally:
        assert [service.end() for service in (backend, mcp)] == [0, 0]


async def use_the_tools(mcp_url: str) -> None:
    async with client_of(mcp_url) as client:
        tools = Tools(client)
        added = await tools.call("add_task", title="milk", description="oat", meta=KEY)
        assert await tools.call("add_task", title="milk", description="oat", meta=KEY) == added
        await tools.call("complete_task", task_id=added["id"])
        await tools.call("update_task", task_id=added["id"], title="oat milk")
        for status in ("all", "pending", "completed"):
            page = await tools.call("list_tasks", status=status, limit=5)
            if page["next_cursor"]:
                await tools.call("list_tasks", status=status, limit=100, cursor=page["next_cursor"])
        await tools.call("delete_task", task_id=added["id"])
        await use_dates_and_undo(tools)
    await take_a_batch_back(mcp_url)
    async with httpx2.AsyncClient(base_url=mcp_url, verify=False) as http:
        last = (await http.get("/changes")).json()["last"]
        assert (await http.get("/changes", params={"after": last - 3})).json()["task_ids"]
        assert len((await http.get("/done")).json()["days"]) == 28


async def use_dates_and_undo(tools: Tools) -> None:
    berlin = {"todo/time_zone": "Europe/Berlin"}
    daily: dict[str, Any] = {"due": "2026-11-20 09:00", "repeat": "FREQ=DAILY", "labels": ["plants"], "priority": "low"}
    water = await tools.call("add_task", title="water", also=["feed"], **daily, meta=berlin)
    both: dict[str, Any] = {"task_id": water["id"], "also": [task["id"] for task in water["also"]]}
    await tools.call("update_task", **both, due="+1d", add_labels=["garden"])
    for tool in ("complete_task", "delete_task"):
        await tools.call(tool, **both)
        await tools.call("update_task", **both, undo=True)
    completed = await tools.call("complete_task", **both)
    await tools.call("delete_task", task_id=completed["next"]["id"])
    await tools.call("update_task", task_id=water["id"], status="pending")
    for wish in WISHES:
        page = await tools.call("list_tasks", limit=5, **wish)
        if page["next_cursor"]:
            await tools.call("list_tasks", limit=5, **wish, cursor=page["next_cursor"])


async def take_a_batch_back(mcp_url: str) -> None:
    """As the backend does for a click."""
    token = for_mcp("local", AUDIENCE)
    async with httpx2.AsyncClient(base_url=mcp_url, verify=False) as http:
        for title in ("tea", "rice"):
            added = result(await send(http, call("add_task", {"title": title}, meta={"todo/batch": "b"}, token=token)))
        named = {"task_id": added["id"]}
        result(await send(http, call("update_task", named, meta={"todo/undo_batch": "b"}, token=token)))


async def converse(chat: ChatKit, model: ScriptedModel) -> None:
    first = await chat.say("add buy bread and list my pending tasks")
    thread, item = first.thread_id, first.user_item_id
    await chat.say("hello", thread)
    chat.http.headers[HEADER] = "Europe/Berlin"
    await chat.stream("threads.retry_after_item", thread_id=thread, item_id=item)
    await chat.say("hello", thread)
    del chat.http.headers[HEADER]
    for long in (LONG, SUMMARISED):
        await chat.say("hello", long)
    await model.script(SLOW | {"when": "count"})
    async with chat.open("threads.add_user_message", thread_id=thread, input=user_input("count")) as events:
        await read_text(events, at_least=4)
        assert (await chat.say("and another", thread)).error is not None
    for page in ({"order": "desc"}, {"order": "asc"}):
        for kind, params in (("threads.list", {}), ("items.list", {"thread_id": LONG})):
            found = await chat.ask(kind, limit=100, **page, **params)
            await chat.ask(kind, limit=100, after=found["after"], **page, **params)
    await chat.ask("threads.get_by_id", thread_id=LONG)
    await chat.ask("threads.update", thread_id=LONG, title="Renamed")
    await chat.ask("items.feedback", thread_id=LONG, item_ids=["msg_long_1", "msg_long_2"], kind="positive")
    await tick_two_boxes(chat)
    await model.script(SLOW | {"when": "count"})
    async with chat.open("threads.create", input=user_input("count")) as events:
        doomed = (await anext(events))["thread"]["id"]
        await read_text(events, at_least=4)
        await chat.ask("threads.delete", thread_id=doomed)
        _ = [event async for event in events]


async def tick_two_boxes(chat: ChatKit) -> None:
    await chat.say("add cheese and bread", LONG)
    shown = next(item for item in (await chat.say("show my pending tasks", LONG)).items if item["type"] == "widget")
    await tick(chat, shown, "cheese")
    payload = boxes(shown)["bread"]["onChangeAction"]["payload"]
    action = {"type": "complete_task", "payload": payload}
    await chat.ask("threads.sync_custom_action", thread_id=LONG, item_id=shown["id"], action=action)


async def until_swept(database_url: str) -> None:
    """A turn whose process is gone: it is taken over, and another one is found by the sweep."""
    with psycopg.connect(as_admin(database_url), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO runs (id, conversation_id, user_id, status, heartbeat_at) "
            "VALUES ('run_dead', 'thr_1', 'person-1', 'running', now() - interval '1 day')"
        )
        running = "SELECT 1 FROM runs WHERE id = 'run_dead' AND status = 'running'"
        await until(lambda: connection.execute(running).fetchone() is None)


def test_every_statement_is_seen(sent: list[plans.Sent]) -> None:
    for verb in ("SELECT", "INSERT INTO", "UPDATE", "DELETE FROM"):
        for table in ("tasks", "messages", "conversations", *LOG, "runs", "profiles"):
            if (verb, table) not in NEVER:
                assert any(re.search(rf"{verb}\b.*\b{table}\b", one.short) for one in sent), (verb, table)


def test_every_statement_names_the_person_by_equality(cluster: Cluster, sent: list[plans.Sent]) -> None:
    with psycopg.connect(cluster.admin_url, autocommit=True) as connection:
        tables = people.tables_of(connection)
        assert list(people.problems(connection, {one.text for one in sent}, tables)) == []


def test_no_statement_reads_or_sorts_more_than_a_page(cluster: Cluster, sent: list[plans.Sent]) -> None:
    wrong: set[str] = set()
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        for one in sent:
            plan = plans.plan_of(connection, one)
            for node in plans.nodes(plan):
                wrong.update(f"{problem}: {one.short}" for problem in problems(node, one))
    assert not wrong, "\n".join(wrong)


def problems(node: dict[str, Any], sent: plans.Sent) -> Iterator[str]:
    kind, table = node["Node Type"], node.get("Relation Name")
    if table in TABLES and kind == "Seq Scan":
        yield f"all of {table} is read"
    most = MOST_COUNTED if kind == "Index Only Scan" else MOST_READ
    if table == "tasks" and any(condition in sent.short for condition in OWN_ROWS):
        most = MOST_OWN
    if "Scan" in kind and plans.rows_read(node) > most:
        yield f"{plans.rows_read(node):,.0f} rows of {table} are read by a {kind}"
    if "Sort" in kind and (rows := node["Plans"][0].get("Actual Rows", 0)) > PAGE:
        yield f"{rows:,.0f} rows are sorted"
