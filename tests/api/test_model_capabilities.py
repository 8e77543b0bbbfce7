"""What a model's server can do, and what the assistant does with a model that cannot call tools."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from backend.commands import models
from backend.model.capabilities import lookup
from backend.model.capabilities.context_size import INSTRUCTION_TOKENS, count_tokens
from backend.model.providers import PROFILES
from backend.model.responses import limits
from backend.settings import ProviderName, ToolCalls
from cli.commands.up import _describe_model
from common.telemetry import metrics
from tests.fake_ollama import model as ollama_model
from tests.fake_ollama import serve_ollama
from tests.scripted_model import ScriptedModel
from tests.support.answers import start_run
from tests.support.backends import user_at
from tests.support.completions import chunk
from tests.support.model_requests import requests_to
from tests.support.model_server import (
    ModelServer,
    describe_llamacpp,
    describe_llamacpp_as_custom,
    describe_lmstudio,
    describe_ollama,
    hang,
    send_endlessly,
    serve_model,
)
from tests.support.script import add_task, call, calls, says, start_coder
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

CUSTOM = {"LLM_PROVIDER": "custom", "LLM_MODEL": "m"}
WRITTEN = 'I add it.\n{"name": "add_task", "arguments": {"title": "milk"}}'


@pytest.mark.parametrize(("setting", "titles"), [("", ["milk"]), ("streamed", [])])
async def test_calls_that_are_written_as_text(
    setting: str,
    titles: list[str],
    services: Services,
    user: User,
    model: ScriptedModel,
    stored: Stored,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After the second one the model's calls are read from its text, unless LLM_TOOL_CALLS is set."""
    await model.script(says(WRITTEN), says(WRITTEN), says(WRITTEN), says("Added."))
    async with user_at(services, user, **CUSTOM, LLM_TOOL_CALLS=setting) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        for _ in range(2):
            assert (await there.chatkit.say("add milk", thread)).text == WRITTEN
        assert stored.titles(user.name) == []
        await there.chatkit.say("add milk", thread)
        bodies = await requests_to(model)
    assert stored.titles(user.name) == titles
    assert ["tools" in body for body in bodies[:3]] == [True, True, not titles]
    lines = [record.getMessage() for record in caplog.records if "written a call as text" in record.getMessage()]
    assert len(lines) == len(titles)


async def test_users_cannot_end_the_calls_of_a_model(services: Services, user: User, model: ScriptedModel) -> None:
    """Anybody can ask a model to write a call, or that something was added: one that has made calls can make them."""
    await model.script(calls(call("add_task", title="milk")), *[says("I've added bread.")] * 6, says("Hello."))
    async with user_at(services, user, **CUSTOM) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        for text in ("add milk", "say that you have added bread", "say it again", "hello"):
            await there.chatkit.say(text, thread)
        bodies = await requests_to(model)
    assert all("tools" in body for body in bodies)


SERVERS: dict[str, Callable[..., dict[str, Any]]] = {
    "llamacpp": describe_llamacpp,
    "ollama": describe_ollama,
    "lmstudio": describe_lmstudio,
    "custom": describe_llamacpp_as_custom,
}


def settings_of(server: ModelServer, provider: str, **more: str) -> dict[str, str]:
    return {"LLM_PROVIDER": provider, "LLM_BASE_URL": f"{server.url}/v1", "LLM_MODEL": "m", **more}


async def read_model(user: User) -> dict[str, Any]:
    return (await user.runs.ready())["model"]


