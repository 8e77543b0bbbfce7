"""Which calls wait for approval and what becomes of them, also after a restart. For another process: event streams."""

import asyncio
import itertools
import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.chatkit_client import Answer
from tests.scripted_model import ScriptedModel
from tests.support.approvals import (
    APIS,
    PendingApproval,
    decide_card,
    list_open_cards,
    talk_with_tasks,
    wait_for_approval,
)
from tests.support.backends import user_at
from tests.support.completions import check_pairs
from tests.support.fixtures import NewUser
from tests.support.model_requests import requests_to
from tests.support.script import PAUSING, add_task, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Services, Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.connection import ApiError

DECISIONS = ("approve", "reject", "new_message", "stop")
STATUS = {"approve": "completed", "reject": "completed", "new_message": "cancelled", "stop": "cancelled"}


on_approvals = pytest.mark.parametrize("stack_name", ["approvals"])


@dataclass(frozen=True)
class Case:
    api: str
    decision: str
    agent: str

    @property
    def name(self) -> str:
        return f"{self.api}-{self.decision}-{self.agent}"

    @property
    def steps(self) -> Sequence[dict[str, object]]:
        """What the model does for a message or an assignment that names the case."""
        if self.agent == "assistant":
            steps = [add_task("milk"), delete_tasks(1), says("Over.")]
        else:
            command = calls(call("run_command", command="echo made > made.txt"))
            steps = [start_coder(f"work on {self.name}"), command, says("The file is made."), says("Over.")]
        return [{**step, "when": self.name} for step in steps]


CASES = [
    Case(api, decision, agent)
    for api, decision, agent in itertools.product(APIS, DECISIONS, ("assistant", "coder"))
    if api == "run_api" or (agent == "assistant" and decision != "stop")  # the other APIs have no stop of their own
]


async def start(case: Case, user: User, model: ScriptedModel) -> PendingApproval:
    await model.script(*case.steps)
    chat = await APIS[case.api].say(user, None, f"go on with {case.name}")
    waiting = await wait_for_approval(user, chat)
    if case.agent == "coder":  # that the coder may start was asked first
        await APIS["run_api"].decide(user, waiting, approved=True, reason=None)
        first = waiting.approval
        async with user.runs.events(chat, waiting.run) as events:
            async for event in events:
                if event.name == "approval_required" and event.data["approval_id"] != first:
                    break
        waiting = await wait_for_approval(user, chat)
    return waiting


async def decide(case: Case, user: User, model: ScriptedModel, waiting: PendingApproval) -> None:
    api = APIS[case.api]
    match case.decision:
        case "approve":
            await api.decide(user, waiting, approved=True, reason=None)
        case "reject":
            await api.decide(user, waiting, approved=False, reason="Not now.")
        case "stop":
            await user.runs.cancel(waiting.chat, waiting.run)
        case _:
            await model.script({"when": "leave it", **says("As you like.")})
            await api.say(user, waiting.chat, "leave it")


async def check(case: Case, user: User, stored: Stored, waiting: PendingApproval) -> None:
    """The outcome of the run, and whether the call was made, once or not at all."""
    status = STATUS[case.decision]
    await until(lambda: [run.status for run in stored.runs(user.name) if run.id == waiting.run] == [status])
    made = case.decision == "approve"
    if case.agent == "assistant":
        assert stored.titles(user.name) == ([] if made else ["milk"])
        assert [operation for operation, _ in stored.task_calls(user.name)] == ["add", *(["delete"] if made else [])]
    else:
        files = await user.runs.files(waiting.chat)
        assert [file["path"] for file in files["files"]] == (["made.txt"] if made else [])
    assert stored.pending_approvals(user.name) == 0
    with pytest.raises(ApiError) as refused:
        await user.runs.approve(waiting.chat, waiting.run, waiting.approval, approved=not made)
    assert refused.value.status in (400, 409), "it is decided once"


@on_approvals
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_decided(case: Case, user: User, model: ScriptedModel, stored: Stored) -> None:
    waiting = await start(case, user, model)
    await decide(case, user, model, waiting)
    await check(case, user, stored, waiting)


