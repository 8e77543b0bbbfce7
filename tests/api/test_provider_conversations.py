"""Conversations with each provider: tools, reasoning, odd ids, limits, stops, refusals and faults."""

import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from backend.model.providers import PROFILES
from backend.settings import ProviderName
from tests.chatkit_client import Answer
from tests.strict_provider import responses
from tests.support.completions import call_delta, check_pairs, chunk
from tests.support.providers import KEY, ProviderConversation, call, open_conversation
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import user_input

pytestmark = pytest.mark.long

Json = dict[str, Any]

HISTORY_TOKENS = 2_500  # so few that one conversation is long

# → temperature, effort, the field in which reasoning goes back. vllm, lmstudio and llamacpp are sent what custom is.
SENT: dict[ProviderName, tuple[float | None, str | None, str | None]] = {
    "cerebras": (1.5, "low", "reasoning"),
    "openai": (2.0, None, None),
    "anthropic": (None, None, None),
    "gemini": (None, "low", None),
    "mistral": (1.5, None, None),
    "groq": (2.0, "low", None),
    "openrouter": (2.0, "low", "reasoning"),
    "ollama": (2.0, None, "reasoning"),
    "custom": (2.0, None, None),
}
HIDES_THOUGHTS = ("anthropic", "gemini")


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
        {"text": "Done.", "usage": None},
    )
    assert (answer.error, answer.text) == (None, "Done.")
    assert [(task.title, task.status) for task in stored.tasks(talk.user.name)] == [("C", "completed")]
    bodies = await talk.bodies()
    assert len(bodies) == 4
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


async def reasoning_then_call(talk: ProviderConversation, stored: Stored) -> None:
    thinking = {"reasoning": "One thing to add.", "tool_calls": [call("add_task", title="e")]}
    answer = await talk.say("add e", thinking, {"text": "Added.", "reasoning": "Good."})
    assert (answer.error, answer.text, stored.titles(talk.user.name)) == (None, "Added.", ["e"])
    assert ("One thing to add." in str(answer.events)) is (talk.provider not in HIDES_THOUGHTS)
    messages = (await talk.bodies())[-1]["messages"]
    replayed = {field: message[field] for message in messages for field in message if field.startswith("reasoning")}
    field = SENT[talk.provider][2]
    assert replayed == ({field: "One thing to add."} if field else {})
    assert "One thing to add." not in str([message["content"] for message in messages])


async def long_conversation_with_memory(talk: ProviderConversation, stored: Stored) -> None:
    await talk.user.runs.http.put("/memory", json={"text": "* I work nights\n"}, headers={"If-Match": "*"})
    story = {"text": "once upon a time " * 120}
    for number in range(8):
        if number == 7:  # a summary is written after an answer, and read by the next run
            await until(lambda: stored.has_summary(talk.user.name, talk.thread_id))
        answer = await talk.say(f"tell me story {number}", {**story, "when": f"story {number}"})
        assert answer.error is None
    [*_, last] = [str(body["messages"]) for body in await talk.bodies() if "tools" in body]
    assert "I work nights" in last
    assert "Summary of the conversation" in last


async def stop_in_the_middle(talk: ProviderConversation, stored: Stored) -> None:
    slow = {"text": "One, two, three, four, five, six, seven, eight.", "token_delay": 0.05}
    await talk.model.script({"tool_calls": [call("list_tasks")]}, slow)
    params = {"thread_id": talk.thread_id, "input": user_input("count")}
    async with talk.user.chatkit.open("threads.add_user_message", **params) as events:
        async for event in events:
            if "text_delta" in str(event):
                break
    await until(lambda: stored.run_statuses(talk.user.name) != ["running"])
    answer = await talk.say("go on", {"text": "Nine."})
    assert (answer.error, answer.text) == (None, "Nine.")


