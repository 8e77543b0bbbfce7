"""Both services as processes, watched from outside: their log lines, /metrics and the spans they send."""

import asyncio
import contextvars
import json
import logging
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from backend.calendar import address
from backend.model.chat_model import ChatModel
from backend.model.providers import resolve
from backend.settings import Settings
from backend.turn.warm_up import warm_up
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import ChatKit, user_input
from tests.conftest import ROOT
from tests.mcp_server.proxy import proxy
from tests.otlp import Collector, collecting
from tests.processes import ServiceProcess
from tests.scripted_model import ScriptedModel
from tests.waiting import until

Numbers = dict[tuple[str, frozenset[tuple[str, str]]], float]

CANARY = "Zwergspitz"
ADD = {"tool_calls": [{"name": "add_task", "arguments": {"title": CANARY}}]}


@dataclass
class Watched:
    """Two services, and everything that can be seen of them."""

    backend: ServiceProcess
    mcp: ServiceProcess
    model: ServiceProcess
    collector: Collector

    def lines(self, message: str, request_id: str) -> list[dict[str, Any]]:
        texts = [service.log_text for service in (self.backend, self.mcp)]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        return [line for line in lines if (line["message"], line.get("request_id")) == (message, request_id)]


@pytest.fixture(scope="module")
def watched(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    logs = tmp_path_factory.mktemp("logs")
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        tracing = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        shared = {"DATABASE_URL": session_database_url, **tracing}
        mcp = ServiceProcess("mcp_server", "MCP_PORT", logs / "mcp", **shared)
        model = ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", logs / "model")
        addresses = {"MCP_URL": f"{mcp.url}/mcp", "LLM_PROVIDER": "offline", "LLM_BASE_URL": f"{model.url}/v1"}
        backend = ServiceProcess("backend", "BACKEND_PORT", logs / "backend", **shared, **addresses)
        for service, path in ((model, "/health"), (mcp, "/ready"), (backend, "/ready")):
            service.start()
            stack.callback(service.end)
            service.wait_until_ready(path=path)
        yield Watched(backend, mcp, model, collector)


@pytest.fixture
async def script(watched: Watched) -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel(watched.model.url)
    yield model
    await model.reset()
    await model.aclose()


@pytest.fixture
async def chat(watched: Watched, database_url: str) -> AsyncIterator[ChatKit]:
    async with ChatKit(watched.backend.url) as chat:
        yield chat


def as_request(chat: ChatKit, request_id: str) -> str:
    chat.http.headers["X-Request-ID"] = request_id
    return request_id


def test_starting_calls_no_tool(watched: Watched) -> None:
    """Owners of the calls in the log: people only, never a service that warms up."""
    lines = [json.loads(line) for line in watched.mcp.log_text.splitlines()]
    assert {line["owner"] for line in lines if line["message"] == "tool call"} <= {"local"}


async def test_a_turn_is_one_line_and_so_is_each_tool_call_with_the_request_id_of_both(
    watched: Watched, chat: ChatKit, script: ScriptedModel, rows: Rows
) -> None:
    asked = as_request(chat, "one-line-each")
    await script.script({"tool_calls": [*ADD["tool_calls"], {"name": "list_tasks", "arguments": {}}]}, {"text": "done"})
    await chat.say("add it")
    [turn] = watched.lines("turn ended", asked)
    [run] = rows("SELECT * FROM runs")
    assert (turn["run"], turn["conversation"], turn["owner"]) == (run["id"], run["conversation_id"], "local")
    assert turn["outcome"] == run["outcome"] == "completed"
    assert (turn["tool_calls"], turn["model_requests"]) == (2, 2)
    assert turn["input_tokens"] == run["usage"]["input_tokens"] > 0
    assert turn["output_tokens"] == run["usage"]["output_tokens"] > 0
    assert 0 < turn["first_event_seconds"] < turn["seconds"] < 5
    calls = watched.lines("tool call", asked)
    assert sorted((call["tool"], call["owner"], call["outcome"]) for call in calls) == [
        ("add_task", "local", "ok"),
        ("list_tasks", "local", "ok"),
    ]
    assert all(0 < call["seconds"] < 5 for call in calls)


async def test_a_failed_turn_names_its_request_beside_the_reference(
    watched: Watched, chat: ChatKit, script: ScriptedModel
) -> None:
    asked = as_request(chat, "with-reference")
    await script.script({"status": 401})
    answer = await chat.say("hello")
    assert answer.error is not None
    reference = answer.error["message"].rpartition("Reference ")[2].rstrip(")")
    log = [json.loads(line) for line in watched.backend.log_text.splitlines()]
    [line] = [line for line in log if f"reference {reference}" in line["message"]]
    assert line["request_id"] == asked
    assert [line["outcome"] for line in watched.lines("turn ended", asked)] == ["failed"]


@pytest.mark.parametrize("given", ["", "x" * 65, 'a"b', "a b", "ä", "{}", "${jndi:x}"])
@pytest.mark.parametrize("service", ["backend", "mcp"])
async def test_what_is_no_plain_token_is_not_taken_as_a_request_id(watched: Watched, service: str, given: str) -> None:
    url = getattr(watched, service).url
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        plain = await http.get(f"{url}/health", headers={"X-Request-ID": "req_1.A-b"})
        other = await http.get(f"{url}/health", headers=[(b"X-Request-ID", given.encode())])
    assert plain.headers["x-request-id"] == "req_1.A-b"
    assert re.fullmatch("[0-9a-f]{16}", other.headers["x-request-id"])


async def test_no_text_of_a_conversation_is_in_a_line_a_metric_or_a_span(
    watched: Watched, chat: ChatKit, script: ScriptedModel
) -> None:
    wrong = {"tool_calls": [{"name": "complete_task", "arguments": {"task_id": CANARY}}]}
    unknown = {"tool_calls": [{"name": CANARY, "arguments": {CANARY: CANARY}}]}
    foreign = {"tool_calls": [{"name": "update_task", "arguments": {"task_id": 999, "title": CANARY}}]}
    await script.script(ADD, wrong, unknown, foreign, {"text": CANARY})
    first = await chat.say(f"add {CANARY}")
    assert CANARY in first.text
    await script.script({"status": 400, "body": {"error": {"message": CANARY}}})
    await chat.say(CANARY, first.thread_id)
    await until(lambda: len([span for span in watched.collector.spans if span.name == "turn"]) >= 2)
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        stranger = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": CANARY, "arguments": {}}}
        headers = {"accept": "application/json, text/event-stream"}
        await http.post(f"{watched.mcp.url}/mcp", json=stranger, headers=headers)
        shown = [(await http.get(f"{service.url}/metrics")).text for service in (watched.backend, watched.mcp)]
    spans = [body.decode(errors="replace") for body in watched.collector.bodies]
    assert 'tool="unknown"' in shown[1]
    for text in (watched.backend.log_text, watched.mcp.log_text, *shown, *spans):
        assert CANARY not in text


async def test_the_address_of_a_calendar_is_in_no_line_metric_or_span(watched: Watched, database_url: str) -> None:
    async with httpx2.AsyncClient(base_url=watched.backend.url, trust_env=False) as http:
        url = (await http.post("/calendar")).json()["url"]
        answers = [await http.get(one) for one in (url, f"{url}x", url.removesuffix(".ics"), f"{url}?{url}")]
        assert [answer.status_code for answer in answers] == [200, 404, 404, 200]
        shown = (await http.get("/metrics")).text
    name = f"GET {address.TEMPLATE}"
    spans = await until(lambda: [span for span in watched.collector.spans if span.name == name][len(answers) - 1 :])
    assert spans[0].attributes["http.route"] == "/calendar/{secret}.ics"
    asked = [answer.headers["x-request-id"] for answer in answers]
    told = [line for one in asked for line in watched.lines("calendar read", one)]
    assert [(line["route"], line.get("owner"), line["outcome"], line.get("tasks")) for line in told] == [
        (address.TEMPLATE, "local", "sent", 0),
        (address.TEMPLATE, None, "refused", None),
        (address.TEMPLATE, None, "refused", None),
        (address.TEMPLATE, "local", "sent", 0),
    ]
    assert f'todo_calendar_seconds_count{{outcome="refused",route="{address.TEMPLATE}"}} 2.0' in shown
    secret = url.rpartition("/")[2].removesuffix(".ics")
    sent = "".join(body.decode(errors="replace") for body in watched.collector.bodies)
    for text in (watched.backend.log_text, watched.mcp.log_text, shown, sent):
        assert text
        assert secret[:20] not in text


async def test_the_metrics_agree_with_the_runs(
    watched: Watched, chat: ChatKit, script: ScriptedModel, rows: Rows
) -> None:
    before = await numbers(watched)
    await script.script(ADD, {"text": "done"}, {"text": "hello"}, {"status": 401}, {"status": 503}, {"text": "again"})
    thread = (await chat.say("add it")).thread_id
    for text in ("hello", "fail", "retry"):
        await chat.say(text, thread)
    await script.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        assert value(await numbers(watched), "todo_turns_running") == 1
    async with asyncio.timeout(30):  # a run has its outcome a moment before it is counted
        while value(after := await numbers(watched), "todo_turns_running"):
            await asyncio.sleep(0.01)

    def more(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    for outcome in ("completed", "failed", "cancelled", "interrupted"):
        count = len(rows("SELECT 1 FROM runs WHERE outcome = %s", outcome))
        assert more("todo_turns_total", outcome=outcome) == more("todo_turn_seconds_count", outcome=outcome) == count
    assert more("todo_turn_first_event_seconds_count") == len(rows("SELECT 1 FROM runs"))
    used = [row["usage"] or {} for row in rows("SELECT usage FROM runs")]
    for direction in ("input", "output"):
        tokens = sum(one.get(f"{direction}_tokens", 0) for one in used)
        assert more("todo_model_tokens_total", direction=direction) == tokens
    asked = {kind: more("todo_model_request_seconds_count", outcome=kind) for kind in ("ok", "refused", "failed")}
    assert asked == {"ok": 4, "refused": 1, "failed": 1}
    assert more("todo_model_request_seconds_count", outcome="cancelled") == 1
    assert more("todo_retries_total", to="model") == 1
    assert more("todo_tool_call_seconds_count", tool="add_task", outcome="ok") == 1
    assert 0 <= value(after, "todo_backend_connections_in_use") <= 10


async def numbers(watched: Watched) -> Numbers:
    found: Numbers = {}
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        for service in (watched.backend, watched.mcp):
            response = await http.get(f"{service.url}/metrics")
            assert response.status_code == 200
            for family in text_string_to_metric_families(response.text):
                found |= {(sample.name, frozenset(sample.labels.items())): sample.value for sample in family.samples}
    return found


def value(found: Numbers, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0)


async def test_one_trace_leads_from_the_request_to_the_sql_of_both_services(
    watched: Watched, chat: ChatKit, script: ScriptedModel
) -> None:
    asked = as_request(chat, "traced")
    await script.script(ADD, {"text": "done"})
    trace = "0af7651916cd43dd8448eb211c80319c"
    chat.http.headers["traceparent"] = f"00-{trace}-b7ad6b7169203331-01"
    await chat.say("add it")

    def whole() -> list[Any]:
        spans = [span for span in watched.collector.spans if span.trace == trace]
        return spans if {"turn", "POST /chatkit", "POST /mcp"} <= {span.name for span in spans} else []

    spans = await until(whole)
    by_id = {span.id: span for span in spans}

    def path(span: Any) -> list[str]:
        return ([*path(by_id[span.parent])] if span.parent in by_id else []) + [f"{span.service}: {span.name}"]

    insert = next(span for span in spans if any("INSERT INTO tasks" in text for text in span.statements))
    assert path(insert) == [
        "backend: POST /chatkit",
        "backend: turn",
        "backend: tools/call add_task",
        "mcp_server: POST /mcp",
        "mcp_server: tool add_task",
        "mcp_server: transaction",
    ]
    [root] = [span for span in spans if span.parent not in by_id]
    assert root.parent == "b7ad6b7169203331"
    assert root.attributes["todo.request_id"] == asked
    assert root.attributes["http.response.status_code"] == 200
    models = [path(span) for span in spans if span.name.startswith("chat ")]
    assert models == [["backend: POST /chatkit", "backend: turn", "backend: chat offline-rules"]] * 2
    lease = next(span for span in spans if any("INSERT INTO runs" in text for text in span.statements))
    assert path(lease) == ["backend: POST /chatkit", "backend: transaction"]


async def test_a_trace_tells_an_interaction_and_not_the_name_of_its_chat(watched: Watched, chat: ChatKit) -> None:
    trace = "0af7651916cd43dd8448eb211c80319d"
    chat.http.headers["traceparent"] = f"00-{trace}-b7ad6b7169203331-01"
    await chat.http.post("/chats/my-own-name/interactions", json={"user_message": "hello"})

    def whole() -> list[Any]:
        spans = [span for span in watched.collector.spans if span.trace == trace]
        return spans if {"turn", "POST /chats"} <= {span.name for span in spans} else []

    spans = {span.name: span for span in await until(whole)}
    assert spans["turn"].parent == spans["POST /chats"].id
    assert spans["POST /chats"].parent == "b7ad6b7169203331"
    assert not any("my-own-name" in str(span.attributes) for span in spans.values())


async def test_an_outcome_whose_confirmation_was_lost_is_told_once(
    backend: Backend, database_url: str, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    async with proxy(database_url) as way, backend(database_url=SecretStr(way.url)) as chat:
        way.cut_after = b"ended_at"
        with caplog.at_level("INFO", logger="backend.turn.reports"):
            await chat.say("hello")
            told = await until(lambda: [one for one in caplog.records if one.getMessage() == "turn ended"])
    assert way.cut_after is None
    [run] = rows("SELECT id, outcome FROM runs")
    assert [(one.fields["run"], one.fields["outcome"]) for one in told] == [(run["id"], "completed")]
    assert run["outcome"] == "completed"


async def test_a_heartbeat_without_a_database_is_one_line(
    backend: Backend, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[logging.LogRecord]:
        return [one for one in caplog.records if "heartbeat failed" in one.getMessage()]

    async with proxy(database_url) as way, backend(database_url=SecretStr(way.url), lease_seconds=1.0):
        await way.stop()
        assert not any(one.exc_info for one in await until(said))
        await way.start()


async def test_a_conversation_is_free_again_when_its_beginning_was_not_confirmed(
    backend: Backend, database_url: str, rows: Rows
) -> None:
    async with proxy(database_url) as way, backend(database_url=SecretStr(way.url), lease_seconds=60) as chat:
        way.cut_after = b"INSERT INTO conversations"
        response = await chat.post("threads.create", input=user_input("hello"))
        assert response.status_code == 503
        assert "database cannot be reached" in response.json()["error"]
        assert way.cut_after is None
        [run] = await until(lambda: rows("SELECT conversation_id, outcome FROM runs WHERE status = 'ended'"))
        assert run["outcome"] == "failed"
        assert "database cannot be reached" in (await chat.items(run["conversation_id"]))[-1]["task"]["title"]
        assert (await chat.say("hello", run["conversation_id"])).error is None


def requests_to_the_model() -> float:
    """How many of this process were counted, whatever became of them."""
    families = text_string_to_metric_families(generate_latest().decode())
    counts = [sample for family in families for sample in family.samples]
    return sum(sample.value for sample in counts if sample.name == "todo_model_request_seconds_count")


async def test_what_is_asked_of_the_model_outside_of_any_request_is_counted(
    settings: Settings, model: ScriptedModel
) -> None:
    chat_model, before = ChatModel(resolve(settings)), requests_to_the_model()
    asking = chat_model.complete("Summarise this.", max_tokens=9)
    await asyncio.create_task(asking, context=contextvars.Context())
    await chat_model.client.close()
    assert len(await model.finished_requests()) == 1
    assert requests_to_the_model() == before + 1


async def test_warming_up_is_not_counted(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.app.warm_up", warm_up)  # this backend's own, too
    before = requests_to_the_model()
    async with backend() as chat:
        assert requests_to_the_model() == before
        await chat.say("hello")
        assert requests_to_the_model() == before + 1


def test_without_an_endpoint_no_sdk_is_loaded() -> None:
    program = (
        "import sys, backend.app, mcp_server.server; assert not [m for m in sys.modules if 'opentelemetry.sdk' in m]"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