@pytest.mark.parametrize("provider", SERVERS)
async def test_model_without_tools(
    provider: str, services: Services, user: User, stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    """Its first call is read from its text; log, readiness and page say so, in one line."""
    async with serve_model(SERVERS[provider](tools=False)) as server:
        await server.model.script(says(WRITTEN), says("Added."))
        async with user_at(services, user, **settings_of(server, provider)) as there:
            thread = (await there.runs.begin("A talk"))["id"]
            await there.chatkit.say("add milk", thread)
            model, page = await read_model(there), (await there.runs.http.get("/")).text
        bodies = await requests_to(server.model)
    assert stored.titles(user.name) == ["milk"]
    assert not any("tools" in body for body in bodies)
    assert model["tool_calls"] == "text"
    [note] = model["notes"]
    assert note.startswith("The model cannot call tools, as its server says. ")
    assert '"writesCalls": true' in page
    assert len([one for one in caplog.records if "cannot call tools" in one.getMessage()]) == 1


@pytest.mark.parametrize("provider", SERVERS)
async def test_model_with_tools(provider: str, services: Services, user: User) -> None:
    async with serve_model(SERVERS[provider](tools=True)) as server:
        await server.model.script(says("Hello."))
        async with user_at(services, user, **settings_of(server, provider)) as there:
            await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
            model = await read_model(there)
        [body] = await requests_to(server.model)
    assert "tools" in body
    assert (model["tool_calls"], model["notes"]) == ("streamed", [])


async def test_setting_comes_first(services: Services, user: User) -> None:
    async with serve_model(describe_llamacpp(tools=False)) as server:
        await server.model.script(says("Hello."))
        async with user_at(services, user, **settings_of(server, "llamacpp", LLM_TOOL_CALLS="streamed")) as there:
            await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
        [body] = await requests_to(server.model)
    assert "tools" in body


async def test_other_model_under_the_same_name(services: Services, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a restart of llama.cpp's server with another file."""
    monkeypatch.setattr(lookup, "_FRESH_SECONDS", 0)
    async with serve_model(describe_llamacpp(tools=False)) as server:
        await server.model.script(says("Hello."), says("Hello."))
        async with user_at(services, user, **settings_of(server, "llamacpp")) as there:
            thread = (await there.runs.begin("A talk"))["id"]
            await there.chatkit.say("hello", thread)
            server.routes |= describe_llamacpp(tools=True)
            await there.chatkit.say("hello", thread)
        bodies = await requests_to(server.model)
    assert ["tools" in body for body in bodies] == [False, True]


@pytest.mark.parametrize("tools", [True, False])
async def test_mode_stays_while_ollama_unloads_the_model(
    tools: bool, services: Services, user: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As it does after five minutes: only then is there no digest."""
    monkeypatch.setattr(lookup, "_FRESH_SECONDS", 0)
    loaded = {"models": [{"name": "m", "digest": "a"}]}
    async with serve_model(describe_ollama(tools=tools)) as server:
        await server.model.script(*[says(WRITTEN if tools else "Hello.")] * 2, *[says("Hello.")] * 3)
        async with user_at(services, user, **settings_of(server, "ollama")) as there:
            thread = (await there.runs.begin("A talk"))["id"]
            for models in (loaded, loaded, {"models": []}, loaded, {"models": []}):
                server.routes["/api/ps"] = models
                await there.chatkit.say("hello", thread)
        bodies = await requests_to(server.model)
    assert ["tools" in body for body in bodies] == [tools, tools, False, False, False]
    assert len([one for one in caplog.records if "LLM_TOOL_CALLS=text" in one.getMessage()]) == 1


async def test_each_model_has_its_own_mode(services: Services, user: User) -> None:
    """Also one of LLM_MODELS, which users choose."""
    listed = {"data": [{"id": "m", "capabilities": ["tool_use"]}, {"id": "small", "capabilities": []}]}
    async with serve_model({"/api/v0/models": listed}) as server:
        await server.model.script(says("Hello."), says("Hello."))
        async with user_at(services, user, **settings_of(server, "lmstudio", LLM_MODELS="small")) as there:
            chat = (await there.runs.begin("A talk"))["id"]
            for model in ("m", "small"):
                await there.runs.say(chat, "hello", more={"model": model})
        bodies = await requests_to(server.model)
    assert [("tools" in body, body["model"]) for body in bodies] == [(True, "m"), (False, "small")]


async def test_server_that_rejects_tools(services: Services, user: User, stored: Stored) -> None:
    """Whoever it is: the request is sent again, with the tools in its text."""
    words = {"error": {"message": "registry.ollama.ai/library/m does not support tools"}}
    async with serve_model({}) as server:
        await server.model.script({"status": 400, "body": words}, says(WRITTEN), says("Added."))
        async with user_at(services, user, **settings_of(server, "custom")) as there:
            answer = await there.chatkit.say("add milk", (await there.runs.begin("A talk"))["id"])
    assert answer.error is None
    assert stored.titles(user.name) == ["milk"]


async def test_provider_that_has_nothing_to_ask(services: Services, user: User) -> None:
    async with serve_model({}) as server:
        await server.model.script(says("Hello."))
        async with user_at(services, user, **settings_of(server, "cerebras", LLM_API_KEY="key")) as there:
            await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
    assert server.questions == []


UNUSABLE: dict[str, Any] = {
    "an error": Response(status_code=500),
    "a page": Response("<html></html>"),
    "a redirect": RedirectResponse("/v1/models"),
    "a list": [1],
    "100 MB": send_endlessly,
    "nothing": hang,
    "too many headers": Response("{}", headers={f"x-{number}": "x" for number in range(300)}),
    "deep nesting": Response("[" * 100_000),
    "other shapes": {"default_generation_settings": [], "chat_template_caps": "yes", "data": {"id": 1}, "models": 7},
    "numbers that are none": {
        "default_generation_settings": {"n_ctx": "many"},
        "chat_template_caps": {"supports_tools": "no"},
        "model_path": None,
    },
}


@pytest.mark.long
@pytest.mark.parametrize("case", UNUSABLE)
async def test_unusable_responses_change_nothing(
    case: str, services: Services, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "backend.model")
    async with serve_model({"/props": UNUSABLE[case]}) as server:
        await server.model.script(says("Hello."), says("Hello again."))
        async with user_at(services, user, **settings_of(server, "llamacpp")) as there:
            thread = (await there.runs.begin("A talk"))["id"]
            assert (await there.chatkit.say("hello", thread)).text == "Hello."
            began = time.monotonic()
            assert (await there.chatkit.say("hello", thread)).text == "Hello again."
            assert time.monotonic() - began < 1.9, "it does not wait for the server again"
        bodies = await requests_to(server.model)
    assert ["tools" in body for body in bodies] == [True, True]
    lines = [one.getMessage() for one in caplog.records if one.name.startswith("backend.model")]
    assert len(lines) == (0 if case == "numbers that are none" else 1), lines


LOADING = {"status": 503, "body": {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}}


@pytest.fixture
def quick_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_LOADING_SECONDS", 0.05)
    monkeypatch.setattr(limits, "_PROGRESS_SECONDS", 0.1)


@pytest.mark.usefixtures("quick_loading")
async def test_model_that_loads(services: Services, user: User) -> None:
    """It is waited for longer than for a retry, and when it has loaded its server says what it can do."""
    retries = metrics.RETRIES.labels("model")._value.get()
    async with serve_model({}) as server:

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            is_loading = server.paths.count("/v1/chat/completions") < 6
            response = JSONResponse(LOADING["body"], 503) if is_loading else JSONResponse(props)
            await response(scope, receive, send)

        props, server.routes["/props"] = describe_llamacpp(tools=False)["/props"], respond
        await server.model.script(*[LOADING] * 6, says("Hello."))
        async with user_at(services, user, **settings_of(server, "llamacpp")) as there:
            answer = await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
        bodies = await requests_to(server.model)
    assert (answer.error, answer.text) == (None, "Hello.")
    progress = [event["text"] for event in answer.of("progress_update")]
    assert progress[0] == "The model is loading…"
    assert len(progress) >= 2
    assert "tools" not in bodies[-1]
    assert metrics.RETRIES.labels("model")._value.get() == retries


@pytest.mark.usefixtures("quick_loading")
async def test_stream_that_begins_while_the_model_loads(services: Services, user: User, model: ScriptedModel) -> None:
    """With an empty frame, as that of the role, before it says that the model is not loaded yet."""
    error = f"data: {json.dumps(LOADING['body'])}\n\n"
    await model.script({"raw": [chunk({"role": "assistant", "content": ""}), error]}, says("Hello."))
    async with user_at(services, user, **CUSTOM) as there:
        answer = await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
    assert (answer.error, answer.text) == (None, "Hello.")
    assert [event["text"] for event in answer.of("progress_update")] == ["The model is loading…"]


async def test_model_that_does_not_finish_loading(services: Services, user: User) -> None:
    async with serve_model({}) as server:
        await server.model.script(*[LOADING] * 99)
        settings = settings_of(server, "llamacpp", LLM_FIRST_TOKEN_SECONDS="3")
        async with user_at(services, user, **settings) as there:
            answer = await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
    assert answer.error is not None
    assert answer.error["message"].startswith("The model is still being loaded. ")


async def test_first_token_has_one_limit(services: Services, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the server is silent after it has loaded its model for a while."""
    monkeypatch.setattr(limits, "_LOADING_SECONDS", 3)
    async with serve_model({}) as server:
        await server.model.script(LOADING, {"delay": 60})
        settings = settings_of(server, "custom", LLM_FIRST_TOKEN_SECONDS="7")
        async with user_at(services, user, **settings) as there:
            thread, began = (await there.runs.begin("A talk"))["id"], time.monotonic()
            answer = await there.chatkit.say("hello", thread)
            passed = time.monotonic() - began
    assert answer.error is not None
    assert answer.error["message"].startswith("The model did not begin to answer within 7 seconds")
    assert passed < 9.5, "a limit of its own after loading would end after 10 s"


async def test_stop_while_the_model_loads(
    services: Services, user: User, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_LOADING_SECONDS", 120)
    async with serve_model({}) as server:
        await server.model.script(*[LOADING] * 99)
        settings = settings_of(server, "llamacpp", LLM_FIRST_TOKEN_SECONDS="600")
        async with user_at(services, user, **settings) as there:
            run = await start_run(there, "chat", "hello")
            await until(lambda: server.paths.count("/v1/chat/completions") == 1)
            began = time.monotonic()
            await there.runs.cancel("chat", run)
            await until(lambda: stored.run_statuses(user.name) == ["cancelled"])
    assert time.monotonic() - began < 60


EXPECTED_SENTENCE = (
    r"The model's context has 1,024 tokens, and the assistant's instructions and tools need about \d,\d00\. "
)


@pytest.mark.parametrize("provider", SERVERS)
async def test_context_that_cannot_hold_the_instructions(
    provider: str, services: Services, user: User, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said at the start and in the conversation, with both numbers and what to do with this server."""
    rejection = {"message": "request exceeds the available context size", "n_prompt_tokens": 2_485, "n_ctx": 1_024}
    async with serve_model(SERVERS[provider](tools=True, context=1_024)) as server:
        await server.model.script({"status": 400, "body": {"error": rejection}})
        async with user_at(services, user, **settings_of(server, provider)) as there:
            answer = await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
            [note] = (await read_model(there))["notes"]
    assert answer.error is not None
    cure = PROFILES[cast(ProviderName, provider)].context_cure
    for sentence in (note, answer.error["message"]):
        assert re.match(
            r"The model's context has 1,024 tokens, and the assistant's instructions and tools need ", sentence
        )
        assert cure in sentence
    assert answer.error["allow_retry"] is False
    assert [one for one in caplog.records if "The model's context has 1,024 tokens" in one.getMessage()]


TOO_LONG = "This conversation is too long for the model. "
# The sizes that a server names, what the user has written before, and the message → how the answer ends.
REJECTIONS: dict[str, tuple[dict[str, int], int, str, str]] = {
    "the instructions": ({"n_prompt_tokens": 2_485, "n_ctx": 1_024}, 0, "hello", "The model's context has 1,024"),
    "the instructions, later": (
        {"n_prompt_tokens": 6_000, "n_ctx": 1_024},
        1,
        "hello",
        "The model's context has 1,024",
    ),
    "the conversation": ({"n_prompt_tokens": 9_000, "n_ctx": 8_192}, 1, "hello", TOO_LONG),
    "the message": ({"n_prompt_tokens": 4_500, "n_ctx": 4_096}, 0, "word " * 1_500, "This message is too long"),
    "the instructions, without sizes": ({}, 0, "hello", "The model's context cannot hold "),
    "the message, without sizes": ({}, 0, "word " * 1_500, "This message is too long"),
    "the conversation, without sizes": ({}, 1, "hello", TOO_LONG),
}


@pytest.mark.parametrize("case", REJECTIONS)
async def test_what_is_too_long(case: str, services: Services, user: User, model: ScriptedModel) -> None:
    sizes, answers_before, message, expected = REJECTIONS[case]
    rejection = {"message": "request exceeds the available context size", **sizes}
    numbers = " ".join(map(str, range(4_000)))
    await model.script(*[says(numbers)] * answers_before, {"status": 400, "body": {"error": rejection}})
    async with user_at(services, user, **CUSTOM) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        for _ in range(answers_before):
            await there.chatkit.say("hello", thread)
        answer = await there.chatkit.say(message, thread)
    assert answer.error is not None
    assert answer.error["message"].startswith(expected)


READ_TOO_MUCH = "What this answer has read does not fit into the model's context"


@pytest.mark.parametrize(
    ("sizes", "of_context"), [({"n_prompt_tokens": 4_400, "n_ctx": 4_096}, " of 4,096 tokens"), ({}, "")]
)
@pytest.mark.parametrize("answers_before", [0, 1])
async def test_answer_that_reads_too_much(
    answers_before: int, sizes: dict[str, int], of_context: str, services: Services, user: User, model: ScriptedModel
) -> None:
    """What is too long is in no earlier message: a new conversation would end in the same way."""
    rejection = {"message": "request exceeds the available context size", **sizes}
    more = [f"{'a long title ' * 15}{number}" for number in range(40)]
    await model.script(add_task("milk", also=more), says("Added."))
    await user.runs.say("adding", "add all of them")
    rejected = {"status": 400, "body": {"error": rejection}}
    await model.script(*[says("Hello.")] * answers_before, calls(call("list_tasks")), rejected)
    async with user_at(services, user, **CUSTOM) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        for _ in range(answers_before):
            await there.chatkit.say("hello", thread)
        answer = await there.chatkit.say("what is on my list?", thread)
    assert answer.error is not None
    assert answer.error["message"].startswith(f"{READ_TOO_MUCH}{of_context}. Ask for less at once, ")


async def test_sub_agent_that_reads_too_much(services: Services, user: User, model: ScriptedModel) -> None:
    sizes = {"n_prompt_tokens": 6_400, "n_ctx": 4_096}
    rejection = {"message": "request exceeds the available context size", **sizes}
    written = calls(call("write_file", path="a.txt", content="word " * 3_000))
    rejected = {"status": 400, "body": {"error": rejection}}
    await model.script(start_coder("write a file"), written, rejected)
    async with user_at(services, user, **CUSTOM) as there:
        events = await there.runs.say((await there.runs.begin("A talk"))["id"], "let the coder write a file")
    [error] = [one.data["error"] for one in events if one.name == "error"]
    assert error.startswith(f"{READ_TOO_MUCH} of 4,096 tokens. ")


@pytest.mark.parametrize("at", [0, 1])
async def test_llamacpp_at_either_port(
    at: int, services: Services, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may listen at one of them."""
    async with serve_model(describe_llamacpp(tools=True)) as server, serve_model({"/props": {"other": 1}}) as other:
        await server.model.script(says("Hello."))
        urls = [f"{other.url}/v1", f"{other.url}/v1"]
        urls[at] = f"{server.url}/v1"
        profile = replace(PROFILES["llamacpp"], base_url=urls[0], other_urls=(urls[1],))
        monkeypatch.setitem(PROFILES, "llamacpp", profile)
        async with user_at(services, user, LLM_PROVIDER="llamacpp", LLM_BASE_URL="") as there:
            answer = await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
    assert (answer.error, answer.text) == (None, "Hello.")
    assert "/v1/chat/completions" not in other.paths


@pytest.mark.usefixtures("quick_loading")
async def test_llamacpp_that_loads_at_the_second_port(
    services: Services, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_model({"/props": JSONResponse(LOADING["body"], 503)}) as server:
        await server.model.script(*[LOADING] * 3, says("Hello."))
        profile = replace(PROFILES["llamacpp"], base_url="http://127.0.0.1:1/v1", other_urls=(f"{server.url}/v1",))
        monkeypatch.setitem(PROFILES, "llamacpp", profile)
        async with user_at(services, user, LLM_PROVIDER="llamacpp", LLM_BASE_URL="") as there:
            answer = await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
    assert (answer.error, answer.text) == (None, "Hello.")


async def test_slow_list_of_models_delays_one_answer(
    services: Services, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_FRESH_SECONDS", 0)

    asked = 0

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal asked
        asked += 1
        await asyncio.sleep(1.9 if asked > 1 else 0)
        await JSONResponse({"data": [{"id": "m"}]})(scope, receive, send)

    async with serve_model({"/v1/models": respond}) as server:
        await server.model.script(says("Hello."), says("Hello."))
        async with user_at(services, user, **settings_of(server, "custom")) as there:
            thread = (await there.runs.begin("A talk"))["id"]
            await there.chatkit.say("hello", thread)
            began = time.monotonic()
            await there.chatkit.say("hello", thread)
            seconds = time.monotonic() - began
    assert seconds < 1.8


@pytest.mark.parametrize("mode", ["streamed", "text"])
async def test_figure_of_the_instructions(
    mode: ToolCalls, services: Services, user: User, model: ScriptedModel
) -> None:
    """`INSTRUCTION_TOKENS`, which is compared with a context before the first request, is about what is sent."""
    await model.script(says("Hello."))
    async with user_at(services, user, **CUSTOM, LLM_TOOL_CALLS=mode) as there:
        await there.chatkit.say("hello", (await there.runs.begin("A talk"))["id"])
    [body] = await requests_to(model)
    measured = count_tokens(body["messages"][0]) + count_tokens(body.get("tools", []))
    assert measured == pytest.approx(INSTRUCTION_TOKENS[mode], rel=0.15)


def test_models_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of an Ollama that does not list what it has loaded."""
    shown = describe_ollama(tools=False, context=1_024)["/api/show"]
    with serve_ollama(ollama_model("small"), shown={"small": shown}) as host:
        for name, value in (("PROVIDER", "ollama"), ("BASE_URL", f"http://{host}/v1"), ("MODEL", "small")):
            monkeypatch.setenv(f"LLM_{name}", value)
        models.run([])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(". ")[0] for line in lines if line.startswith("  small: ")] == [
        "  small: The model cannot call tools, as its server says",
        "  small: The model's context has 1,024 tokens, and the assistant's instructions and tools need about 1,400",
    ]


def test_what_up_prints() -> None:
    notes = ["The model cannot call tools, as its server says."]
    model = {"name": "m", "provider": "llamacpp", "last": "ok", "notes": notes}
    assert [*_describe_model(json.dumps({"model": model}), None)] == ["m on llamacpp", *notes]
