"""Each provider's profile against an endpoint that refuses what the provider refuses, and answers as it does."""

import asyncio
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from pydantic import SecretStr
from starlette.responses import RedirectResponse

from backend.model.chat_model import ChatModel
from backend.model.providers import PROFILES, Endpoint, resolve
from backend.settings import ModelSettings, ProviderName
from tests.backend.conftest import Backend
from tests.backend.model.talk import KEY
from tests.conftest import ROOT
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.strict_provider.rules import RULES, refusals

NAIVE: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello"}],
    "temperature": 0.7,
    "stream": True,
}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def tool(strict: bool | None) -> dict[str, Any]:
    return TOOL if strict is None else {**TOOL, "function": {**TOOL["function"], "strict": strict}}


# what is wrong with a request → who refuses it; the profiles exist because of this table
REFUSED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "max_tokens": ({"max_tokens": 10}, {"cerebras", "openai", "groq"}),
    "max_completion_tokens": ({"max_completion_tokens": 10}, {"ollama", "openrouter", "custom"}),
    "frequency_penalty": ({"frequency_penalty": 1}, set(RULES)),
    "temperature 1.2": ({"temperature": 1.2}, {"anthropic"}),
    "temperature 1.9": ({"temperature": 1.9}, {"cerebras", "anthropic"}),
    "a temperature for a new Claude": ({"model": "claude-opus-5-5"}, {"anthropic"}),
    "a temperature for a model that thinks": ({"model": "gpt-5-mini"}, {"openai"}),
    "tools while it thinks": (
        {"model": "gpt-5.6-luna", "tools": [TOOL], "reasoning_effort": "low"},
        {"openai", "anthropic", "custom"},
    ),
    "mixed strict": ({"tools": [tool(True), tool(False)]}, {"cerebras", "custom"}),
    "strict at all": ({"tools": [tool(False)]}, {"custom"}),
    "reasoning_effort none": ({"reasoning_effort": "none"}, {"cerebras", "groq", "anthropic", "custom"}),
    "a name": ({"messages": [{"role": "user", "content": "x", "name": "ann"}]}, {"groq"}),
    "reasoning_content on input": (
        {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "hm"}]},
        set(RULES),
    ),
    "reasoning on input": (
        {"messages": [{"role": "assistant", "content": "x", "reasoning": "hm"}]},
        set(RULES) - {"cerebras", "ollama", "openrouter"},
    ),
    "content in parts": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"ollama", "custom"},
    ),
    "a call without its output": (
        {"messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "user", "content": "x"}]},
        set(RULES),
    ),
    "an output without its call": ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, set(RULES)),
}


def test_the_documented_table_is_that_of_the_profiles() -> None:
    lines = (ROOT / "docs/providers.md").read_text().splitlines()
    rows = {cells[1]: cells for line in lines if len(cells := line.replace(" | ", "|").split("|")) == 10}
    for profile in PROFILES.values():
        if profile.name != "offline":
            cells = rows[f" {profile.name}"]
            assert f"`{profile.model or 'LLM_MODEL'}`" in cells[2]
            assert cells[3] == f"`{profile.max_tokens_field}`"
            assert {effort for _, effort in profile.reasoning_efforts} <= set(cells[5].split())
            assert ("reasoning" in cells[6]) is (profile.reasoning_replay != "drop")
            assert cells[7] == f"{profile.history_tokens:,}"


@pytest.mark.parametrize("case", REFUSED)
def test_the_strict_endpoint_refuses_what_the_provider_refuses(case: str) -> None:
    change, refusing = REFUSED[case]
    assert {provider for provider in RULES if any(refusals(provider, NAIVE | change))} == refusing
    assert not any(reason for provider in RULES for reason in refusals(provider, NAIVE))


def test_every_profile_that_stands_for_a_provider_has_its_rules() -> None:
    assert set(RULES) | {"offline"} == set(PROFILES)


