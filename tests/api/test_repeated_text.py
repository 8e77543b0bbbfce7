"""Models that repeat what they should not: the frame of hidden notes, and their own words without an end."""

import json
import re
from typing import Any

import pytest

from backend.context.hidden_context import block
from backend.runs.outcomes import sentence_of
from tests.runs_client import id_of, names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import find_thread
from tests.support.completions import orchestrator_json
from tests.support.fixtures import StartStack
from tests.support.model_requests import requests_to
from tests.support.script import add_tasks, call, calls, says, start_coder
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

FRAME = block("Sat 2026-11-28 22:07, Europe/Berlin")
UNIT = "I have looked at your list and I am going to look at it again, as it may have changed since I looked at it. "
LOOP = {"text": f"Let me see.\n\n{UNIT * 200}", "chunk_chars": 9}
SENTENCE = sentence_of("answer_repeated")


async def test_frame_is_cut_everywhere(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Out of text, reasoning, a sub-agent's words and a title; and no later request has it."""
    framed = f"{FRAME}\n\nHello.\n\n{FRAME}\n\nBye."
    await model.script(
        {**start_coder("write a"), "text": framed, "reasoning": framed, "chunk_chars": 3},
        {**calls(call("list_files"), text=framed, reasoning=framed), "chunk_chars": 7},
        says(framed, reasoning=framed),
        says(framed),
    )
    answer = await user.chatkit.say("hello")
    assert answer.error is None
    assert answer.text == "Hello.\n\nBye.\nHello.\n\nBye."
    thread = answer.thread_id
    await model.script(says("Hello."))
    await user.chatkit.say("hello", thread)
    assert "HiddenContext" not in json.dumps([*answer.events, *await user.chatkit.items(thread)])
    assert "HiddenContext" not in str(stored.rows_of(user.name, "entries"))
    for body in await requests_to(model):
        # Reasoning goes back to its server, but with tags that open and close nothing.
        blocks = [one for one in body["messages"][1:] if re.search("</?HiddenContext", json.dumps(one))]
        assert all(one["role"] == "user" and one["content"].startswith("Hidden context") for one in blocks)


@pytest.mark.parametrize("stack_name", ["small_window"])
async def test_frame_in_a_title(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."), {"when": "Write a title", "text": f"{FRAME}\n\nGreeting"})
    thread = (await user.chatkit.say("hello")).thread_id
    await until(lambda: stored.conversation_title(user.name, thread) == "Greeting")


async def test_frame_in_text_mode(start_stack: StartStack, model: ScriptedModel) -> None:
    async with User(start_stack("text_calls")) as user:
        final = orchestrator_json(thought=f"{FRAME}\nHm.", action="final", answer=f"{FRAME}\n\nHello.")
        wrong = f"{FRAME} " + orchestrator_json(action="use_tool", tool="mow")
        await model.script({"text": f"{FRAME}\n{final}", "chunk_chars": 2}, says(wrong), says("Well."))
        events = await user.runs.say("chat", "hello")
        assert text_of(events) == "Hello."
        assert [event.data["content"] for event in events if event.name == "thinking"] == ["Hm."]
        await user.runs.say("chat", "again")
        assert "HiddenContext" not in str((await requests_to(model))[-1]["messages"][-2])


REPEATED: dict[str, dict[str, Any]] = {
    "text": LOOP,
    "reasoning": {"text": "Done.", "reasoning": UNIT * 200, "chunk_chars": 9},
    "before calls": {**add_tasks(2), **LOOP},
    "frames": {"text": f"Let me see.\n\n{(FRAME + chr(10)) * 200}", "chunk_chars": 9},
}


@pytest.mark.parametrize("case", REPEATED)
async def test_repetition_is_ended(case: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    """The request is closed, what was shown stays, no call is made, and the user is told."""
    await model.script({**REPEATED[case], "hang": True}, says("Hello."))
    answer = await user.chatkit.say("look at my list")
    assert answer.error is None
    assert [notice["message"] for notice in answer.of("notice")] == [SENTENCE]
    assert [one["outcome"] for one in await model.finished_requests()] == ["client_closed"]
    assert (stored.run_statuses(user.name), stored.titles(user.name)) == (["completed"], [])
    shown = "" if case == "reasoning" else "Let me see.\n\n"
    assert answer.text.startswith(shown)
    assert len(answer.text) < 1_000
    items = await user.chatkit.items(answer.thread_id)
    assert [one["content"][0]["text"] for one in items if one["type"] == "assistant_message"] == (
        [answer.text] if shown else []
    )
    assert (items[-1]["task"]["title"], items[-1]["actions"]) == (SENTENCE, ["retry"])
    assert (await user.chatkit.say("hello", answer.thread_id)).text == "Hello."


async def test_repetition_in_each_api(user: User, model: ScriptedModel) -> None:
    """Also where nothing but reasoning came."""
    await model.script(*[LOOP] * 3, *[REPEATED["reasoning"]] * 3)
    for text in ("Let me see.", ""):
        events = await user.runs.say("named", "look")
        assert (names(events)[-1], text_of(events)[:11]) == ("interaction_complete", text)
        assert events[-1].data["status"] == "COMPLETED"
        assert [event.data["code"] for event in events if event.name == "notice"] == ["answer_repeated"]
        assert [event.name for event in await user.runs.read("named", id_of(events)) if event.name == "error"] == []
        response = await user.runs.http.post("/chat", json={"messages": [{"role": "user", "content": "look"}]})
        assert response.status_code == 200
        assert response.json()["answer"].startswith(text or "[NO ANSWER]")
        response = await user.runs.http.post("/chatkit", json={"message": "look"})
        last = json.loads(response.text.strip().rpartition("data: ")[2])
        assert (last["status"], last["notice"]) == ("completed", SENTENCE)
    assert await find_thread(user, "named")


async def test_repetition_of_a_sub_agent(user: User, model: ScriptedModel) -> None:
    await model.script(start_coder("write a"), LOOP, says("The coder repeated itself."))
    answer = await user.chatkit.say("write a")
    assert (answer.error, answer.text) == (None, "The coder repeated itself.")
    output = next(one for one in (await requests_to(model))[-1]["messages"] if one["role"] == "tool")["content"]
    assert output.startswith("Let me see.")
    assert "repeated itself" in output


async def test_repetition_in_text_mode(start_stack: StartStack, model: ScriptedModel, stored: Stored) -> None:
    """Calls, one and the same without an end, of which none is made."""
    async with User(start_stack("text_calls")) as user:
        step = json.dumps({"name": "add_task", "arguments": {"title": "milk"}}) + "\n"
        await model.script({"text": f"I add it.\n{step * 100}", "chunk_chars": 9, "hang": True})
        answer = await user.chatkit.say("add milk")
        assert (answer.text.strip(), [one["message"] for one in answer.of("notice")]) == ("I add it.", [SENTENCE])
        assert stored.titles(user.name) == []


async def test_repetition_in_a_summary(user: User, model: ScriptedModel, stored: Stored) -> None:
    """It is none: the conversation stays as it is."""
    await model.script(*[says("Hello.")] * 6)
    thread = None
    for _ in range(6):
        thread = (await user.chatkit.say("hello", thread)).thread_id
    assert thread is not None
    await model.script({"when": "Summarise", **LOOP})
    response = await user.runs.http.post(f"/chats/{thread}/compact")
    assert response.status_code == 503
    assert not stored.has_summary(user.name, thread)
