"""The model tokens of a user's day: all requests count, in every process, and none is sent once they are used up.

The limit is the default of AUTH_MODE=jwt.
"""

import asyncio
from typing import Any

import pytest

from tests.runs_client import id_of, names
from tests.scripted_model import ScriptedModel
from tests.support.answers import find_thread, start_run
from tests.support.approvals import APIS, wait_for_approval
from tests.support.backends import user_at
from tests.support.script import PAUSING, add_task, delete_tasks, says, start_coder
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.sse import RunEvent

CHAT = "groceries"
LIMIT = 5_000_000
ALL = {"prompt_tokens": 4_999_000, "completion_tokens": 1_000}
HALF = {"prompt_tokens": 2_499_000, "completion_tokens": 1_000}
USED_UP = "You have used up your 5,000,000 model tokens of today."


def using(usage: dict[str, int], step: dict[str, Any]) -> dict[str, Any]:
    return {**step, "usage": usage}


async def count_tokens(user: User) -> int:
    usage = (await user.runs.http.get("/usage")).raise_for_status().json()
    assert usage["limit"] == LIMIT
    return usage["input_tokens"] + usage["output_tokens"]


async def check_rejected(user: User, path: str = f"/chats/{CHAT}/interactions", **body: Any) -> None:
    response = await user.runs.http.post(path, json=body or {"user_message": "hello"})
    assert response.status_code == 429, response.text
    assert response.json()["error"].startswith(USED_UP)
    assert 0 < int(response.headers["retry-after"]) <= 86_400


def check_ended(events: list[RunEvent]) -> None:
    """By the limit, after what it had done."""
    error = next(event.data for event in events if event.name == "error")
    assert error["code"] == "tokens_used_up"
    assert "5,000,000 model tokens of the day are used up" in error["error"]
    assert events[-1].data["status"] == "FAILED"


async def test_every_process_counts(user: User, model: ScriptedModel) -> None:
    """Also what is used at the same time."""
    await model.script(*[using({"prompt_tokens": 400_000, "completion_tokens": 99_999}, says("Hello."))] * 10)
    async with user.at(1) as there:
        await asyncio.gather(*(one.runs.say(f"{n}-{one.url[-5:]}", "hello") for one in (user, there) for n in range(5)))
        assert await count_tokens(user) == await count_tokens(there) == 4_999_990
        await model.script(says("Hello."))
        await user.runs.say(CHAT, "hello")
        await check_rejected(there)
        await check_rejected(user)
    assert len(await model.requests()) == 11


