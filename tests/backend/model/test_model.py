"""Ids, repairs and request bodies, against a real HTTP endpoint."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, ModelSettings, ModelTracing, Runner, function_tool

from backend.model.chat_model import ChatModel
from backend.model.errors import AnswerCutOff
from backend.model.providers import PROFILES, Endpoint
from backend.settings import ProviderName
from tests.backend.completions import call_delta, chunk
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


def loose(delta: dict[str, Any], **fields: Any) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}], **fields})}\n\n"


LOOSE = {
    "nothing but choices": loose({"content": "x"}),
    "a role of its own": loose({"role": "bot", "content": "x"}),
    "numbers for texts": loose({"content": "x"}, id=1, model=2, object=3, created="now"),
    "null where a list belongs": loose({"content": "x", "tool_calls": None}, usage=None, service_tier=None),
    "usage in another shape": loose({"content": "x"}, usage={"prompt_tokens": None}),
}


@pytest.mark.parametrize("frame", LOOSE.values(), ids=LOOSE)
async def test_chunks_that_break_the_schema_are_read(chat_model: ChatModel, model: ScriptedModel, frame: str) -> None:
    await model.script({"raw": [frame, chunk({}, "eos"), "data: [DONE]\n\n"]})
    _, result = await run(chat_model)
    assert result.final_output == "x"


LONE = "\ud83d"  # the half of a pair; json.dumps sends it as an escape
UNSTORABLE: dict[str, list[dict[str, Any]]] = {
    "text": [{"content": f"a\x00{LONE}b"}],
    "refusal": [{"refusal": f"a\x00{LONE}b"}],
    "reasoning": [{"reasoning": f"a\x00{LONE}b"}, {"content": "x"}],
    "reasoning_content": [{"reasoning_content": f"a\x00{LONE}b"}, {"content": "x"}],
    "name": [call_delta(index=0, name=f"ec\x00{LONE}ho", arguments="{}")],
    "arguments": [call_delta(index=0, name="echo", arguments=f'{{"text": "a\x00{LONE}b"}}')],
    "a field of the provider's own": [{"content": "x", "annotations": [{"a": [f"a\x00{LONE}b"]}], "audio": None}],
}


@pytest.mark.parametrize("case", UNSTORABLE)
async def test_what_postgresql_cannot_hold_is_replaced(chat_model: ChatModel, model: ScriptedModel, case: str) -> None:
    await model.script({"raw": [*map(chunk, UNSTORABLE[case]), chunk({}, "stop"), "data: [DONE]\n\n"]})
    stream = chat_model.stream_response(None, "go", ModelSettings(), [], None, [], ModelTracing.DISABLED)
    seen = "".join([repr(event.model_dump()) async for event in stream])
    assert "\\x00" not in seen
    assert "\\ud83d" not in seen
    assert "\ufffd" in seen or "provider" in case


# what the model writes inside its arguments → what the tool is given
ESCAPES = {
    r"a\ud800b": "a\ufffdb",
    r"a\uDC00\uD800b": "a\ufffd\ufffdb",
    r"a\ud83d\ud83d\ude00b": "a\ufffd\U0001f600b",
    r"a\ud83d\ude00b": "a\U0001f600b",
    r"a\\ud800b": r"a\ud800b",
    r"a\\\ud800b": "a\\\ufffdb",
    r"a\n\u00e9\ud800": "a\n\u00e9\ufffd",
}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("written", ESCAPES)
async def test_an_escaped_half_of_a_pair_is_replaced(
    chat_model: ChatModel, model: ScriptedModel, written: str, size: int
) -> None:
    text = f'{{"text": "{written}"}}'
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    frames = [chunk(call_delta(index=0, id="a", name="echo", arguments=pieces[0]))]
    frames += [chunk(call_delta(index=0, arguments=piece)) for piece in pieces[1:]]
    await model.script({"raw": [*frames, chunk({}, "tool_calls"), "data: [DONE]\n\n"]}, {"text": "done"})
    events, result = await run(chat_model)
    assert [item.output for item in result.new_items if item.type == "tool_call_output_item"] == [ESCAPES[written]]
    [arguments] = [item.raw_item.arguments for item in result.new_items if item.type == "tool_call_item"]
    streamed = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(streamed) == arguments


async def test_an_escape_that_never_ends_is_left_out(chat_model: ChatModel, model: ScriptedModel) -> None:
    cut = [chunk(call_delta(index=0, id="a", name="echo", arguments=r'{"text": "a\ud8')), chunk({}, "tool_calls")]
    await model.script({"raw": [*cut, "data: [DONE]\n\n"]}, {"text": "done"})
    _, result = await run(chat_model)
    [call] = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
    assert call.arguments == '{"text": "a'


@pytest.mark.parametrize("provider", ["custom", "openai"])
async def test_the_variables_of_openai_are_for_openai(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, provider: ProviderName
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: key-of-mine\nAuthorization: other-of-mine")
    chat_model = ChatModel(Endpoint(PROFILES[provider], model.openai_base_url, "none", "m"))
    await chat_model.complete("go", max_tokens=10)
    await chat_model.client.close()
    [request] = await model.finished_requests()
    sent = sorted(value for value in request["headers"].values() if value.endswith("-of-mine"))
    everything = ["key-of-mine", "org-of-mine", "other-of-mine", "project-of-mine"]
    assert sent == (everything if provider == "openai" else [])


async def test_usage_is_asked_for_and_added_up(chat_model: ChatModel, model: ScriptedModel) -> None:
    await model.script({"tool_calls": [{"name": "echo", "arguments": {"text": "x"}}]}, {"text": "done"})
    _, result = await run(chat_model)
    assert result.context_wrapper.usage.requests == 2
    assert result.context_wrapper.usage.input_tokens > 0
    assert all(request["body"]["stream_options"] == {"include_usage": True} for request in await model.requests())
