"""The connection to the MCP server behind proxies that lose, change and garble its answers."""

import gc
import gzip
import json
from collections.abc import Callable
from string import Formatter
from typing import Any

import httpx2
import pytest
from agents import RunContextWrapper
from mcp.shared.exceptions import MCPError
from mcp.types import REQUEST_TIMEOUT
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from backend.conversation.model_input.history import NOT_MADE, UNKNOWN_OUTCOME
from backend.tools.table import TOOLS
from backend.tools.tasks.tools import TaskTools
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.waiting import until

Headers = dict[str, str]
Change = Callable[[httpx2.Response], tuple[int, Headers, bytes]]

JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}


class Proxy:
    """Passes everything on to the MCP server, and changes what comes back from the next tool calls."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.changes: list[Change] = []
        self.accepted_encodings: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message.get("body", b"")
        given = {key.decode(): value.decode() for key, value in scope["headers"]}
        self.accepted_encodings.add(given.get("accept-encoding", ""))
        given = {key: value for key, value in given.items() if key not in ("host", "content-length")}
        async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
            answer = await client.request(scope["method"], self._target, content=body, headers=given)
        status, headers, content = answer.status_code, JSON, answer.content
        if self.changes and b'"tools/call"' in body:
            status, headers, content = self.changes.pop(0)(answer)
        raw = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": content})


# what becomes of the answer to a call that the MCP server has carried out
CHANGES: dict[str, Change] = {
    "502 in HTML": lambda _: (502, HTML, b"<html>bad gateway</html>"),
    "500 in JSON": lambda _: (500, JSON, b'{"detail": "oops"}'),
    "503 without a body": lambda _: (503, {}, b""),
    "200 in HTML": lambda _: (200, HTML, b"<html>please sign in</html>"),
    "200 in HTML that says it is JSON": lambda _: (200, JSON, b"<html>please sign in</html>"),
    "200 in JSON that says it is HTML": lambda answer: (200, HTML, answer.content),
    "JSON cut off": lambda answer: (200, JSON, answer.content[:-20]),
    "no UTF-8": lambda _: (200, JSON, b'{"a": "\xff"}'),
    "nothing": lambda _: (200, JSON, b""),
    "accepted": lambda _: (202, {}, b""),
    "compressed": lambda answer: (200, JSON | {"content-encoding": "gzip"}, gzip.compress(answer.content)),
    "not compressed, but it says so": lambda answer: (200, JSON | {"content-encoding": "gzip"}, answer.content),
}


@pytest.mark.parametrize("case", CHANGES)
async def test_a_call_whose_answer_is_lost_is_made_once(
    backend: Backend, model: ScriptedModel, rows: Rows, mcp_url: str, case: str
) -> None:
    proxy = Proxy(mcp_url)
    async with serve(proxy, lifespan="off") as url, backend(mcp_internal_url=f"{url}/mcp") as chat:
        proxy.changes = [CHANGES[case]] * 2
        answer = await chat.say("add milk")
        assert answer.error is None
        assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk"]
        assert "outcome" not in await told(model)
        assert (await chat.say("add bread")).error is None
    assert proxy.accepted_encodings == {"identity"}


@pytest.mark.parametrize("case", [case for case in CHANGES if case != "compressed"])
async def test_tools_that_answer_nothing_of_use_end_the_turn_and_work_again_later(
    backend: Backend, rows: Rows, mcp_url: str, case: str
) -> None:
    proxy = Proxy(mcp_url)
    async with (
        serve(proxy, lifespan="off") as url,
        backend(mcp_internal_url=f"{url}/mcp", mcp_resend_seconds=0.1) as chat,
    ):
        proxy.changes = [CHANGES[case]] * 100
        answer = await chat.say("add milk")
        assert answer.error is not None
        assert "task service cannot be reached" in answer.error["message"]
        proxy.changes = []
        assert (await chat.say("add bread")).error is None
        assert {row["title"] for row in rows("SELECT title FROM tasks")} == {"milk", "bread"}


async def test_calls_after_one_that_got_no_answer_are_not_made(
    backend: Backend, model: ScriptedModel, rows: Rows, mcp_url: str
) -> None:
    calls = [{"name": "add_task", "arguments": {"title": title}} for title in ("milk", "bread")]
    await model.script({"tool_calls": calls})
    proxy = Proxy(mcp_url)
    async with (
        serve(proxy, lifespan="off") as url,
        backend(mcp_internal_url=f"{url}/mcp", mcp_resend_seconds=0.1) as chat,
    ):
        proxy.changes = [CHANGES["503 without a body"]] * 100
        first = await chat.say("add milk and bread")
        assert first.error is not None
        assert (await chat.say("hello", first.thread_id)).error is None
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    assert [message["content"] for message in messages if message["role"] == "tool"] == [UNKNOWN_OUTCOME, NOT_MADE]
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk"]


async def test_a_stop_while_the_tools_are_away_ends_the_turn_without_a_traceback(
    backend: Backend, model: ScriptedModel, rows: Rows, mcp_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await model.script({"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]})
    proxy = Proxy(mcp_url)
    async with (
        serve(proxy, lifespan="off") as url,
        backend(mcp_internal_url=f"{url}/mcp", mcp_resend_seconds=0.3) as chat,
    ):
        proxy.changes = [CHANGES["503 without a body"]] * 100
        async with chat.open("threads.create", input=user_input("add milk")) as events:
            async for event in events:
                if event["type"] == "progress_update":
                    break
        await until(lambda: rows("SELECT 1 FROM runs WHERE outcome = 'cancelled'"))
    gc.collect()  # what nobody has looked at is told of when it goes
    assert "never retrieved" not in caplog.text


UNCLEAR: dict[str, Change] = {
    "403 in HTML": lambda _: (403, HTML, b"<html>no</html>"),
    "a redirect to elsewhere": lambda _: (307, {"location": "http://elsewhere.example/"}, b""),
    "a redirect to nowhere": lambda _: (307, {"location": "http://nowhere:port/"}, b""),
}


@pytest.mark.parametrize("case", UNCLEAR)
async def test_a_call_with_an_unclear_outcome_is_not_called_unmade(
    backend: Backend, model: ScriptedModel, rows: Rows, mcp_url: str, case: str
) -> None:
    proxy = Proxy(mcp_url)
    async with serve(proxy, lifespan="off") as url, backend(mcp_internal_url=f"{url}/mcp") as chat:
        proxy.changes = [UNCLEAR[case]]
        assert (await chat.say("add milk")).error is None
    assert await told(model) == UNKNOWN_OUTCOME
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["milk"]


def answering(result: dict[str, Any]) -> Callable[[Scope, Receive, Send], Any]:
    """A server that has this result for every request."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked = json.loads(await Request(scope, receive).body())
        answer = JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete", **result}})
        await answer(scope, receive, send)

    return app


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": [{"name": "add_task"}]}], ids=str)
async def test_a_server_that_has_no_tools_is_named_and_does_not_keep_the_backend_from_starting(
    backend: Backend, result: dict[str, Any]
) -> None:
    async with serve(answering(result), lifespan="off") as url, backend(mcp_internal_url=f"{url}/mcp") as chat:
        ready = await chat.http.get("/ready")
        assert ready.status_code == 503
        assert "The MCP server does not answer" in ready.json()["reason"]
        answer = await chat.say("hello")
        assert answer.error is not None
        assert "task service cannot be reached" in answer.error["message"]


