"""Conversations with each provider; unit/test_provider_requests.py and test_model_reader.py have its whole contract."""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from backend.settings import ProviderName
from tests.strict_provider import responses
from tests.strict_provider.contracts import CONTRACTS
from tests.support.completions import call_delta, check_pairs, chunk
from tests.support.providers import ProviderConversation, call, open_conversation
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User

pytestmark = pytest.mark.long

Json = dict[str, Any]


def adds(*titles: str) -> Json:
    return {"tool_calls": [call("add_task", title=title) for title in titles]}


Turn = tuple[str, list[Json], str, list[str]]
"""What is said, the model's responses, the answer, and the tasks that it adds."""

WITHOUT_IDS = [chunk(call_delta(index=0, name="add_task", arguments='{"title": "f"}')), chunk({}, "tool_calls")]
WITH_ONE_ID = [
    chunk(call_delta(index=0, id="0", name="add_task", arguments='{"title": "g"}')),
    chunk(call_delta(index=1, id="0", name="add_task", arguments='{"title": "h"}')),
    chunk({}, "tool_calls"),
]
CALLS: list[Turn] = [
    ("add milk", [adds("milk"), {"text": "Added."}], "Added.", ["milk"]),
    ("add a and b", [adds("a", "b"), {"text": "Added both."}], "Added both.", ["a", "b"]),
    ("thanks", [{"text": "You are welcome."}], "You are welcome.", []),
    ("add d", [adds("d") | {"text": "I add it."}, {"text": "It is there."}], "I add it.\nIt is there.", ["d"]),
    ("add more", [{"raw": WITHOUT_IDS}, {"raw": WITH_ONE_ID}, {"text": "Added."}], "Added.", ["f", "g", "h"]),
]
BROKEN = {"name": "add_task", "arguments": '{"title": "i', "id": "1"}
REFUSES = {"raw": [chunk({"refusal": "I will not"}), chunk({"refusal": " do that."}, "stop")]}
FAULTS: list[Turn] = [
    ("add i", [{"tool_calls": [BROKEN]}, {"text": "That did not work."}], "That did not work.", []),
    ("again", [adds("i"), {"text": "Added."}], "Added.", ["i"]),
    ("mail it", [{"tool_calls": [call("send mail!", to="ann")]}, {"text": "I cannot."}], "I cannot.", []),
    ("do something bad", [REFUSES], "I will not do that.", []),
    ("why", [{"text": "Because."}], "Because.", []),
]


async def play(talk: ProviderConversation, stored: Stored, turns: list[Turn]) -> None:
    titles: list[str] = []
    for text, steps, expected, added in turns:
        answer = await talk.say(text, *steps)
        titles += added
        assert (answer.error, answer.text, stored.titles(talk.user.name)) == (None, expected, titles)


async def calls_of_tools(talk: ProviderConversation, stored: Stored) -> None:
    await play(talk, stored, CALLS)
    if talk.provider == "gemini":
        called, *_ = [message for message in (await talk.bodies())[-1]["messages"] if message.get("tool_calls")]
        assert called["tool_calls"][0]["extra_content"] == responses.SIGNATURE


async def faults_of_the_model(talk: ProviderConversation, stored: Stored) -> None:
    await play(talk, stored, FAULTS)


async def calls_over_three_steps(talk: ProviderConversation, stored: Stored) -> None:
    answer = await talk.say(
        "look, add c and d, then see to them",
        {"tool_calls": [call("list_tasks")]},
        adds("c", "d"),
        {
            "tool_calls": [
                call("update_task", task_id=1, title="C"),
                call("complete_task", task_id=1),
                call("delete_task", task_id=2),
            ]
        },
        {"text": "Fine.", "usage": None},
    )
    assert (answer.error, answer.text) == (None, "Fine.")
    assert [(task.title, task.status) for task in stored.tasks(talk.user.name)] == [("C", "completed")]
    bodies = await talk.bodies()
    assert len(bodies) == 4
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


async def reasoning_then_call(talk: ProviderConversation, stored: Stored) -> None:
    thinking = {"reasoning": "One thing to add.", "tool_calls": [call("add_task", title="e")]}
    answer = await talk.say("add e", thinking, {"text": "Added.", "reasoning": "Good."})
    assert (answer.error, answer.text, stored.titles(talk.user.name)) == (None, "Added.", ["e"])
    contract = CONTRACTS[talk.provider]
    by_responses = bool(talk.strict.responses.bodies)
    assert ("One thing to add." in str(answer.events)) is (contract.sends_reasoning or by_responses)
    messages = (await talk.bodies())[-1]["messages"]
    replayed = {field: message[field] for message in messages for field in message if field.startswith("reasoning")}
    assert replayed == ({contract.reasoning_field: "One thing to add."} if contract.reasoning_field else {})
    assert "One thing to add." not in str([message["content"] for message in messages])


CONVERSATIONS: tuple[Callable[[ProviderConversation, Stored], Awaitable[None]], ...] = (
    calls_of_tools,
    faults_of_the_model,
    calls_over_three_steps,
    reasoning_then_call,
)


OLDER = "gpt-4.1-mini"
# vllm, lmstudio and llamacpp are sent what custom is. OpenAI's newer models are asked by the Responses API.
CHAT = [(name, OLDER if name == "openai" else "") for name in CONTRACTS if name not in ("vllm", "lmstudio", "llamacpp")]
RESPONSES = [("openai", ""), ("openai", "gpt-6.1-sol"), ("openai", "gpt-5.4-mini")]


@pytest.mark.parametrize(("provider", "name"), [*CHAT, *RESPONSES])
async def test_conversations(
    provider: ProviderName, name: str, services: Services, user: User, stored: Stored, subtests: pytest.Subtests
) -> None:
    environment = {"LLM_MODEL": name} if name else {}
    async with open_conversation(services, user, provider, None, None, **environment) as talk:
        for conversation in CONVERSATIONS:
            with subtests.test(conversation.__name__):
                async with talk.with_new_user() as other:
                    await conversation(other, stored)
                assert talk.strict.rejections == []
                for body in await talk.bodies():
                    check_pairs(body["messages"])
        assert bool(talk.strict.responses.bodies) is ((provider, name) in RESPONSES)


@pytest.mark.parametrize(("server", "name"), [("openai", OLDER), ("mistral", "mistral-medium-latest")])
async def test_custom_server_is_sent_no_field_twice_that_it_rejects(
    server: ProviderName, name: str, services: Services, user: User, stored: Stored
) -> None:
    async with open_conversation(services, user, "custom", None, server, LLM_MODEL=name, LLM_TEMPERATURE="2.0") as talk:
        await play(talk, stored, CALLS[1:3])
    fields = CONTRACTS[server].rejected_of_custom
    assert len(talk.strict.rejections) == len(fields), talk.strict.rejections
    assert all(field in reason for field, reason in zip(fields, talk.strict.rejections, strict=True))
