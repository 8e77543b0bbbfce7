"""Each provider's profile against an endpoint that refuses what the provider refuses."""

from typing import Any

import pytest
from pydantic import SecretStr

from backend.model.providers import PROFILES
from tests.backend.completions import call_delta, check_pairs, chunk
from tests.backend.conftest import Backend, Rows
from tests.scripted_endpoint.app import create_app as create_model
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.strict_provider import RULES, StrictProvider, refusals

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
    "max_tokens": ({"max_tokens": 10}, {"cerebras", "openai"}),
    "max_completion_tokens": ({"max_completion_tokens": 10}, {"ollama", "custom"}),
    "frequency_penalty": ({"frequency_penalty": 1}, set(RULES)),
    "temperature 1.2": ({"temperature": 1.2}, {"anthropic"}),
    "temperature 1.9": ({"temperature": 1.9}, {"cerebras", "anthropic"}),
    "mixed strict": ({"tools": [tool(True), tool(False)]}, {"cerebras", "custom"}),
    "strict at all": ({"tools": [tool(False)]}, {"custom"}),
    "reasoning_effort none": ({"reasoning_effort": "none"}, set(RULES)),
    "reasoning_content on input": (
        {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "hm"}]},
        set(RULES),
    ),
    "reasoning on input": (
        {"messages": [{"role": "assistant", "content": "x", "reasoning": "hm"}]},
        set(RULES) - {"cerebras"},
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


@pytest.mark.parametrize("case", REFUSED)
def test_the_strict_endpoint_refuses_what_the_provider_refuses(case: str) -> None:
    change, refusing = REFUSED[case]
    assert {provider for provider in RULES if any(refusals(provider, NAIVE | change))} == refusing
    assert not any(reason for provider in RULES for reason in refusals(provider, NAIVE))


def test_every_profile_that_stands_for_a_provider_has_its_rules() -> None:
    assert set(RULES) | {"offline"} == set(PROFILES)


@pytest.mark.parametrize("provider", RULES)
@pytest.mark.parametrize("reasoning_field", ["reasoning", "reasoning_content"])
async def test_a_conversation_is_accepted_by_every_provider(
    backend: Backend, rows: Rows, provider: str, reasoning_field: str
) -> None:
    strict = StrictProvider(create_model(), provider)
    async with serve(strict, lifespan="off") as url:
        model = ScriptedModel(url)
        await model.script(
            {
                "text": "Two at once.",
                "reasoning": "The person wants two things.",
                "reasoning_field": reasoning_field,
                "tool_calls": [
                    {"name": "add_task", "arguments": {"title": "a"}, "id": "0"},
                    {"name": "add_task", "arguments": {"title": "b"}, "id": "0"},
                ],
            },
            {"raw": [chunk(call_delta(index=0, name="list_tasks", arguments="{}")), chunk({}, "tool_calls")]},
            {"text": "Done.", "reasoning": "Good.", "reasoning_field": reasoning_field, "usage": None},
            {"text": "You are welcome."},
        )
        changes = {
            "llm_provider": provider,
            "llm_base_url": f"{url}/v1",
            "llm_api_key": SecretStr("key"),
            "llm_model": "gpt-oss-120b",
            "llm_temperature": 2.0,
        }
        async with backend(**changes) as chat:
            first = await chat.say("add a and b")
            assert strict.refused == []
            assert first.error is None
            second = await chat.say("thank you", first.thread_id, quoted_text="Done.")
            assert strict.refused == []
            assert second.text == "You are welcome."
        bodies = [request["body"] for request in await model.finished_requests()]
        await model.aclose()
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY title")] == ["a", "b"]
    assert bodies[3]["messages"][: len(bodies[2]["messages"])] == bodies[2]["messages"]
    for body in bodies:
        check_pairs(body["messages"])
        assert body["stream_options"] == {"include_usage": True}
        limit = PROFILES[provider].max_tokens_field  # pyright: ignore[reportArgumentType]
        assert body[limit] == 1000
        assert body.get("reasoning_effort") == ("low" if provider == "cerebras" else None)
    replayed = [message for message in bodies[1]["messages"] if "reasoning" in message]
    assert len(replayed) == (1 if provider == "cerebras" else 0)


async def test_the_key_goes_to_the_provider_and_nowhere_else(
    backend: Backend, model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-very-secret-key"
    await model.script({"status": 401, "body": {"message": f"bad key {key}"}})
    with caplog.at_level("DEBUG"):
        async with backend(llm_provider="cerebras", cerebras_api_key=SecretStr(key)) as chat:
            answer = await chat.say("hello")
            ready = await chat.http.get("/ready")
    assert answer.error is not None
    [request] = await model.finished_requests()
    assert request["headers"]["authorization"] == "Bearer"
    for shown in (str(answer.events), ready.text):
        assert key not in shown