async def test_next_day(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(using(ALL, says("Hello.")), says("Hello."))
    await user.runs.say(CHAT, "hello")
    await check_rejected(user)
    stored.age_token_usage(user.name, days=1)
    assert await count_tokens(user) == 0
    assert names(await user.runs.say(CHAT, "hello"))[-1] == "interaction_complete"


async def test_deleted_conversation(user: User, model: ScriptedModel) -> None:
    await model.script(using(ALL, says("Hello.")))
    await user.runs.say(CHAT, "hello")
    await user.runs.delete_chat(CHAT)
    await check_rejected(user)


async def test_within_an_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    """What was done is kept, and said."""
    await model.script(using(ALL, add_task("milk")))
    events = await user.runs.say(CHAT, "add milk")
    check_ended(events)
    assert [change["title"] for change in events[-1].data["changes"]] == ["milk"]
    assert stored.titles(user.name) == ["milk"]
    assert len(await model.requests()) == 1
    shown = str(await user.chatkit.items(await find_thread(user, CHAT)))
    assert "model tokens of the day are used up" in shown


async def test_last_answer(user: User, model: ScriptedModel) -> None:
    """An answer that is complete has not failed."""
    await model.script(using(HALF, add_task("milk")), using(ALL, says("Fine.")))
    events = await user.runs.say(CHAT, "add milk")
    assert events[-1].data["status"] == "COMPLETED"
    await check_rejected(user)


async def test_agents(user: User, model: ScriptedModel) -> None:
    await model.script(using(HALF, start_coder("write")), using(HALF, add_task("never")))
    events = await user.runs.say(CHAT, "work")
    check_ended(events)
    assert len(await model.requests()) == 2, "neither the agent nor the assistant goes on"


async def test_withdrawn_answer(user: User, model: ScriptedModel) -> None:
    """There is no second answer, so that the first one stays, with its notice."""
    await model.script(using(HALF, {"tool_calls": [{"name": "list_tasks"}]}), using(ALL, says("I've added milk.")))
    events = await user.runs.say(CHAT, "add milk")
    assert "withdrawn" not in names(events)
    assert len(await model.requests()) == 2


async def test_queued_messages(user: User, model: ScriptedModel) -> None:
    """A follow-up ends at once; further messages are rejected, as those that start an answer."""
    await model.script(using(ALL, PAUSING))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    await user.runs.send(CHAT, run, "and milk", mode="follow_up")
    await model.release()
    following = (await user.runs.read(CHAT, run))[-1].data["next_interaction_id"]
    check_ended(await user.runs.read(CHAT, following))
    assert len(await model.requests()) == 1


async def test_steering(user: User, model: ScriptedModel) -> None:
    await model.script(PAUSING, using(ALL, says("Hello.")))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    await user.runs.say("other", "hello")
    await check_rejected(user, f"/chats/{CHAT}/interactions/{run}/messages", text="and milk", mode="steer")
    await model.release()
    assert (await user.runs.read(CHAT, run))[-1].data["status"] == "COMPLETED"


async def test_answer_that_waited(user: User, model: ScriptedModel, stored: Stored) -> None:
    """What the user has approved is done."""
    titles = [f"task {number}" for number in range(11)]
    await model.script(add_task(titles[0], also=titles[1:]), delete_tasks(*range(1, 12)))
    chat = await APIS["run_api"].say(user, CHAT, "clean up")
    waiting = await wait_for_approval(user, chat)
    await model.script(using(ALL, says("Hello.")))
    await user.runs.say("other", "hello")
    await user.runs.approve(chat, waiting.run, waiting.approval, approved=True)
    check_ended(await user.runs.read(chat, waiting.run))
    assert stored.titles(user.name) == []
    assert len(await model.requests()) == 3


async def test_title(services: Services, model: ScriptedModel) -> None:
    """It counts, and is not written once the tokens are used up."""
    async with user_at(services, LLM_PROVIDER="custom", LLM_MODEL="m") as user:
        title = {"when": "Write a title", "text": "Greeting"}
        await model.script(using(HALF, says("Hello.")), using(HALF, title))
        await user.chatkit.say("hello")

        async def is_used_up() -> bool:
            return await count_tokens(user) == LIMIT

        await until(is_used_up)
        await check_rejected(user)
        async with User(user.stack) as other:
            await model.script(using(ALL, says("Hello.")), using(HALF, title))
            await other.chatkit.say("hello")
            await check_rejected(other)
            assert len(await model.finished_requests()) == 3


async def test_summary(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Yes.")] * 5, using(ALL, says("Yes.")))
    for number in range(6):
        await user.runs.say(CHAT, f"hello {number}")
    await check_rejected(user, f"/chats/{CHAT}/compact")
    assert len(await model.requests()) == 6


async def test_usage(user: User, model: ScriptedModel) -> None:
    await model.script(using(HALF, says("Hello.")))
    run = id_of(await user.runs.say(CHAT, "hello"))
    usage = (await user.runs.http.get("/usage")).json()
    counted = (await user.runs.get_interaction(CHAT, run))["usage"]
    assert {name: usage[name] for name in ("input_tokens", "output_tokens", "limit")} == {
        "input_tokens": counted["input_tokens"],
        "output_tokens": counted["output_tokens"],
        "limit": LIMIT,
    }
    assert usage["resets_at"] > usage["day"]


@pytest.mark.parametrize(("limit", "shown"), [("1000", 1_000), ("", LIMIT)])
async def test_limit_is_a_setting(limit: str, shown: int, services: Services) -> None:
    async with user_at(services, LIMIT_TOKENS_PER_DAY=limit) as user:
        assert (await user.runs.http.get("/usage")).json()["limit"] == shown
