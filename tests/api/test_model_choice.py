"""A user may choose the model and the temperature of one answer, of those that are offered."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.runs_client import id_of
from tests.scripted_model import ScriptedModel
from tests.support.model_requests import requests_to
from tests.support.script import add_tasks, call, calls, delete_tasks, says, start_coder
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

CHAT = "groceries"
DEFAULT = ("gpt-oss-120b", 0.7)
CHOSEN = ("large", 1.25)
MORE = {"model": "large", "metadata": {"temperature": 1.25}}


@pytest.fixture
def stack_name() -> str:
    return "small_window"


async def used(model: ScriptedModel) -> list[tuple[str, float]]:
    return [(body["model"], body["temperature"]) for body in await requests_to(model)]


def chatkit_input(model: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": "hello"}]
    return {"content": content, "attachments": [], "inference_options": {"model": model}}


async def test_choice_is_for_one_answer(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 4)
    await user.runs.say(CHAT, "hello", more=MORE)
    run = id_of(await user.runs.say(CHAT, "again"))
    async with user.runs.edit(CHAT, run, "hi", more=MORE) as events:
        assert [event async for event in events]
    thread = (await user.runs.get_chats())["chats"][0]["id"]
    answer = await user.chatkit.stream(
        "threads.add_user_message",
        thread_id=thread,
        input=chatkit_input("large"),
        metadata={"temperature": 1.25},
    )
    assert answer.text == "Hello."
    assert await used(model) == [CHOSEN, DEFAULT, CHOSEN, CHOSEN]
    shown = (await user.runs.get_chat(CHAT))["interactions"]
    assert [(one["usage"]["model"], one["usage"].get("temperature")) for one in shown] == [CHOSEN] * 3


async def test_choice_is_kept_over_an_approval(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_tasks(11), delete_tasks(*range(1, 12)), says("Fine."))
    run = id_of([event async for event in _until_asked(user)])
    await until(lambda: stored.run_statuses(user.name) == ["waiting"])
    [approval] = (await user.runs.get_interaction(CHAT, run))["approvals"]
    await user.runs.approve(CHAT, run, approval["approval_id"], approved=True)
    await user.runs.read(CHAT, run)
    assert await used(model) == [CHOSEN] * 3


async def _until_asked(user: User) -> AsyncIterator[Any]:
    async with user.runs.interact(CHAT, "go on", more=MORE) as events:
        async for event in events:
            yield event
            if event.name == "approval_required":
                return


async def test_agents_use_the_model_and_their_own_temperature(user: User, model: ScriptedModel) -> None:
    write = calls(call("write_file", path="a.txt", content="x"))
    await model.script(start_coder("write"), write, says("Fine."), says("It is so."))
    await user.runs.say(CHAT, "do it", more=MORE)
    first, *agents, last = await used(model)
    assert first == last == CHOSEN
    assert [name for name, _ in agents] == ["large"] * 2
    assert all(temperature < 0.7 for _, temperature in agents)


@pytest.mark.parametrize(
    "wrong", [{"model": "huge"}, *({"metadata": {"temperature": value}} for value in (1.6, 2.1, -0.1, "1", True, []))]
)
async def test_invalid_choice(wrong: dict[str, Any], user: User, stored: Stored) -> None:
    """The provider's own limit of the temperature is 1.5."""
    response = await user.runs.http.post(f"/chats/{CHAT}/interactions", json={"user_message": "hello", **wrong})
    assert response.status_code == 400
    request = {
        "type": "threads.create",
        "params": {"input": chatkit_input(wrong.get("model", "large"))},
        "metadata": wrong.get("metadata", {}),
    }
    assert (await user.chatkit.http.post("/chatkit", json=request)).status_code == 400
    assert stored.row_counts(user.name) == {}


async def test_offered_models_are_listed(user: User) -> None:
    assert (await user.runs.ready())["model"]["models"] == ["gpt-oss-120b", "large"]
