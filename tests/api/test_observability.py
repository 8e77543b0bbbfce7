"""Both services as processes: their log lines, /metrics and the spans they send."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.otlp import Collector, run_collector
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.answers import start_run
from tests.support.script import add_task, call, calls, delete_tasks, endless_answer, says
from tests.support.stack import CLOCK, SIGN_IN, Services, Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import user_input

Numbers = dict[tuple[str, frozenset[tuple[str, str]]], float]

CANARY = "Zwergspitz"
ADD = add_task(CANARY)
CALENDAR_ROUTE = "/calendar/{secret}.ics"


@dataclass
class Watched:
    """A stack of one backend, and everything that can be seen of it."""

    stack: Stack
    collector: Collector

    @property
    def services(self) -> tuple[ServiceProcess, ServiceProcess]:
        return self.stack.backends[0], self.stack.services.mcp

    def lines(self, message: str, request_id: str) -> list[dict[str, Any]]:
        lines = [line for service in self.services for line in read_lines(service)]
        return [line for line in lines if (line["message"], line.get("request_id")) == (message, request_id)]


def read_lines(service: ServiceProcess) -> list[dict[str, Any]]:
    """Leaves out a line that is being written."""
    return [json.loads(line) for line in service.log_text.split("\n")[:-1]]


@pytest.fixture(scope="module")
def watched(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Services of its own, as others are not traced; metrics count what this module's tests do alone."""
    logs = tmp_path_factory.mktemp("observability")
    with ExitStack() as cleanup:
        collector = cleanup.enter_context(run_collector())
        tracing = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        shared = {"DATABASE_URL": services.database_url, **SIGN_IN, **CLOCK, **tracing}
        mcp = ServiceProcess("mcp_server", "MCP_PORT", logs / "mcp.log", **shared)
        mcp.environment["MCP_URL"] = f"{mcp.url}/mcp"
        traced = Services(services.database_url, mcp, services.workspace, services.model)
        settings = {**traced.backend_environment(), **tracing}
        backend = ServiceProcess("backend", "BACKEND_PORT", logs / "backend.log", **settings)
        for service in (mcp, backend):
            service.start()
            cleanup.callback(service.end)
        for service in (mcp, backend):
            service.wait_until_ready()
        yield Watched(Stack(traced, [backend]), collector)


@pytest.fixture
def stack(watched: Watched) -> Stack:
    return watched.stack


def with_request_id(user: User, request_id: str) -> str:
    for http in (user.chatkit.http, user.runs.http):
        http.headers["X-Request-ID"] = request_id
    return request_id


async def test_log_of_a_run(watched: Watched, user: User, model: ScriptedModel, stored: Stored) -> None:
    """One line for the run and one for each tool call, with the request's id in both services."""
    asked = with_request_id(user, f"run-of-{user.name}")
    await model.script(calls(call("add_task", title=CANARY), call("list_tasks")), says("done"))
    await user.chatkit.say("add it")
    [line] = await until(lambda: watched.lines("run ended", asked))
    [run] = stored.runs(user.name)
    assert (line["run"], line["conversation"], line["owner"]) == (run.id, run.conversation_id, user.name)
    assert line["outcome"] == run.status == "completed"
    assert (line["tool_calls"], line["model_requests"]) == (2, 2)
    assert line["input_tokens"] > 0
    assert line["output_tokens"] > 0
    assert 0 < line["first_event_seconds"] <= line["seconds"]
    tool_calls = watched.lines("tool call", asked)
    assert sorted((one["tool"], one["owner"], one["outcome"]) for one in tool_calls) == [
        ("add_task", user.name, "ok"),
        ("list_tasks", user.name, "ok"),
    ]


async def test_log_of_a_paused_run(watched: Watched, user: User, model: ScriptedModel) -> None:
    asked = with_request_id(user, f"pause-of-{user.name}")
    await model.script(delete_tasks(*range(1, 12)))
    await start_run(user, "groceries", "delete them", until="approval_required")
    [line] = await until(lambda: watched.lines("run paused", asked))
    assert (line["owner"], line["pending_approvals"]) == (user.name, 1)


async def test_log_of_a_failed_run(watched: Watched, user: User, model: ScriptedModel) -> None:
    """The reference that the user reads leads to the request."""
    asked = with_request_id(user, f"failure-of-{user.name}")
    await model.script({"status": 401})
    answer = await user.chatkit.say("hello")
    assert answer.error is not None
    reference = answer.error["message"].rpartition("Reference ")[2].rstrip(".)")
    [line] = [line for line in read_lines(watched.services[0]) if f"reference {reference}" in line["message"]]
    assert line["request_id"] == asked
    [ended] = await until(lambda: watched.lines("run ended", asked))
    assert ended["outcome"] == "failed"


