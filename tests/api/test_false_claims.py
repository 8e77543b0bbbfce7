"""Answers that claim a change which was not made: none stays unmarked, and no other is touched."""

import json
from typing import Any

import pytest

from tests.claims.turns import ADMITS, Outcome, Turn, create_turns, report
from tests.runs_client import id_of
from tests.scripted_model import ScriptedModel
from tests.support.backends import user_at
from tests.support.model_requests import requests_to
from tests.support.script import add_task, call, calls, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User

# Its mode of tool calls stays, however often the model claims something.
SETTINGS = {"LLM_TOOL_CALLS": "streamed", "APPROVALS": "delete_task"}
CLAIM = "I've added the xylophone for tomorrow."


@pytest.mark.parametrize("count", [20, pytest.param(1_000, marks=pytest.mark.extended)])
async def test_turns_of_ten_habits(
    count: int, services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    outcomes: list[tuple[Turn, Outcome]] = []
    async with user_at(services, user, **SETTINGS) as there:
        await model.script(add_task("first"), says("Fine."))
        await there.runs.say("turns-0", "add first")
        for number, turn in enumerate(create_turns(count)):
            outcomes.append((turn, await take_turn(there, model, stored, f"turns-{number // 10}", turn)))
    counts = report(outcomes)
    print(json.dumps(counts, indent=1))  # noqa: T201 - the figures, with `-s`
    unmarked = [turn for turn, outcome in outcomes if turn.is_false and not outcome.is_marked]
    alarms = [turn for turn, outcome in outcomes if not turn.is_false and outcome.is_marked]
    assert counts["missed in unknown languages"] == len(unmarked), unmarked
    assert counts["false alarms"] <= 0.005 * count, alarms
    assert counts["of these with the number"] == counts["one added and three claimed"]
    assert (counts["actions repeated"], counts["actions missing"]) == (0, 0)


async def take_turn(user: User, model: ScriptedModel, stored: Stored, chat: str, turn: Turn) -> Outcome:
    await model.reset()
    await model.script(*turn.steps)
    was_withdrawn = has_notice = False
    run, named = "", None
    async with user.runs.interact(chat, "Do it, please") as events:
        async for event in events:
            match event.name:
                case "interaction_started":
                    run = event.data["interaction_id"]
                case "approval_required":
                    await user.runs.approve(chat, run, event.data["approval_id"], approved=False)
                case "withdrawn":
                    was_withdrawn = True
                case "notice":
                    has_notice = event.data["code"] == "nothing_changed"
                case "interaction_complete":
                    named = event.data.get("named")
                case _:
                    pass
    return Outcome(was_withdrawn, has_notice, named, stored.titles(user.name).count(turn.title))


async def test_claim_is_nowhere_after_it_was_withdrawn(
    services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    """Neither in a row, nor in what any API returns later, nor in what a model reads of this and the next messages."""
    await model.script(says(CLAIM), says("Nothing was changed."), says("Hello."))
    async with user_at(services, user, **SETTINGS, LLM_PROVIDER="custom", LLM_MODEL="m") as there:
        thread = (await there.runs.begin("A talk"))["id"]
        run = id_of(await there.runs.say(thread, "add the xylo"))
        await there.runs.say(thread, "hello")
        shown = [
            await there.runs.get_chat(thread),
            await there.runs.get_interaction(thread, run),
            await there.runs.get_log(thread),
            await there.chatkit.items(thread),
            [event.data for event in await there.runs.read(thread, run)],
            [stored.rows_of(user.name, table) for table in stored.user_tables()],
        ]
        await model.script(says("Hi."))
        await there.runs.edit_to_its_end(thread, run, "add something else")
        bodies = await requests_to(model)
    for one in shown:
        assert "Nothing was changed" in str(one)
        assert CLAIM not in str(one)
    assert len(bodies) == 4
    assert CLAIM not in str(bodies)


@pytest.mark.parametrize(
    ("tool_calls", "is_marked"),
    [
        ([call("list_tasks")], True),
        ([call("complete_task", task_id=99_999)], True),
        ([call("complete_task", task_id=99_999), call("add_task", title="milk")], False),
    ],
)
async def test_claim_above_calls_is_marked(
    tool_calls: list[Any], is_marked: bool, services: Services, user: User, model: ScriptedModel
) -> None:
    """Its text stays, as the model has gone on from it."""
    await model.script(calls(*tool_calls, text=CLAIM), says("Is there anything else?"))
    async with user_at(services, user, **SETTINGS) as there:
        events = await there.runs.say("talk", "add the xylophone")
    notices = [event.data["code"] for event in events if event.name == "notice"]
    assert notices == ["nothing_changed"] * is_marked


async def test_two_claims_that_were_admitted_make_calls_text(
    services: Services, user: User, model: ScriptedModel, stored: Stored, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that says the same again may have told the truth."""
    async with user_at(services, user, LLM_PROVIDER="custom", LLM_MODEL="m") as there:
        for second in (says(CLAIM), says(CLAIM), ADMITS, ADMITS):
            await model.script(says(CLAIM), second)
            await there.runs.say("first", "add it")
        await model.script(says('{"name": "add_task", "arguments": {"title": "milk"}}'), says("Added."))
        await there.runs.say("second", "add milk")
        bodies = await requests_to(model)
    assert ["tools" in body for body in bodies] == [True] * 8 + [False] * 2
    assert stored.titles(user.name) == ["milk"]
    lines = [record.getMessage() for record in caplog.records if "claimed a change" in record.getMessage()]
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("second", "has_notice"),
    [("I'll add it now.", True), ("Ich trage es gleich ein.", True), ("Nothing was changed.", False)],
)
async def test_second_text_that_only_promises_has_the_notice(
    second: str, has_notice: bool, services: Services, user: User, model: ScriptedModel
) -> None:
    await model.script(says(CLAIM), says(second))
    async with user_at(services, user, **SETTINGS) as there:
        events = await there.runs.say("talk", "add the xylophone")
    notices = [event.data["code"] for event in events if event.name == "notice"]
    assert notices == ["nothing_changed"] * has_notice


async def test_list_that_was_read_may_be_told_beside_a_failure(
    services: Services, user: User, model: ScriptedModel
) -> None:
    """But not as a success."""
    tried = calls(call("list_tasks"), call("complete_task", task_id=99_999))
    honest = "Milk was added on Monday. Task 99999 does not exist, so I could not complete it."
    await model.script(tried, says(honest))
    async with user_at(services, user, **SETTINGS) as there:
        events = await there.runs.say("talk", "complete it and tell me what there is")
        await model.script(tried, says("The task has been completed."), ADMITS)
        others = await there.runs.say("talk", "complete it and tell me what there is")
    assert not any(event.name == "withdrawn" for event in events)
    assert any(event.name == "withdrawn" for event in others)


@pytest.mark.parametrize(
    ("message", "answer", "is_marked"),
    [
        ("did you really add milk?", "Yes, I've added it to your list.", False),
        ("Why did you make it urgent?", "I set it to high priority because you said it's urgent.", False),
        ("Danke!", "Gerne! Ich habe die Milch hinzugefügt.", False),
        ("My neighbour drinks tea.", "Nice. I've added milk with high priority.", False),
        ("My neighbour drinks tea.", "Nice. I've added tea.", True),
        ("can you add milk?", "I've added milk to your list.", True),
        ("could you also add eggs?", "I've added milk and eggs.", True),
        ("Did you add milk? Please add bread.", "Yes, I've added both.", True),
    ],
)
async def test_answer_about_an_earlier_message(
    message: str, answer: str, is_marked: bool, services: Services, user: User, model: ScriptedModel
) -> None:
    """What an earlier run has changed may be told when it is asked for, and is no new change."""
    await model.script(add_task("milk"), says("Okay."), says(answer), says("Nothing was changed."))
    async with user_at(services, user, **SETTINGS) as there:
        await there.runs.say("talk", "add milk")
        events = await there.runs.say("talk", message)
    assert any(event.name == "withdrawn" for event in events) == is_marked


async def test_question_about_a_change_that_no_run_made(services: Services, user: User, model: ScriptedModel) -> None:
    await model.script(says("Yes, I've added it to your list."), says("Nothing was changed."))
    async with user_at(services, user, **SETTINGS) as there:
        events = await there.runs.say("talk", "did you add milk?")
    assert any(event.name == "withdrawn" for event in events)
