"""The task server behind proxies that lose, change and garble its answers, and servers that are none."""

import asyncio
import gzip
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from backend.tools.caller_token import CallerToken
from backend.tools.task_tools import TaskTools
from tests.scripted_model import ScriptedModel
from tests.serving import http_client, serve
from tests.support.backends import user_at
from tests.support.model_requests import outputs_of, requests_to
from tests.support.script import add_task, call, calls, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.tokens import MCP_TOKEN_SECRET
from todo_client.chatkit import user_input

Headers = dict[str, str]
Change = Callable[[httpx2.Response], tuple[int, Headers, bytes]]

JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}


class Proxy:
    """Passes everything on to the MCP server, and changes what comes back from the next tool calls."""

    def __init__(self, services: Services) -> None:
        self._target = f"{services.mcp.url}/mcp"
        self.changes: list[Change] = []
        self.accepted_encodings: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message.get("body", b"")
        given = {key.decode(): value.decode() for key, value in scope["headers"]}
        if scope["path"] == "/mcp":
            self.accepted_encodings.add(given.get("accept-encoding", ""))
        given = {key: value for key, value in given.items() if key not in ("host", "content-length")}
        async with http_client() as client:
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


@asynccontextmanager
async def behind(
    proxy: Any, services: Services, user: User, *, resend_seconds: float = 20, **environment: str
) -> AsyncIterator[User]:
    """The user at a backend that reaches the task server through the proxy."""
    async with (
        serve(proxy, lifespan="off") as url,
        user_at(
            services, user, MCP_INTERNAL_URL=f"{url}/mcp", MCP_RESEND_SECONDS=str(resend_seconds), **environment
        ) as there,
    ):
        yield there


async def outputs(model: ScriptedModel) -> list[str]:
    """What the model read of its calls in its last request."""
    return outputs_of((await requests_to(model))[-1])


@pytest.mark.long(seconds=10)
async def test_call_whose_answer_is_lost_is_made_once(
    services: Services, user: User, model: ScriptedModel, stored: Stored, subtests: pytest.Subtests
) -> None:
    proxy = Proxy(services)
    async with behind(proxy, services, user) as there:
        for case, change in CHANGES.items():
            with subtests.test(case):
                async with User(there.stack) as other:
                    thread = (await other.runs.begin("A talk"))["id"]  # with a title, so that none is requested
                    await model.reset()
                    await model.script(add_task("milk"), says("Added."))
                    proxy.changes = [change] * 2
                    answer = await other.chatkit.say("add milk", thread)
                assert (answer.error, answer.text) == (None, "Added.")
                assert stored.titles(other.name) == ["milk"]
                assert [json.loads(output)["title"] for output in await outputs(model)] == ["milk"]
    assert proxy.accepted_encodings == {"identity"}


