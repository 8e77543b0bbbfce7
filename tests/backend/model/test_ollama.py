"""What is particular of Ollama's /v1: calls that get lost in streams, and requests that are cut."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.backend.conftest import Backend, Rows
from tests.backend.model.talk import call, talking

MILK = {"tool_calls": [call("add_task", title="milk")]}
ADDED = [{"title": "milk"}]


async def test_calls_that_ollama_loses_are_asked_for_whole_and_then_always(
    backend: Backend, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking(backend, "ollama", loses_calls=True) as talk:
        thoughtful = {**MILK, "reasoning": "Milk."}
        answer = await talk.say("add milk", thoughtful, thoughtful, {"text": "Added."})
        bodies = await talk.bodies()
    assert (answer.error, answer.text) == (None, "Added.")
    assert rows("SELECT title FROM tasks") == ADDED
    assert ["stream" in body for body in bodies] == [True, False, False]
    assert not any("stream_options" in body for body in bodies[1:])
    assert [item["workflow"]["tasks"][0]["content"] for item in answer.items if item["type"] == "workflow"] == ["Milk."]
    assert rows("SELECT usage->>'requests' AS requests FROM runs") == [{"requests": "2"}]
    assert [record.levelname for record in caplog.records if "loses calls" in record.getMessage()] == ["WARNING"]


async def test_an_empty_answer_that_stays_empty_is_told(backend: Backend) -> None:
    async with talking(backend, "ollama") as talk:
        answer = await talk.say("hello", {"finish_reason": "stop"}, {"finish_reason": "stop"})
        assert "empty answer" in (answer.error or {})["message"]
        assert (await talk.say("hello", {"text": "Again."})).text == "Again."
        assert ["stream" in body for body in await talk.bodies()] == [True, False, True]


@pytest.mark.parametrize(("tool_calls", "added"), [("streamed", []), ("whole", ADDED)])
async def test_calls_that_are_lost_beside_text_take_the_setting(
    backend: Backend, rows: Rows, tool_calls: str, added: Sequence[Any]
) -> None:
    async with talking(backend, "ollama", tool_calls=tool_calls, loses_calls=True) as talk:
        said = {**MILK, "text": "I add it.", "reasoning": "Milk."}
        answer = await talk.say("add milk", said, {"text": "Added."})
        bodies = await talk.bodies()
    assert rows("SELECT title FROM tasks") == added
    assert answer.error is None
    assert answer.text == ("I add it.\nAdded." if added else "I add it.")
    assert any({"stream", "stream_options"} & {*body} for body in bodies) is not bool(added)
    assert rows("SELECT (usage->>'output_tokens')::int > 0 AS counted FROM runs") == [{"counted": True}]


@pytest.mark.parametrize(("context", "told"), [(1_200, 1), (16_384, 0)])
async def test_a_context_that_is_too_small_is_told_once(
    backend: Backend, caplog: pytest.LogCaptureFixture, context: int, told: int
) -> None:
    async with talking(backend, "ollama", context=context) as talk:
        for _ in range(2):
            assert (await talk.say("hello", {"text": "Hello."})).error is None
        first = (await talk.bodies())[0]["messages"][0]
    assert (first["role"] == "system") is not bool(told), "what is cut first is the instructions"
    warnings = [record.getMessage() for record in caplog.records if "OLLAMA_CONTEXT_LENGTH" in record.getMessage()]
    assert len(warnings) == told
