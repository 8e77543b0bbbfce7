"""Model servers that no provider profile describes; unit/test_model_reader.py holds how responses are read."""

from pathlib import Path
from typing import Any

import pytest

from tests.chatkit_client import Answer
from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.completions import call_delta, chunk
from tests.support.model_requests import requests_to
from tests.support.script import says
from tests.support.stack import Services
from tests.support.users import User

pytestmark = pytest.mark.long


KEY = "secret-of-this-server"
RESPONSES = Path(__file__).parent / "model_servers"
CUSTOM = {"LLM_PROVIDER": "custom", "LLM_MODEL": "m", "LLM_API_KEY": KEY}


def thoughts_of(answer: Answer) -> str:
    return " ".join(
        task["content"].strip()
        for item in answer.items
        if item["type"] == "workflow"
        for task in item["workflow"]["tasks"]
    )


DONE = "data: [DONE]\n\n"
WHOLE = chunk({"content": "whole answer"})
STOP = chunk({}, "stop")
# Of a response that is complete, though its server keeps the connection open.
ENDINGS: dict[str, dict[str, Any]] = {
    "open after [DONE]": {"raw": [WHOLE, STOP, DONE], "hang": True},
    "open after the finish reason": {"raw": [WHOLE, STOP], "hang": True},
    "comments after the finish reason": {"raw": [WHOLE, STOP, *[": waiting\n\n"] * 1_000], "token_delay": 0.05},
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_end_of_a_response(ending: str, services: Services, user: User, model: ScriptedModel) -> None:
    await model.script(ENDINGS[ending])
    async with user_at(services, user, **CUSTOM) as there:
        answer = await there.chatkit.say("hello")
    assert (answer.error, answer.text) == (None, "whole answer")


async def test_reasoning_whose_opening_tag_is_in_the_prompt(
    services: Services, user: User, model: ScriptedModel
) -> None:
    """The first response is shown as it came; then the model is known to write no opening tag."""
    # https://github.com/xorbitsai/inference/issues/2960
    # https://github.com/NousResearch/hermes-agent/pull/14601
    response = {"raw": [(RESPONSES / "think_unopened.sse").read_text()]}
    await model.script(response, response, says("Without reasoning."), says("Nor here."))
    async with user_at(services, user, **CUSTOM) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        answers = [await there.chatkit.say("hello", thread) for _ in range(4)]
    assert answers[0].text.strip() == "Okay, a greeting.\n\n\nHello there"
    assert [answer.text for answer in answers[1:]] == ["Hello there", "Without reasoning.", "Nor here."]
    assert thoughts_of(answers[1]) == "Okay, a greeting."
    assert thoughts_of(answers[3]) == ""


async def test_extra_content_of_calls_goes_back(services: Services, user: User, model: ScriptedModel) -> None:
    """Whatever the model is called: a gateway may name a model of Gemini as it likes."""
    extra = {"google": {"thought_signature": "c2lnbmVk"}, "gateway": [1]}
    call = call_delta(index=0, id="a", name="list_tasks", arguments="{}")
    call["tool_calls"][0]["extra_content"] = extra
    await model.script({"raw": [chunk(call), chunk({}, "tool_calls"), DONE]}, says("None."), says("None, still."))
    async with user_at(services, user, **CUSTOM) as there:
        thread = (await there.runs.begin("A talk"))["id"]
        for _ in range(2):
            await there.chatkit.say("what is there?", thread)
    sent = [
        made.get("extra_content")
        for body in await requests_to(model)
        for message in body["messages"]
        for made in message.get("tool_calls") or ()
    ]
    assert sent == [extra, extra]


async def test_log_has_the_words_of_the_provider(
    services: Services, user: User, model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    """With the status and the address; without keys, and without what the user wrote."""
    written = "my salary is four thousand, do not tell"
    words = f"messages[1] with {written!r} is not allowed for sk-abcdefghijkl and {KEY}. {'x' * 900}"
    await model.script({"status": 400, "body": {"error": {"message": words}}})
    async with user_at(services, user, **CUSTOM) as there:
        answer = await there.chatkit.say(written)
    assert answer.error is not None
    [line] = [record.getMessage() for record in caplog.records if "model request failed" in record.getMessage()]
    begin, _, logged = line.partition(", it says: ")
    assert begin == f"model request failed: model_request_rejected, model m at {services.model.url}/v1, status 400"
    assert logged.startswith("messages[1] with ")
    assert "is not allowed for" in logged
    assert not any(secret in logged for secret in ("salary", "abcdefgh", KEY))
    assert len(logged) <= 501