@pytest.mark.parametrize("case", ["503 without a body", "200 in HTML", "no UTF-8", "nothing"])
async def test_no_useful_answer_ends_the_run_and_later_calls_work(
    case: str, services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    proxy = Proxy(services)
    await model.script(
        calls(call("add_task", title="milk"), call("add_task", title="eggs")), add_task("bread"), says("Added.")
    )
    async with behind(proxy, services, user, resend_seconds=0.1) as there:
        proxy.changes = [CHANGES[case]] * 100
        first = await there.chatkit.say("add milk and eggs")
        assert first.error
        assert not [event for event in first.of("progress_update") if event.get("icon") == "check"]
        proxy.changes = []
        assert (await there.chatkit.say("add bread", first.thread_id)).text == "Added."
    assert stored.titles(user.name) == ["milk", "bread"], "calls after the one without an answer are not made"
    unknown, not_made = (await outputs(model))[:2]
    assert unknown != not_made, "the model is told which call may have been made, and which was not"


UNCLEAR: dict[str, Change] = {
    "403 in HTML": lambda _: (403, HTML, b"<html>no</html>"),
    "a redirect to elsewhere": lambda _: (307, {"location": "http://elsewhere.example/"}, b""),
    "a redirect to nowhere": lambda _: (307, {"location": "http://nowhere:port/"}, b""),
}


@pytest.mark.parametrize("case", UNCLEAR)
async def test_unclear_outcome_is_told_to_the_model(
    case: str, services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    proxy = Proxy(services)
    await model.script(add_task("milk"), says("Perhaps."))
    async with behind(proxy, services, user) as there:
        proxy.changes = [UNCLEAR[case]]
        assert (await there.chatkit.say("add milk")).text == "Perhaps."
    [output] = await outputs(model)
    assert "unknown" in output
    assert stored.titles(user.name) == ["milk"]


async def test_stop_while_the_server_is_away(
    services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    proxy = Proxy(services)
    await model.script(add_task("milk"))
    async with behind(proxy, services, user, resend_seconds=60, TOOL_WAIT_SECONDS="0.3") as there:
        proxy.changes = [CHANGES["503 without a body"]] * 10_000
        async with there.chatkit.open("threads.create", input=user_input("add milk")) as events:
            async for event in events:
                if event["type"] == "progress_update":
                    break
        await stored.run_with_status(user.name, "cancelled")


def answering(result: dict[str, Any]) -> Callable[[Scope, Receive, Send], Any]:
    """A server that has this result for every request."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked = json.loads(await Request(scope, receive).body())
        answer = JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete", **result}})
        await answer(scope, receive, send)

    return app


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": [{"name": "add_task"}]}], ids=str)
async def test_server_without_tools_does_not_keep_the_backend_from_starting(
    result: dict[str, Any], services: Services, user: User
) -> None:
    async with behind(answering(result), services, user) as there:
        assert (await there.runs.http.get("/ready")).status_code == 503
        assert (await there.chatkit.say("hello")).error


@pytest.mark.parametrize("schema", [{"required": ["tasks"]}, {"properties": {"tasks": {"type": 5}}}], ids=str)
async def test_results_that_break_their_schema_do_not_keep_the_backend_from_starting(
    schema: dict[str, Any], services: Services, user: User, model: ScriptedModel
) -> None:
    tool = {"name": "list_tasks", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", **schema}}
    results = {"tools": [tool], "ttlMs": 0, "cacheScope": "public", "content": [], "structuredContent": {}}
    await model.script(says("Hello."))
    async with behind(answering(results), services, user) as there:
        assert (await there.runs.http.get("/ready")).status_code == 200
        assert (await there.chatkit.say("hello")).text == "Hello."


class Limited(Proxy):
    """The task server to users who have reached a limit."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = dict(scope["headers"]).get(b"mcp-method")
        if method not in (None, b"tools/call"):
            return await super().__call__(scope, receive, send)
        error: object = "Too many. Try again in 7 seconds."
        if method is not None:
            error = {"code": -32000, "message": error}
        content = {"jsonrpc": "2.0", "id": None, "error": error}
        return await JSONResponse(content, status_code=429, headers={"Retry-After": "7"})(scope, receive, send)


async def test_limits_of_the_task_server_are_passed_on(services: Services, user: User, model: ScriptedModel) -> None:
    await model.script(add_task("milk"), says("Fine."))
    async with behind(Limited(services), services, user) as there:
        http = there.runs.http
        for response in (
            await http.get("/tasks?view=all"),
            await http.get("/tasks/changes"),
            await http.get("/tasks/1"),
            await http.post("/tasks", json={"text": "milk"}),
            await http.patch("/tasks/1", json={"title": "milk"}),
        ):
            assert response.status_code == 429, response.text
            assert response.json() == {"error": "Too many. Try again in 7 seconds."}
            assert response.headers["retry-after"] in ("5", "7")
        assert (await there.chatkit.say("add milk")).text == "Fine."
        assert await outputs(model) == ["Too many. Try again in 7 seconds."]


@pytest.mark.long
async def test_credentials_of_its_address_are_not_shown(services: Services) -> None:
    address = "http://me:secret@127.0.0.1:9/mcp?key=secret"
    async with user_at(services, MCP_INTERNAL_URL=address) as user:
        ready = await user.runs.http.get("/ready")
    assert ready.status_code == 503
    assert "127.0.0.1:9" in ready.text
    assert "secret" not in ready.text


@pytest.mark.parametrize(
    "arguments",
    ["{oops", "[1]", '"text"', '{"title": ' + "9" * 5000 + "}", '{"title": NaN}', '{"title": 1e999}'],
    ids=lambda text: text[:16],
)
async def test_arguments_that_are_not_valid(arguments: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    """The model is told, and the run goes on."""
    await model.script(calls({"name": "add_task", "arguments": arguments}), add_task("bread"), says("Sorry."))
    assert (await user.chatkit.say("go")).text == "Sorry."
    refused, made = await outputs(model)
    assert not refused.startswith("{")
    assert made.startswith("{")
    assert stored.titles(user.name) == ["bread"]


@pytest.mark.long(seconds=5)
async def test_calls_of_many_users_over_one_client(services: Services) -> None:
    """Each call is made for its own user, however many are under way."""
    url = f"{services.mcp.url}/mcp"
    tools = TaskTools(url, CallerToken(MCP_TOKEN_SECRET, url), resend_seconds=5)
    names = [f"user-{secrets.token_hex(4)}" for _ in range(20)]

    async def read_list_repeatedly(name: str) -> None:
        await tools.change("add_task", {"title": name}, user_id=name, key=secrets.token_hex(8))
        for _ in range(20):
            page = await tools.list_tasks(user_id=name)
            assert [task["title"] for task in page["tasks"]] == [name]

    await tools.connect()
    try:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(read_list_repeatedly(name))
    finally:
        await tools.cleanup()


async def test_request_without_a_user_is_not_sent(services: Services) -> None:
    token = CallerToken(MCP_TOKEN_SECRET, f"{services.mcp.url}/mcp")
    with pytest.raises(LookupError):
        next(token.auth_flow(httpx2.Request("POST", f"{services.mcp.url}/mcp")))