@pytest.mark.parametrize("schema", [{"required": ["tasks"]}, {"properties": {"tasks": {"type": 5}}}], ids=str)
async def test_results_that_break_their_schema_do_not_keep_the_backend_from_starting(
    backend: Backend, schema: dict[str, Any]
) -> None:
    tool = {"name": "list_tasks", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", **schema}}
    results = {"tools": [tool], "ttlMs": 0, "cacheScope": "public", "content": [], "structuredContent": {}}
    async with serve(answering(results), lifespan="off") as url, backend(mcp_internal_url=f"{url}/mcp") as chat:
        assert (await chat.http.get("/ready")).status_code == 200
        assert (await chat.say("hello")).error is None


NOT_SENT = ("{oops", "[1]", '"text"', '{"title": ' + "9" * 5000 + "}")
REFUSED = ('{"title": NaN}', '{"title": 1e999}')


@pytest.mark.parametrize("arguments", [*NOT_SENT, *REFUSED], ids=lambda text: text[:16])
async def test_arguments_that_are_not_valid_are_named(
    chat: ChatKit, model: ScriptedModel, rows: Rows, arguments: str
) -> None:
    await model.script({"tool_calls": [{"name": "add_task", "arguments": arguments}]}, {"text": "sorry"})
    assert (await chat.say("go")).error is None
    sentence = "arguments are not a JSON object" if arguments in NOT_SENT else "title must be"
    assert sentence in await told(model)
    assert (await chat.say("add bread")).error is None
    assert [row["title"] for row in rows("SELECT title FROM tasks")] == ["bread"]


async def test_the_table_of_tools_says_what_the_server_says_of_them(mcp_url: str) -> None:
    tools = TaskTools(mcp_url, None, resend_seconds=1)
    await tools.connect()
    listed = {tool.name: tool for tool in await tools.list_tools()}
    await tools.cleanup()
    of_tasks = {name: shown for name, shown in TOOLS.items() if shown.agent is None}
    assert listed.keys() == of_tasks.keys()
    for name, shown in of_tasks.items():
        tool = listed[name]
        assert tool.annotations is not None
        assert tool.output_schema is not None
        assert shown.reads == tool.annotations.read_only_hint
        for words in filter(None, (shown.words, *shown.instead.values())):
            assert named_in(words.running) <= tool.input_schema["properties"].keys()
            assert named_in(words.done) <= tool.output_schema["properties"].keys()
            assert named_in(words.running_several) | named_in(words.done_several) | named_in(words.heading) <= {"count"}


def named_in(line: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(line) if field}


async def test_a_hung_server_leaves_the_outcome_unknown(mcp_url: str) -> None:
    """The client's own timeout: nothing came back, so nobody can say that the call was not made."""
    timeout = MCPError(code=REQUEST_TIMEOUT, message="Request 'tools/call' timed out")
    invoked = TaskTools(mcp_url, None, resend_seconds=1)._get_failure_error_function(None)
    assert invoked is not None
    assert invoked(RunContextWrapper(None), timeout) == UNKNOWN_OUTCOME


async def test_the_address_is_shown_without_its_credentials(free_port: Callable[[], int]) -> None:
    port = free_port()
    tools = TaskTools(f"http://me:secret@127.0.0.1:{port}/mcp?key=secret#secret", None, resend_seconds=0)
    await tools.connect()
    problem = await tools.problem()
    await tools.cleanup()
    assert problem is not None
    assert f" http://127.0.0.1:{port}/mcp: " in problem


async def told(model: ScriptedModel) -> str:
    """What the model read about the one call of its last turn."""
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    [output] = [message["content"] for message in messages if message["role"] == "tool"]
    return output
