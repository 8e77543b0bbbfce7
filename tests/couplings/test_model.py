"""The Agents SDK's model and OpenAI's client, as `model` uses them."""

import inspect
import re
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Agent, ModelSettings, ModelTracing, OpenAIChatCompletionsModel, RunConfig, Runner
from agents.models import chatcmpl_stream_handler
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai import AsyncOpenAI

from backend.model.chat_model import ChatModel
from backend.model.client import ProviderClient, _PlainClient
from backend.model.providers import PROFILES, Endpoint
from backend.model.repairs import Chunk, Delta
from tests.scripted_model import serve_scripted_model

PLAIN = RunConfig(tracing_disabled=True)


@asynccontextmanager
async def answered(*steps: dict[str, Any]) -> AsyncIterator[Endpoint]:
    async with serve_scripted_model() as model:
        await model.script(*steps)
        yield Endpoint(PROFILES["custom"], model.openai_base_url, "key", "m")


async def events_of(model: OpenAIChatCompletionsModel) -> list[Any]:
    settings = ModelSettings(include_usage=True)
    stream = model.stream_response(
        "system",
        "go",
        settings,
        [],
        None,
        [],
        ModelTracing.DISABLED,
        previous_response_id=None,
        conversation_id=None,
        prompt=None,
    )
    return [event async for event in stream]


async def test_the_sdk_gives_streamed_items_one_placeholder_and_does_not_tell_how_an_answer_ended() -> None:
    """Hence `_ItemIds` and `End`."""
    async with answered({"text": "words", "finish_reason": "length"}) as endpoint:
        client = AsyncOpenAI(base_url=endpoint.base_url, api_key="key", max_retries=0)
        events = await events_of(OpenAIChatCompletionsModel("m", client))
        await client.close()
    assert {event.item_id for event in events if hasattr(event, "item_id")} == {FAKE_RESPONSES_ID}
    assert len({id(event) for event in events}) == len(events), "one that is given twice must not be changed in place"
    assert events[-1].type == "response.completed"
    assert events[-1].response.incomplete_details is None


def test_what_the_sdk_looks_for_in_a_chunk_is_there() -> None:
    """Hence `Delta`: what it finds by an error it would look for with every token."""
    source = inspect.getsource(chatcmpl_stream_handler)
    looked_for = set(re.findall(r'(?:hasattr|getattr)\(delta, "(\w+)"', source))
    assert looked_for >= {"reasoning", "reasoning_content"}
    assert looked_for <= Delta.model_fields.keys()


async def test_the_sdk_asks_nothing_of_its_client_that_ours_does_not_have() -> None:
    missing: list[str] = []

    class Asked(ProviderClient):
        def __getattr__(self, name: str) -> Any:
            missing.append(name)
            raise AttributeError(name)

    async with answered({"text": "streamed"}, {"text": "whole"}) as endpoint:
        model = ChatModel(endpoint)
        await model.client.close()
        model._client = model.client = Asked(endpoint)  # pyright: ignore[reportAttributeAccessIssue]
        assert (await events_of(model))[-1].response.output[0].content[0].text == "streamed"
        run = await Runner.run(Agent("a", model=model), "go", run_config=PLAIN)
        assert run.final_output == "whole"
        await model.client.close()
    assert missing == []


async def test_openais_client_builds_chunks_by_the_hook_of_their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """By `build`, of the class that `stream_cls` names; and `security` in the options sends the key."""
    built: list[Chunk] = []
    build = Chunk.build

    def counted(**given: Any) -> Chunk:
        built.append(build(**given))
        return built[-1]

    monkeypatch.setattr(Chunk, "build", counted)
    async with serve_scripted_model() as model:
        await model.script({"text": "two words"})
        chat_model = ChatModel(Endpoint(PROFILES["custom"], model.openai_base_url, "key", "m"))
        await events_of(chat_model)
        await chat_model.client.close()
        [request] = await model.finished_requests()
    assert len(built) > 2
    assert request["headers"]["authorization"] == "Bearer"  # of which the endpoint notes the scheme only


def test_openais_client_reads_the_environment_into_its_default_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hence `_PlainClient`, which overrides just those."""
    monkeypatch.setenv("OPENAI_ORG_ID", "mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "mine")
    added = {"OpenAI-Organization", "OpenAI-Project"}
    assert added <= AsyncOpenAI(api_key="key").default_headers.keys()
    assert added.isdisjoint(_PlainClient(api_key="key").default_headers)


async def test_the_sdk_sends_an_agents_input_as_its_converter_writes_it() -> None:
    """Hence `ChatModel.messages`, which tells what would be sent."""
    given: list[Any] = [
        {"role": "user", "content": "go"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "first", "annotations": []}
        ]},
        {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
    ]  # fmt: skip
    async with serve_scripted_model() as served:
        await served.script({"text": "done"})
        model = ChatModel(Endpoint(PROFILES["custom"], served.openai_base_url, "key", "m"))
        await Runner.run(Agent("a", model=model), given, run_config=PLAIN)
        await model.client.close()
        [request] = await served.finished_requests()
    assert model.messages(given) == request["body"]["messages"]


class Noted(str):
    """That can be looked for when nobody should hold it any more."""


async def test_what_was_sent_is_let_go_once_the_answer_has_begun() -> None:
    """OpenAI's client keeps the request with its body to the end of a stream, which may take minutes."""
    tool = {"type": "function", "function": {"name": "boil", "parameters": {}}}
    async with answered({"text": "one two three", "token_delay": 0.01}) as endpoint:
        client = ProviderClient(endpoint)
        said = Noted("go")
        sent = weakref.ref(said)
        message = {"role": "user", "content": said}
        stream = await client.create(model="m", messages=[message], tools=[tool], stream=True)
        del said, message
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                break
        assert sent() is None
        assert stream.response.request.content == b""
        await stream.close()
        await client.close()
