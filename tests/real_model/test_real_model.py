"""Whole conversations with llama.cpp's own server and SmolLM2-135M, which has no tool calls and claims what it likes.

What it says differs between versions, so the tests hold what is true of any answer.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.model.failures.errors import FAILURES
from common.claims import find_claims
from tests.chatkit_client import Answer, text_of
from tests.real_model.server import RealServer, start_server
from tests.support.backends import user_at
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long(seconds=90)

CONTEXT, SMALL_CONTEXT = 4_096, 1_024
FIRST_WORD_SECONDS = 30  # of one processor, which is the same on a busy machine
TEMPLATE = Path(__file__).parent / "tools_template.jinja"
# Without agents the prompt is shorter, and so is the time that one processor needs to read it.
SETTINGS = {"AGENTS": "off", "LLM_TEMPERATURE": "0", "LLM_MAX_TOKENS": "40"}
LEAKED = re.compile(r"<\|?(im_start|im_end|endoftext)|<HiddenContext|Hidden context for the agent \(|<tool_call>")


@dataclass
class Talk:
    """A conversation; it has a title, so the model is not asked for one."""

    user: User
    thread: str
    server: RealServer

    async def say(self, text: str) -> Answer:
        """Checks that the first word does not need more of the server's processor time than a user would wait."""
        answer, began, first_word = Answer(), self.server.read_processor_seconds(), None
        async with self.user.chatkit.add_user_message(self.thread, text) as events:
            async for event in events:
                answer.events.append(event)
                if first_word is None and event["type"] == "thread.item.updated":
                    first_word = self.server.read_processor_seconds() - began
        assert first_word is None or first_word < FIRST_WORD_SECONDS
        return answer

    async def read_texts(self) -> list[str]:
        """Returns the assistant's messages, as they are after a reload."""
        items = await self.user.chatkit.items(self.thread)
        return [text_of(item) for item in items if item["type"] == "assistant_message"]


@asynccontextmanager
async def open_talk(services: Services, user: User, server: RealServer, **more: str) -> AsyncIterator[Talk]:
    thread = (await user.runs.begin("A talk"))["id"]
    async with user_at(services, user, **server.settings, **{**SETTINGS, **more}) as there:
        yield Talk(there, thread, server)


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    """Has read nothing yet; a later request that begins as an earlier one needs little time."""
    with start_server(context=CONTEXT) as server:
        server.wait_until_ready()
        yield server


async def check_truth(talk: Talk, answer: Answer, stored: Stored) -> None:
    """Nothing of our frame or of the model's markup is shown, and no claim without a change is left unmarked."""
    texts = await talk.read_texts()
    assert not [text for text in texts if LEAKED.search(text)]
    if not stored.titles(talk.user.name) and any(map(find_claims, texts)):
        assert "Nothing was changed" in str(answer.events)
    if answer.error is not None:
        sentences = [failure.sentence.split("{")[0] for failure in FAILURES.values()]
        assert answer.error["message"].startswith((*sentences, "The model gave an empty answer.", "The model's answer"))


async def test_model_without_tools(services: Services, user: User, stored: Stored, server: RealServer) -> None:
    """Its server says so, so it is asked to write its calls as text from the first message on."""
    async with open_talk(services, user, server) as talk:
        model = (await talk.user.runs.ready())["model"]
        assert model["tool_calls"] == "text"
        [note] = model["notes"]
        assert "cannot call tools" in note
        for message in ("hello", "add milk for tomorrow"):
            await check_truth(talk, await talk.say(message), stored)


async def test_context_that_is_too_small(services: Services, user: User) -> None:
    """Both numbers and the cure, at the start and in the conversation."""
    with start_server(context=SMALL_CONTEXT) as server:
        server.wait_until_ready()
        async with open_talk(services, user, server) as talk:
            [*_, note] = (await talk.user.runs.ready())["model"]["notes"]
            answer = await talk.say("hello")
    assert answer.error is not None
    for sentence in (note, answer.error["message"]):
        assert sentence.startswith("The model's context has 1,024 tokens, and the assistant's instructions and tools ")
        assert "Start llama-server with -c 16384." in sentence


async def test_server_that_dies_in_the_middle(
    services: Services, user: User, stored: Stored, server: RealServer
) -> None:
    """What was shown is kept, and the sentence is true. It is the last test of this server."""
    async with open_talk(services, user, server, LLM_MAX_TOKENS="400") as talk:
        answer = Answer()
        async with talk.user.chatkit.add_user_message(talk.thread, "Tell me a long story about a garden.") as events:
            async for event in events:
                answer.events.append(event)
                if event["type"] == "thread.item.updated":
                    server.process.kill()
        assert answer.error is not None
        assert answer.error["message"].startswith("The model's answer was cut off before its end. ")
        assert len(await talk.read_texts()) == 1
        await until(lambda: server.process.poll() is not None)
        answer = await talk.user.chatkit.say("hello", talk.thread)
        assert answer.error is not None
        assert answer.error["message"].startswith("The model cannot be reached right now. ")
    assert stored.run_statuses(user.name) == ["failed", "failed"]


@pytest.mark.extended
async def test_server_that_loads(services: Services, user: User, stored: Stored) -> None:
    """The message is sent before the model is there, and answered when it is."""
    with start_server(context=CONTEXT) as server:
        async with open_talk(services, user, server) as talk:
            await until(lambda: server.is_listening())
            answer = await talk.say("hello")
            await check_truth(talk, answer, stored)
    assert answer.error is None
    assert "The model is loading…" in [event["text"] for event in answer.of("progress_update")]


@pytest.mark.extended
async def test_model_with_tools(services: Services, user: User, stored: Stored) -> None:
    """With a chat template that has tools, they are sent as such."""
    with start_server(context=CONTEXT, template=TEMPLATE) as server:
        server.wait_until_ready()
        async with open_talk(services, user, server) as talk:
            model = (await talk.user.runs.ready())["model"]
            assert (model["tool_calls"], model["notes"]) == ("streamed", [])
            for message in ("add milk for tomorrow", "what is on my list?"):
                await check_truth(talk, await talk.say(message), stored)


@pytest.mark.extended
async def test_model_that_repeats_itself(services: Services, user: User, stored: Stored) -> None:
    """It has room for thousands of tokens, and is ended long before."""
    with start_server(context=CONTEXT) as server:
        server.wait_until_ready()
        async with open_talk(services, user, server, LLM_MAX_TOKENS="1500") as talk:
            answer = await talk.say("Repeat this sentence again and again, without end: I like my garden very much.")
            await check_truth(talk, answer, stored)
            [text] = await talk.read_texts()
    assert len(text) < 4_000