async def busy_then_answered(talk: ProviderConversation, stored: Stored) -> None:
    busy = {
        "status": 429,
        "body": responses.render_error(talk.provider, f"Requests per minute exceeded for {KEY}", 429),
    }
    answer = await talk.say("hello", busy, {**busy, "headers": {"retry-after": "0.02"}}, {"text": "Here I am."})
    assert (answer.error, answer.text) == (None, "Here I am.")
    assert [event["text"] for event in answer.of("progress_update")] == ["The model is busy, trying again…"] * 2
    answer = await talk.say("hello", {**busy, "headers": {"retry-after": "3600"}})
    assert "busy right now" in error(answer)["message"]
    ready = await talk.user.runs.http.get("/ready")
    assert KEY not in str([answer.events, ready.text])
    answer = await talk.say("and now", {"text": "Now."})
    assert (answer.error, answer.text) == (None, "Now.")


async def error_in_the_stream(talk: ProviderConversation, stored: Stored) -> None:
    answer = await talk.say(
        "hello", {"raw": [chunk({"content": "Let me"}), responses.render_stream_error(talk.provider)]}
    )
    assert (answer.text, error(answer)["allow_retry"]) == ("Let me", True)
    assert "busy right now" in error(answer)["message"]
    answer = await talk.say("again", adds("k"), {"text": "Added."})
    assert (answer.error, answer.text, stored.titles(talk.user.name)) == (None, "Added.", ["k"])


CONVERSATIONS: tuple[Callable[[ProviderConversation, Stored], Awaitable[None]], ...] = (
    calls_of_tools,
    faults_of_the_model,
    calls_over_three_steps,
    reasoning_then_call,
    long_conversation_with_memory,
    stop_in_the_middle,
    busy_then_answered,
    error_in_the_stream,
)


@pytest.mark.parametrize("provider", SENT)
async def test_conversations(
    provider: ProviderName, services: Services, user: User, stored: Stored, subtests: pytest.Subtests
) -> None:
    settings = {"HISTORY_TOKENS": str(HISTORY_TOKENS), "LLM_TEMPERATURE": "2.0"}
    async with open_conversation(services, user, provider, **settings) as talk:
        for conversation in CONVERSATIONS:
            with subtests.test(conversation.__name__):
                async with talk.with_new_user() as other:
                    await conversation(other, stored)
                assert talk.strict.rejections == []
                for body in await talk.bodies():
                    check_body(provider, body)


# A server behind the profile `custom` → the fields of a request that it rejects.
UNNAMED: dict[ProviderName, list[str]] = {
    "openai": ["max_tokens"],
    "anthropic": ["temperature"],
    "gemini": [],
    "mistral": ["stream_options", "temperature"],
    "openrouter": [],
    "ollama": [],
    "vllm": [],
    "lmstudio": [],
    "llamacpp": [],
}


@pytest.mark.parametrize("server", UNNAMED)
async def test_custom_server_is_sent_no_field_twice_that_it_rejects(
    server: ProviderName, services: Services, user: User, stored: Stored
) -> None:
    async with open_conversation(services, user, "custom", None, server, LLM_TEMPERATURE="2.0") as talk:
        await play(talk, stored, CALLS[1:3])
    assert len(talk.strict.rejections) == len(UNNAMED[server]), talk.strict.rejections
    assert all(field in reason for field, reason in zip(UNNAMED[server], talk.strict.rejections, strict=True))


def check_body(provider: ProviderName, body: dict[str, Any]) -> None:
    check_pairs(body["messages"])
    if "tools" not in body:  # of a summary
        return
    temperature, effort, _ = SENT[provider]
    profile = PROFILES[provider]
    usage = None if "stream_options" in profile.omits else {"include_usage": True}
    assert body.get("stream_options") == usage
    assert body[profile.max_tokens_field] == 1000
    assert (body.get("temperature"), body.get("reasoning_effort")) == (temperature, effort)
    assert len(body["tools"]) == 7
    assert body["tool_choice"] == "auto"
    for message in body["messages"]:
        for called in message.get("tool_calls") or ():
            assert isinstance(json.loads(called["function"]["arguments"]), dict)


def error(answer: Answer) -> dict[str, Any]:
    assert answer.error is not None
    return answer.error