@pytest.mark.parametrize("number", [0, 1], ids=["backend", "mcp_server"])
async def test_request_ids(watched: Watched, number: int) -> None:
    async with http_client(watched.services[number].url) as http:
        plain = await http.get("/health", headers={"X-Request-ID": "req_1.A-b"})
        assert plain.headers["x-request-id"] == "req_1.A-b"
        for given in ("", "x" * 65, 'a"b', "a b", "ä", "{}", "${jndi:x}"):
            other = await http.get("/health", headers=[(b"X-Request-ID", given.encode())])
            assert re.fullmatch("[0-9a-f]{16}", other.headers["x-request-id"]), given


async def test_no_text_of_a_user_is_logged_counted_or_traced(
    watched: Watched, user: User, model: ScriptedModel
) -> None:
    wrong = calls(call("complete_task", task_id=CANARY))
    unknown = calls(call(CANARY, **{CANARY: CANARY}))
    foreign = calls(call("update_task", task_id=999, title=CANARY))
    await model.script(ADD, wrong, unknown, foreign, says(CANARY))
    first = await user.chatkit.say(f"add {CANARY}")
    assert CANARY in first.text
    await model.script({"status": 400, "body": {"error": {"message": CANARY}}})
    await user.chatkit.say(CANARY, first.thread_id)
    await until(lambda: len([span for span in watched.collector.spans if span.name == "run"]) >= 2)
    async with http_client() as http:
        stranger = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": CANARY, "arguments": {}}}
        headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {user.mcp_token}"}
        await http.post(f"{watched.services[1].url}/mcp", json=stranger, headers=headers)
        shown = [(await http.get(f"{service.url}/metrics")).text for service in watched.services]
    spans = [body.decode(errors="replace") for body in watched.collector.bodies]
    assert 'tool="unknown"' in shown[1]
    for text in (*(service.log_text for service in watched.services), *shown, *spans):
        assert CANARY not in text


async def test_secret_of_a_calendar_is_not_logged_counted_or_traced(watched: Watched, user: User) -> None:
    def count_list_spans() -> int:
        return sum(span.name == "tool list_tasks" for span in watched.collector.spans)

    http, before = user.chatkit.http, count_list_spans()
    url = (await http.post("/calendar")).json()["url"]
    path = url[url.index("/calendar/") :]
    answers = [await http.get(one) for one in (path, f"{path}x", path.removesuffix(".ics"), f"{path}?{url}")]
    assert [answer.status_code for answer in answers] == [200, 404, 404, 200]
    metrics = (await http.get("/metrics")).text
    await until(lambda: count_list_spans() >= before + 2)
    asked = [answer.headers["x-request-id"] for answer in answers]
    lines = [line for one in asked for line in watched.lines("calendar read", one)]
    assert [(line["route"], line.get("owner"), line["outcome"]) for line in lines] == [
        (CALENDAR_ROUTE, user.name, "sent"),
        (CALENDAR_ROUTE, None, "refused"),
        (CALENDAR_ROUTE, None, "refused"),
        (CALENDAR_ROUTE, user.name, "sent"),
    ]
    secret = url.rpartition("/")[2].removesuffix(".ics")
    sent = "".join(body.decode(errors="replace") for body in watched.collector.bodies)
    for text in (*(service.log_text for service in watched.services), metrics, sent):
        assert secret[:20] not in text


async def numbers(watched: Watched) -> Numbers:
    found: Numbers = {}
    async with http_client() as http:
        for service in watched.services:
            response = await http.get(f"{service.url}/metrics")
            assert response.status_code == 200
            for family in text_string_to_metric_families(response.text):
                found |= {(sample.name, frozenset(sample.labels.items())): sample.value for sample in family.samples}
    return found


def value(found: Numbers, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0)


