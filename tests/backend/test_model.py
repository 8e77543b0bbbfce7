"""Ids, repairs and request bodies, against a real HTTP endpoint."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, ModelSettings, Runner, function_tool

from backend.errors import AnswerCutOff
from backend.model import ChatModel
from backend.providers import PROFILES, Endpoint
from tests.scripted_model import ScriptedModel


@pytest.fixture
async def chat_model(model: ScriptedModel) -> AsyncIterator[ChatModel]:
    chat_model = ChatModel(Endpoint(PROFILES["custom"], model.openai_base_url, "none", "m"))
    yield chat_model
    await chat_model.client.close()


@function_tool
def echo(text: str) -> str:
    return text


async def run(chat_model: ChatModel, prompt: Any = "go") -> tuple[list[Any], Any]:
    agent = Agent(name="a", model=chat_model, tools=[echo], model_settings=ModelSettings(include_usage=True))
    result = Runner.run_streamed(agent, prompt)
    events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
    return events, result


async def test_every_streamed_item_has_an_id_of_its_own(chat_model: ChatModel, model: ScriptedModel) -> None:
    call = {"name": "echo", "arguments": {"text": "x"}}
    await model.script(
        {"text": "one", "reasoning": "hm", "tool_calls": [call, call]},
        {"text": "two", "reasoning": "hm", "tool_calls": [call]},
        {"text": "three"},
    )
    events, result = await run(chat_model)
    added = [event.item.id for event in events if event.type == "response.output_item.added"]
    done = {event.item.id for event in events if event.type == "response.output_item.done"}
    assert len(added) == len(set(added)) == 8
    assert done == set(added)
    assert {event.item_id for event in events if hasattr(event, "item_id")} <= set(added)
    completed = [item.id for event in events if event.type == "response.completed" for item in event.response.output]
    assert sorted(completed) == sorted(added)
    kept = [item.raw_item.id for item in result.new_items if item.type != "tool_call_output_item"]
    assert sorted(kept) == sorted(added)
    assert "__fake_id__" not in json.dumps([event.model_dump(mode="json") for event in events])


def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n"


def call_delta(**fields: Any) -> dict[str, Any]:
    arguments = fields.pop("arguments", None)
    name = fields.pop("name", None)
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{"type": "function", "function": function, **fields}]}


ODD_CALLS = {
    "no ids": [
        call_delta(index=0, name="echo", arguments='{"text": "a"}'),
        call_delta(index=1, name="echo", arguments='{"text": "b"}'),
    ],
    "the same id twice": [
        call_delta(index=0, id="0", name="echo", arguments='{"text": "a"}'),
        call_delta(index=1, id="0", name="echo", arguments='{"text": "b"}'),
    ],
    "every index 0": [
        call_delta(index=0, id="a", name="echo", arguments='{"text": "a"}'),
        call_delta(index=0, id="b", name="echo", arguments='{"text": "b"}'),
    ],
    "in pieces": [
        call_delta(index=0, id="a", name="echo", arguments='{"te'),
        call_delta(index=1, id="b", name="echo", arguments='{"text"'),
        call_delta(index=0, arguments='xt": "a"}'),
        call_delta(index=1, id="b", arguments=': "b"}'),
    ],
    "an empty name after the first piece": [
        call_delta(index=0, id="a", name="echo", arguments='{"text": '),
        call_delta(index=0, id="", name="", arguments='"a"}'),
        call_delta(index=1, id="b", name="echo", arguments='{"text": "b"}'),
    ],
}


@pytest.mark.parametrize("deltas", ODD_CALLS.values(), ids=ODD_CALLS)
async def test_odd_tool_calls_are_repaired(chat_model: ChatModel, model: ScriptedModel, deltas: list[Any]) -> None:
    frames = [chunk(delta) for delta in deltas] + [chunk({}, "tool_calls"), "data: [DONE]\n\n"]
    await model.script({"raw": frames}, {"text": "done"})
    _, result = await run(chat_model)
    second = (await model.finished_requests())[1]["body"]["messages"]
    calls = second[1]["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"text": "a"}, {"text": "b"}]
    assert len({call["id"] for call in calls}) == 2
    assert [(message["tool_call_id"], message["content"]) for message in second[2:]] == [
        (calls[0]["id"], "a"),
        (calls[1]["id"], "b"),
    ]
    assert result.final_output == "done"


async def test_an_empty_text_beside_calls_is_no_message(chat_model: ChatModel, model: ScriptedModel) -> None:
    frames = [
        chunk({"role": "assistant", "content": ""}),
        chunk(call_delta(index=0, id="a", name="echo", arguments='{"text": "a"}') | {"content": ""}),
        chunk({"content": ""}, "tool_calls"),
        "data: [DONE]\n\n",
    ]
    await model.script({"raw": frames}, {"text": "done"})
    events, _ = await run(chat_model)
    kinds = [event.item.type for event in events if event.type == "response.output_item.added"]
    assert kinds == ["function_call", "message"]


@pytest.mark.parametrize("step", [{"text": "half of it", "eof_after": 2}, {"text": "x", "finish_reason": None}])
async def test_an_answer_without_its_end_is_an_error(chat_model: ChatModel, model: ScriptedModel, step: Any) -> None:
    await model.script(step)
    with pytest.raises(AnswerCutOff):
        await run(chat_model)


async def test_what_postgresql_cannot_hold_is_replaced(chat_model: ChatModel, model: ScriptedModel) -> None:
    await model.script({"raw": [chunk({"content": "a\x00b"}), chunk({}, "stop"), "data: [DONE]\n\n"]})
    _, result = await run(chat_model)
    assert result.final_output == "a\ufffdb"


async def test_usage_is_asked_for_and_added_up(chat_model: ChatModel, model: ScriptedModel) -> None:
    await model.script({"tool_calls": [{"name": "echo", "arguments": {"text": "x"}}]}, {"text": "done"})
    _, result = await run(chat_model)
    assert result.context_wrapper.usage.requests == 2
    assert result.context_wrapper.usage.input_tokens > 0
    assert all(request["body"]["stream_options"] == {"include_usage": True} for request in await model.requests())
