"""`python -m backend models`, with real endpoints."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from backend.commands import models
from backend.model import providers, trials
from backend.settings import ModelSettings
from tests.backend.completions import chunk
from tests.scripted_model import ScriptedModel, serve_scripted_model
from tests.serving import serve

KEY = "sk-one-very-secret-key"
OTHER = "sk-other-very-secret-key"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ModelSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with serve_scripted_model() as served:
        yield served


def settings(**values: Any) -> ModelSettings:
    return ModelSettings(**values)


async def printed(given: ModelSettings, *, check: bool = False, ollama: tuple[str, str] | None = None) -> str:
    return "\n".join(line for lines, _ in await reports(given, check=check, ollama=ollama) for line in lines)


async def reports(given: ModelSettings, *, check: bool = False, ollama: tuple[str, str] | None = None) -> Any:
    return await models.report(given, providers.resolve(given), ollama, check=check)


async def test_each_that_has_a_key_is_asked_with_its_own_and_the_used_model_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, str, str | None]] = []

    async def list_models(request: Request) -> Response:
        seen.append((request.url.path, request.headers["authorization"], request.headers.get("x-api-key")))
        names = {"/openai/models": ["gpt-b", "gpt-a"], "/anthropic/models": ["claude\x1b[2J", 1, {"id": None}]}
        return JSONResponse({"data": [{"id": name} for name in names[request.url.path]]})

    async with answering(list_models) as url:
        for name in ("openai", "anthropic"):
            row = providers.replace(providers.PROFILES[name], base_url=f"{url}/{name}")
            monkeypatch.setitem(providers.PROFILES, name, row)
        given = settings(llm_provider="openai", openai_api_key=KEY, anthropic_api_key=OTHER, llm_model="gpt-c")
        text = await printed(given)
    assert text.splitlines() == [
        f"openai, {url}/openai (used: gpt-c)",
        "  gpt-a",
        "  gpt-b",
        "  gpt-c, which is used, is not among them",
        f"anthropic, {url}/anthropic",
        "  claude\\x1b[2J",
    ]
    assert sorted(seen) == [
        ("/anthropic/models", f"Bearer {OTHER}", OTHER),
        ("/openai/models", f"Bearer {KEY}", None),
    ]


async def test_without_any_there_are_the_rules_and_an_ollama_that_was_found(model: ScriptedModel) -> None:
    assert await printed(settings()) == ("offline: rules instead of a language model; there is nothing to ask (used)")
    text = await printed(settings(), ollama=(model.openai_base_url, "qwen3:8b"))
    assert text.splitlines()[1:] == [f"ollama, {model.openai_base_url}", "  offline-rules"]


async def test_a_tool_call_is_sent_through_each_and_what_comes_back_is_told(model: ScriptedModel) -> None:
    await model.script({"tool_calls": [{"name": "add_task", "arguments": {"title": "buy milk"}}]})
    given = settings(llm_provider="cerebras", llm_base_url=model.openai_base_url, llm_api_key=KEY)
    [(lines, is_good)] = await reports(given, check=True)
    assert is_good
    assert lines[0].startswith('cerebras, gpt-oss-120b: called add_task({"title": "buy milk"}) after ')
    [request] = await model.finished_requests()
    body = request["body"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["add_task"]
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (1000, "low"), "as a turn asks"


SAYS: dict[str, tuple[dict[str, Any], str]] = {
    "only text": ({"text": "I am not able\nto."}, 'it says: "I am not able\\nto."'),
    "the key": ({"text": f"You sent {KEY}"}, 'it says: "You sent …"'),
    "401": ({"status": 401, "body": {"error": {"message": f"Incorrect key sk-one-*** {KEY}"}}}, "Its key was refused."),
    "400": (
        {"status": 400, "body": {"error": {"message": f"m does not support tools, {KEY}"}}},
        'It refused the request. It says: "m does not support tools, …"',
    ),
    "429": (
        {"status": 429, "body": {"message": "slow"}},
        'The model is busy right now. Try again in a moment. It says: "slow"',
    ),
    "a page": (
        {"status": 200, "body": "<html>", "headers": {"content-type": "text/html"}},
        "name or address is unknown.",
    ),
    "rubbish": ({"raw": ["data: {oops\n\n"]}, "The model's service failed."),
    "cut off": ({"text": "half", "finish_reason": None}, "The model's answer was cut off before its end."),
    "no end of the limit": ({"finish_reason": "length"}, "raise LLM_MAX_TOKENS"),
    "an error midway": (
        {"raw": [chunk({"content": "x"}), 'data: {"error": {"message": "no"}}\n\n']},
        "service failed.",
    ),
    "the end of the connection": ({"text": "half of it", "cut_after": 1}, "cannot be reached"),
}


@pytest.mark.parametrize("case", SAYS)
async def test_what_is_no_call_is_told_without_the_key(model: ScriptedModel, case: str) -> None:
    step, told = SAYS[case]
    await model.script(step)
    given = settings(llm_provider="custom", llm_base_url=model.openai_base_url, llm_api_key=KEY, llm_model="m")
    [([line], is_good)] = await reports(given, check=True)
    assert not is_good
    assert told in line
    assert KEY not in line
    assert "sk-one" not in line


async def test_who_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, model: ScriptedModel) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.1)
    await model.script({"hang": True, "text": "x"})
    given = settings(llm_provider="custom", llm_base_url=model.openai_base_url, llm_model="m")
    assert await printed(given, check=True) == "custom, m: It did not answer in time."


LISTS = [b"<html>", b"[" * 200_000, b"[]", b'{"data": 1}', b"\xff", json.dumps({"error": {"message": KEY}}).encode()]


@pytest.mark.parametrize("answer", LISTS)
async def test_a_list_that_is_none_is_told(answer: bytes) -> None:
    async def rubbish(request: Request) -> Response:
        return PlainTextResponse(answer)

    async with answering(rubbish) as url:
        given = settings(llm_provider="custom", llm_base_url=url, llm_model="m", llm_api_key=KEY)
        [(lines, is_good)] = await reports(given)
    assert not is_good
    assert len(lines) == 2
    assert KEY not in "".join(lines)


@asynccontextmanager
async def answering(answer: Callable[[Request], Awaitable[Response]]) -> AsyncIterator[str]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (await answer(Request(scope, receive)))(scope, receive, send)

    async with serve(app, lifespan="off") as url:
        yield url


def test_the_command_ends_with_a_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    models.run([])
    assert capsys.readouterr().out.startswith("offline: rules")
    monkeypatch.setenv("LLM_PROVIDER", "custom")
    with pytest.raises(SystemExit, match="78"):
        models.run(["--check"])
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("LLM_MODEL", "m")
    with pytest.raises(SystemExit, match="1 of 1 did not do what was asked"):
        models.run(["--check"])