async def test_metrics(watched: Watched, user: User, model: ScriptedModel) -> None:
    before = await numbers(watched)
    await model.script(ADD, says("done"), says("hello"), {"status": 401}, {"status": 503}, says("again"))
    thread = (await user.chatkit.say("add it")).thread_id
    for text in ("hello", "fail", "retry"):
        await user.chatkit.say(text, thread)
    await model.script(endless_answer("one"))
    async with user.chatkit.open("threads.create", input=user_input("count")) as events:
        async for event in events:
            if event["type"] == "thread.item.updated":
                break
        assert value(await numbers(watched), "todo_runs_running") == 1

    async def none_runs() -> Numbers | None:
        found = await numbers(watched)
        return None if value(found, "todo_runs_running") else found

    after = await until(none_runs)  # a run has its outcome a moment before it is counted

    def more(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    for outcome, count in (("completed", 3), ("failed", 1), ("cancelled", 1), ("interrupted", 0)):
        assert more("todo_runs_total", outcome=outcome) == more("todo_run_seconds_count", outcome=outcome) == count
    assert more("todo_run_first_event_seconds_count") == 5
    for direction in ("input", "output"):
        assert more("todo_model_tokens_total", direction=direction) > 0
    requests = {outcome: more("todo_model_request_seconds_count", outcome=outcome) for outcome in ("ok", "refused")}
    assert requests == {"ok": 4, "refused": 1}
    assert more("todo_model_request_seconds_count", outcome="failed") == more("todo_retries_total", to="model") == 1
    assert more("todo_model_request_seconds_count", outcome="cancelled") == 1
    assert more("todo_tool_call_seconds_count", tool="add_task", outcome="ok") == 1


FORMER_METRICS = {
    "todo_turns_total": "todo_runs_total",
    "todo_turn_seconds_count": "todo_run_seconds_count",
    "todo_turn_seconds_bucket": "todo_run_seconds_bucket",
    "todo_turn_first_event_seconds_sum": "todo_run_first_event_seconds_sum",
    "todo_turn_waits_total": "todo_run_pauses_total",
    "todo_turns_running": "todo_runs_running",
    "todo_turns_refused_total": "todo_runs_rejected_total",
    "todo_backend_tasks": "todo_backend_asyncio_tasks",
}


async def test_former_names_of_metrics(watched: Watched, user: User, model: ScriptedModel) -> None:
    await model.script(says("hello"))
    await user.chatkit.say("hello")
    found = await numbers(watched)
    for former, name in FORMER_METRICS.items():
        values = {labels: number for (one, labels), number in found.items() if one == name}
        assert values, name
        assert values == {labels: number for (one, labels), number in found.items() if one == former}


async def test_trace(watched: Watched, user: User, model: ScriptedModel) -> None:
    """One leads from the request to the SQL of both services."""
    asked = with_request_id(user, f"trace-of-{user.name}")
    await model.script(ADD, says("done"))
    trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    user.chatkit.http.headers["traceparent"] = f"00-{trace}-{caller}-01"
    await user.chatkit.say("add it")

    def whole() -> list[Any]:
        spans = [span for span in watched.collector.spans if span.trace == trace]
        has_all = {"run", "POST /chatkit", "tool add_task"} <= {span.name for span in spans}
        # A span is sent after those below it, and the services send theirs at different times.
        return spans if has_all and {span.parent for span in spans} - {span.id for span in spans} == {caller} else []

    spans = await until(whole)
    by_id = {span.id: span for span in spans}

    def path(span: Any) -> list[str]:
        return ([*path(by_id[span.parent])] if span.parent in by_id else []) + [f"{span.service}: {span.name}"]

    insert = next(span for span in spans if any("INSERT INTO tasks" in text for text in span.statements))
    assert path(insert)[:5] == [
        "backend: POST /chatkit",
        "backend: run",
        "backend: tools/call add_task",
        "mcp_server: POST /mcp",
        "mcp_server: tool add_task",
    ]
    [root] = [span for span in spans if span.parent not in by_id]
    assert root.parent == caller
    assert root.attributes["todo.request_id"] == asked
    assert root.attributes["http.response.status_code"] == 200
    models = [path(span) for span in spans if span.name.startswith("chat ")]
    assert models == [["backend: POST /chatkit", "backend: run", "backend: chat offline-rules"]] * 2


async def test_trace_has_no_name_of_a_chat(watched: Watched, user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    trace = "0af7651916cd43dd8448eb211c80319d"
    headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    body = {"user_message": "hello"}
    await user.runs.http.post("/chats/my-own-name/interactions", json=body, headers=headers)

    def whole() -> list[Any]:
        spans = [span for span in watched.collector.spans if span.trace == trace]
        return spans if {"run", "POST /chats"} <= {span.name for span in spans} else []

    spans = {span.name: span for span in await until(whole)}
    assert spans["run"].parent == spans["POST /chats"].id
    assert not any("my-own-name" in str(span.attributes) for span in spans.values())