# models that are asked otherwise than the provider's own → temperature, effort
OTHERS: dict[tuple[ProviderName, str], tuple[float | None, str | None]] = {
    ("cerebras", "qwen-3.8-27b"): (0.7, None),
    ("openai", "gpt-4o-mini"): (0.7, None),
    ("openai", "gpt-5-mini"): (None, None),
    ("openai", "o4-mini"): (None, None),
    ("openai", "gpt-5.6-luna"): (None, "none"),
    ("openai", "gpt-6-luna"): (None, "none"),
    ("ollama", "gpt-oss:20b"): (0.7, "low"),
    ("anthropic", "claude-3-haiku-20240307"): (0.7, None),
    ("anthropic", "claude-opus-4-20250514"): (0.7, None),
    ("anthropic", "claude-sonnet-4-6"): (0.7, None),
    ("anthropic", "claude-opus-4-7"): (None, None),
    ("anthropic", "claude-sonnet-5"): (None, None),
    ("groq", "qwen/qwen3.6-27b"): (0.7, None),
    ("openrouter", "anthropic/claude-opus-5-5"): (0.7, None),
    ("custom", "gpt-oss"): (0.7, None),
}


@pytest.mark.parametrize(("provider", "name"), OTHERS)
async def test_other_models_are_asked_as_they_take_it(model: ScriptedModel, provider: ProviderName, name: str) -> None:
    chat_model = ChatModel(Endpoint(PROFILES[provider], model.openai_base_url, "none", name))
    settings = chat_model.settings(temperature=0.7, max_tokens=1000)
    agent = Agent[Any](name="a", model=chat_model, tools=[echo], model_settings=settings)
    assert (await Runner.run(agent, "hello", run_config=RunConfig(tracing_disabled=True))).final_output
    await chat_model.client.close()
    [request] = await model.finished_requests()
    body = request["body"]
    assert [*refusals(provider, body)] == []
    assert (body.get("temperature"), body.get("reasoning_effort")) == OTHERS[provider, name]


@function_tool
def echo(text: str) -> str:
    return text


async def test_a_call_that_the_model_wrote_badly_is_asked_for_again(backend: Backend, model: ScriptedModel) -> None:
    failed = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<f"}}
    await model.script({"status": 400, "body": failed}, {"text": "Here it is."})
    async with backend(llm_provider="groq", groq_api_key=SecretStr(KEY)) as chat:
        assert (await chat.say("hello")).text == "Here it is."


async def test_the_key_goes_to_the_provider_and_nowhere_else(
    backend: Backend, model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    await model.script({"status": 401, "body": {"message": f"bad key {KEY}"}})
    with caplog.at_level("DEBUG"):
        async with backend(llm_provider="cerebras", cerebras_api_key=SecretStr(KEY)) as chat:
            answer = await chat.say("hello")
            ready = await chat.http.get("/ready")
    assert answer.error is not None
    [request] = await model.finished_requests()
    assert request["headers"]["authorization"] == "Bearer"
    for shown in (str(answer.events), ready.text):
        assert KEY not in shown


KEYED: tuple[ProviderName, ...] = ("cerebras", "openai", "anthropic", "groq", "openrouter")


@pytest.mark.parametrize("provider", KEYED)
def test_a_key_of_a_provider_is_read_when_it_is_chosen(provider: ProviderName) -> None:
    keys: Any = {
        f"{name}_api_key": f"key of {name}" for name in ("cerebras", "openai", "anthropic", "groq", "openrouter")
    }
    endpoint = resolve(ModelSettings(llm_provider=provider, **keys))
    assert (endpoint.api_key, endpoint.base_url) == (f"key of {provider}", PROFILES[provider].base_url)
    assert resolve(ModelSettings(**keys)).api_key == "key of cerebras"
    del keys["cerebras_api_key"]
    assert resolve(ModelSettings(**keys)).profile.name == "offline"


async def test_what_is_written_goes_to_no_other_address_and_to_no_proxy_on_its_way_to_this_machine(
    backend: Backend, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        await RedirectResponse(f"{model.openai_base_url}/chat/completions", 307)(scope, receive, send)

    async with serve(elsewhere, lifespan="off") as url:
        async with backend(llm_base_url=f"{url}/v1") as chat:
            answer = await chat.say("hello")
            assert "address is unknown" in (answer.error or {})["message"]
        assert await model.requests() == []
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        chat_model = ChatModel(Endpoint(PROFILES["ollama"], model.openai_base_url, "none", "m"))
        async with asyncio.timeout(5):
            text, _ = await chat_model.complete("go", max_tokens=10)
        await chat_model.client.close()
    assert text
