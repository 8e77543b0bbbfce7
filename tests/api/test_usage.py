"""What the model is used for counts, also where a request fails or is stopped, and where its server counts nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.runs_client import id_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import start_run
from tests.support.backends import user_at
from tests.support.script import SLOW_TEXT, add_task, endless_answer, says, start_coder
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

CHAT = "groceries"
COUNTED = {"prompt_tokens": 1_000, "completion_tokens": 200}
TITLE = "Write a title"


@pytest.fixture
async def titled(services: Services) -> AsyncIterator[User]:
    """A user at a backend that lets the model write titles."""
    async with user_at(services, LLM_PROVIDER="custom", LLM_MODEL="rules") as user:
        yield user


async def get_usage(user: User, run: str) -> dict[str, Any]:
    return (await user.runs.get_interaction(CHAT, run))["usage"]


def estimate(request: dict[str, Any]) -> int:
    """The input tokens of a request, counted as four characters each."""
    body = request["body"]
    return len(json.dumps({name: body[name] for name in ("messages", "tools")}, ensure_ascii=False)) // 4


async def test_stopped_answer(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(endless_answer(SLOW_TEXT))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    await user.runs.cancel(CHAT, run)
    await until(lambda: stored.run_statuses(user.name) == ["cancelled"])
    usage, [request] = await get_usage(user, run), await model.finished_requests()
    assert usage["requests"] == 1
    assert usage["input_tokens"] == pytest.approx(estimate(request), rel=0.05)
    assert usage["output_tokens"] == len(SLOW_TEXT) // 4


async def test_answer_that_was_stopped_before_its_first_token(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script({"text": "Hello.", "delay": 60})
    run = await start_run(user, CHAT, "count")
    [request] = await model.received_requests(1)
    await user.runs.cancel(CHAT, run)
    await until(lambda: stored.run_statuses(user.name) == ["cancelled"])
    usage = await get_usage(user, run)
    assert usage["input_tokens"] == pytest.approx(estimate(request), rel=0.05)
    assert usage["output_tokens"] == 0


async def test_answer_that_breaks_off(user: User, model: ScriptedModel) -> None:
    await model.script({"text": SLOW_TEXT, "chunk_chars": 20, "cut_after": 3})
    usage = await get_usage(user, id_of(await user.runs.say(CHAT, "count")))
    assert (usage["requests"], usage["input_tokens"] > 1_000, usage["output_tokens"] > 5) == (1, True, True)


async def test_rejected_requests_cost_nothing(user: User, model: ScriptedModel) -> None:
    await model.script({"status": 400, "body": {"error": {"message": "no"}}})
    assert await get_usage(user, id_of(await user.runs.say(CHAT, "count"))) is None


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0}, {"prompt_tokens": -5}, {"prompt_tokens": 10**30}])
async def test_server_that_counts_nothing(usage: Any, user: User, model: ScriptedModel) -> None:
    await model.script({**says(SLOW_TEXT), "usage": usage})
    counted = await get_usage(user, id_of(await user.runs.say(CHAT, "count")))
    [request] = await model.finished_requests()
    assert counted["input_tokens"] == pytest.approx(estimate(request), rel=0.05)
    assert counted["output_tokens"] == len(SLOW_TEXT) // 4


async def test_all_requests_of_an_answer(user: User, model: ScriptedModel) -> None:
    """Also those of an agent, one that was sent again, and tool calls that were cut off."""
    steps = [start_coder("write"), {"status": 503}, says("Written."), add_task("milk"), says("Fine.")]
    await model.script(*({**step, "usage": COUNTED} if "status" not in step else step for step in steps))
    usage = await get_usage(user, id_of(await user.runs.say(CHAT, "work")))
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (4, 4_000, 800)
    assert usage["by_agent"]["coder"]["input_tokens"] == 1_000
    long = add_task("long", description="x" * 2_000)
    await model.script({**long, "chunk_chars": 100, "hold_after": 15})
    run = await start_run(user, CHAT, "more")
    await model.received_requests(6)
    await user.runs.cancel(CHAT, run)

    async def has_ended() -> bool:
        return (await user.runs.get_interaction(CHAT, run))["status"] == "CANCELLED"

    await until(has_ended)
    assert (await get_usage(user, run))["output_tokens"] > 200, "the call that was being written"


@pytest.mark.parametrize("text", ["Greeting", "no title " * 200], ids=["used", "rejected as it repeats itself"])
async def test_title(text: str, titled: User, model: ScriptedModel) -> None:
    await model.script({**says("Hello."), "usage": COUNTED}, {"when": TITLE, "text": text, "usage": COUNTED})
    thread = (await titled.chatkit.say("hello")).thread_id

    async def find_usage() -> dict[str, Any] | None:
        usage = (await titled.runs.get_chat(thread))["interactions"][0]["usage"]
        return usage if usage["requests"] == 2 else None

    usage = await until(find_usage)
    assert (usage["input_tokens"], usage["output_tokens"]) == (2_000, 400)


async def test_summary_that_fails(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Yes.")] * 4, {"when": "Summarise", "text": " " * 40, "usage": COUNTED})
    runs = [id_of(await user.runs.say(CHAT, f"hello {number}")) for number in range(4)]
    before = await get_usage(user, runs[-1])
    rejected = await user.runs.http.post(f"/chats/{CHAT}/compact")
    assert rejected.status_code == 503
    usage = await get_usage(user, runs[-1])
    assert usage["input_tokens"] - before["input_tokens"] == 1_000