@on_approvals
@pytest.mark.long(seconds=15)
async def test_decided_after_a_restart(stack: Stack, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    """All cases wait when the process that asked is killed."""
    users = {case: new_user() for case in CASES}
    waiting = {case: await start(case, user, model) for case, user in users.items()}
    stack.backends[0].end(signal.SIGKILL)
    stack.ensure_running()

    async def finish(case: Case) -> None:
        await decide(case, users[case], model, waiting[case])
        await check(case, users[case], stored, waiting[case])

    results = await asyncio.gather(*(finish(case) for case in CASES), return_exceptions=True)
    assert {case.name: result for case, result in zip(CASES, results, strict=True) if result} == {}


TWELVE = range(1, 13)
DELETE_TWELVE = delete_tasks(*TWELVE)


def deleting(*numbers: int) -> dict[str, Any]:
    return delete_tasks(*numbers)["tool_calls"][0]


def cards(answer: Answer) -> list[dict[str, Any]]:
    return list_open_cards(answer.items)


async def test_calls_of_an_answer_are_counted_together(user: User, model: ScriptedModel, stored: Stored) -> None:
    thread = await talk_with_tasks(user, model, 13)
    one_by_one = calls(deleting(*range(1, 7)), deleting(7, 8, 9, 10), deleting(11))
    await model.script(one_by_one, delete_tasks(12), says("Fine."))
    [first] = cards(await user.chatkit.say("delete them", thread))
    assert len(stored.titles(user.name)) == 3, "ten are deleted"
    [second] = cards(await decide_card(user, first, approve=True))
    assert len(stored.titles(user.name)) == 2
    assert (await decide_card(user, second, approve=True)).text == "Fine."
    assert stored.titles(user.name) == ["task number 13"]


async def test_rejected_calls_do_not_count(user: User, model: ScriptedModel, stored: Stored) -> None:
    thread = await talk_with_tasks(user, model, 12)
    await model.script(DELETE_TWELVE, delete_tasks(1, 2), says("Two are gone."))
    [card] = cards(await user.chatkit.say("delete them", thread))
    rest = await decide_card(user, card, approve=False, reason="only the first two")
    assert (cards(rest), rest.text) == ([], "Two are gone.")
    assert len(stored.titles(user.name)) == 10


async def test_numbers_written_as_text_count(user: User, model: ScriptedModel, stored: Stored) -> None:
    thread = await talk_with_tasks(user, model, 12)
    await model.script(calls(call("delete_task", task_id="1", also=json.dumps([*TWELVE][1:]))), says("Fine."))
    [card] = cards(await user.chatkit.say("delete all", thread))
    assert len(stored.titles(user.name)) == 12
    await decide_card(user, card, approve=True)
    assert stored.titles(user.name) == []


@pytest.mark.parametrize("undo", [True, "true", False])
async def test_undo_needs_no_approval(
    undo: object, services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    """Not even where every call needs one."""
    thread = await talk_with_tasks(user, model, 12)
    arguments = {"undo": undo} if undo else {"undo": undo, "title": "x"}
    await model.script(calls(call("update_task", task_id=1, also=[*TWELVE][1:], **arguments)), says("Undone."))
    async with user_at(services, user, APPROVALS="always") as there:
        asked = cards(await there.chatkit.say("undo that", thread))
    assert bool(asked) is not bool(undo)
    assert len(stored.titles(user.name)) == (0 if undo else 12)


@pytest.mark.parametrize("arguments", ["", "{no json", "[1]"])
async def test_invalid_arguments_are_answered_to_the_model(
    arguments: str, user: User, model: ScriptedModel, stored: Stored
) -> None:
    broken = {"name": "delete_task", "arguments": arguments}
    await model.script(calls(broken, call("add_task", title="milk")), says("I could not."))
    answer = await user.chatkit.say("delete it")
    assert (cards(answer), answer.text) == ([], "I could not.")
    messages = (await requests_to(model))[-1]["messages"]
    check_pairs(messages)
    assert len([message for message in messages if message["role"] == "tool"]) == 2
    assert stored.titles(user.name) == ["milk"]


@on_approvals
async def test_other_calls_run_first_and_approved_ones_in_their_order(
    user: User, model: ScriptedModel, stored: Stored
) -> None:
    thread = await talk_with_tasks(user, model, 3)
    wanted = (deleting(3), call("add_task", title="a"), deleting(1), call("add_task", title="b"), deleting(2))
    await model.script(calls(*wanted), says("Fine."))
    third, first, second = cards(await user.chatkit.say("go", thread))
    assert stored.titles(user.name)[3:] == ["a", "b"]
    for card, approve in ((second, True), (first, False)):
        events = (await decide_card(user, card, approve=approve)).events
        assert [event["type"] for event in events] == ["thread.item.replaced"]
        assert len(stored.titles(user.name)) == 5
    assert (await decide_card(user, third, approve=True)).text == "Fine."
    assert stored.titles(user.name) == ["task number 1", "a", "b"]
    messages = (await requests_to(model))[-1]["messages"]
    check_pairs(messages)
    deleted = [text for text in (message["content"] for message in messages[-5:]) if "task number" in text]
    assert [text.count("task number 3") for text in deleted][:1] == [1], "in the order in which the model wrote them"


@on_approvals
async def test_same_call_after_the_approval_is_another_call(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Its idempotency key counts the calls before, which another process has made."""
    thread = await talk_with_tasks(user, model, 1)
    knock = call("add_task", title="knock")
    await model.script(calls(knock, deleting(1)), calls(knock), says("Fine."))
    [card] = cards(await user.chatkit.say("go", thread))
    assert (await decide_card(new_user(user.name, backend=1), card, approve=True)).text == "Fine."
    assert stored.titles(user.name) == ["knock", "knock"]


async def test_retry_rejects_what_waits_and_asks_again(user: User, model: ScriptedModel, stored: Stored) -> None:
    thread = await talk_with_tasks(user, model, 12)
    await model.script(DELETE_TWELVE, DELETE_TWELVE, says("Fine."))
    asking = await user.chatkit.say("delete all", thread)
    [card] = cards(asking)
    again = await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=asking.user_item_id)
    [second] = cards(again)
    assert second["id"] != card["id"]
    gone = await user.chatkit.post(
        "threads.custom_action", thread_id=thread, item_id=card["id"], action=card["widget"]["confirm"]["action"]
    )
    assert gone.status_code == 404
    assert (await decide_card(user, second, approve=True)).text == "Fine."
    assert stored.titles(user.name) == []


async def test_nothing_that_a_client_sends_changes_the_call(user: User, model: ScriptedModel, stored: Stored) -> None:
    thread = await talk_with_tasks(user, model, 12)
    await model.script(DELETE_TWELVE, add_task("milk"), says("Added."), says("Fine."))
    [card] = cards(await user.chatkit.say("delete all", thread))
    other = next(item for item in (await user.chatkit.say("add milk")).items if item["type"] == "widget")
    action = card["widget"]["confirm"]["action"]
    for where, payload, status in (
        (other, action["payload"], 404),
        (card, None, 400),
        (card, {}, 400),
        (card, {"approval_id": 1}, 400),
        (card, {"approval_id": "apr_0", "reason": "x" * 1001}, 400),
        (card, {"approval_id": "apr_0"}, 404),
    ):
        sent = {"type": action["type"], "payload": payload}
        where_params = {"thread_id": where["thread_id"], "item_id": where["id"]}
        response = await user.chatkit.post("threads.custom_action", **where_params, action=sent)
        assert response.status_code == status, payload
    forged = {**action, "payload": {**action["payload"], "arguments": '{"task_id": 13}', "name": "complete_task"}}
    await user.chatkit.stream("threads.custom_action", thread_id=thread, item_id=card["id"], action=forged)
    assert stored.titles(user.name) == ["milk"]


@pytest.mark.parametrize("stack_name", ["limits"])
async def test_waiting_run_at_the_limit_of_running_answers(user: User, model: ScriptedModel, stored: Stored) -> None:
    """It does not count; it goes on when there is room again."""
    thread = await talk_with_tasks(user, model, 12)
    await model.script(DELETE_TWELVE, PAUSING, says("Fine."))
    [card] = cards(await user.chatkit.say("delete all", thread))
    async with user.runs.interact("another", "count") as events:
        await anext(events)
        limited = await decide_card(user, card, approve=True)
        assert limited.error is not None
        assert stored.pending_approvals(user.name) == 1
        await model.release()
        async for _ in events:
            pass
    assert (await decide_card(user, card, approve=True)).text == "Fine."
    assert stored.titles(user.name) == []
