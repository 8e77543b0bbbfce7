"""Answers by OpenAI's Responses API: retries, limits, usage and stopping work as with chat completions."""

from collections.abc import AsyncIterator

import pytest

from tests.support.answers import find_thread, start_run
from tests.support.providers import ProviderConversation, open_conversation
from tests.support.script import add_task, endless_answer, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User

pytestmark = pytest.mark.long

CHAT = "groceries"


@pytest.fixture
async def talk(services: Services, user: User) -> AsyncIterator[ProviderConversation]:
    environment = {"LLM_MODEL": "gpt-6.1-sol", "LLM_MAX_TOKENS": "20"}
    async with open_conversation(services, user, "openai", None, None, **environment) as talk:
        yield talk
        assert talk.strict.responses.bodies
        assert talk.strict.rejections == []


async def test_failures_that_pass(talk: ProviderConversation) -> None:
    busy = {"status": 429, "headers": {"retry-after": "0.1"}, "body": {"error": {"message": "slow"}}}
    answer = await talk.say("hello", {"status": 503}, busy, says("Hello."))
    assert (answer.error, answer.text) == (None, "Hello.")


async def test_empty_answer_is_asked_for_again(talk: ProviderConversation) -> None:
    answer = await talk.say("hello", says("", reasoning="A greeting."), says("Hello."))
    assert (answer.error, answer.text) == (None, "Hello.")
    assert len(talk.strict.responses.bodies) == 2


async def test_output_limit(talk: ProviderConversation) -> None:
    answer = await talk.say("hello", {"text": "one two", "finish_reason": "length"})
    assert (answer.error, answer.text) == (None, "one two")
    assert talk.strict.responses.bodies[-1]["max_output_tokens"] == 20
    assert "output limit" in str(answer.events), "a notice says so"


async def test_output_limit_that_the_model_does_not_accept(talk: ProviderConversation) -> None:
    words = "max_output_tokens is too large: 20. This model supports at most 16 completion tokens."
    rejected = {"status": 400, "body": {"error": {"message": words, "param": "max_output_tokens"}}}
    answer = await talk.say("hello", rejected)
    assert answer.error is not None, "16 tokens are no answer"


async def test_usage(talk: ProviderConversation) -> None:
    run = await start_run(talk.user, CHAT, "hello", until="interaction_complete")
    usage = (await talk.user.runs.get_interaction(CHAT, run))["usage"]
    assert usage["input_tokens"] > 100
    assert usage["output_tokens"] > 0


async def test_stop(talk: ProviderConversation, stored: Stored) -> None:
    await talk.model.script(endless_answer("one two three"), says("Yes."))
    run = await start_run(talk.user, CHAT, "count", until="answer_delta")
    await talk.user.runs.cancel(CHAT, run)
    await stored.run_with_status(talk.user.name, "cancelled")
    await talk.model.release()
    assert (await talk.user.chatkit.say("and now?", await find_thread(talk.user, CHAT))).text == "Yes."


async def test_title_is_not_streamed(talk: ProviderConversation) -> None:
    await talk.model.script({"when": "Write a title", "text": "Milk"}, add_task("milk"), says("Added."))
    await talk.user.chatkit.say("add milk")
    await talk.model.received_requests(3)
    [title] = [body for body in talk.strict.responses.bodies if "tools" not in body]
    assert "stream" not in title
    assert title["store"] is False
