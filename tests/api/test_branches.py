"""Edited and retried messages: alternatives side by side, one active path, and what the model reads of it."""

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from tests.chatkit_client import Answer
from tests.runs_client import Runs, id_of, text_of
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, find_thread, list_texts, list_user_items, start_run
from tests.support.cards import list_widgets, tick
from tests.support.completions import check_pairs
from tests.support.fixtures import NewUser
from tests.support.model_requests import requests_to
from tests.support.script import add_task, add_tasks, call, calls, delete_tasks, says
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.connection import ApiError

CHAT = "groceries"
ADD_MILK, ADD_BREAD = add_task("milk"), add_task("bread")


def edit_action(item_id: Any, text: Any) -> dict[str, Any]:
    return {"type": "edit_message", "payload": {"item_id": item_id, "text": text}}


async def edit(user: User, thread: str, item_id: str, text: str) -> Answer:
    return await user.chatkit.stream("threads.custom_action", thread_id=thread, action=edit_action(item_id, text))


async def retry(user: User, thread: str, item_id: str) -> Answer:
    return await user.chatkit.stream("threads.retry_after_item", thread_id=thread, item_id=item_id)


async def show(user: User, thread: str, run: Any) -> httpx2.Response:
    action = {"type": "show_version", "payload": {"interaction_id": run}}
    return await user.chatkit.post("threads.sync_custom_action", thread_id=thread, action=action)


async def versions(user: User, thread: str) -> list[Any]:
    return [item.get("versions") for item in await list_user_items(user, thread)]


async def shown_runs(runs: Runs) -> list[str]:
    return [one["id"] for one in (await runs.get_chat(CHAT))["interactions"]]


async def last_texts(model: ScriptedModel) -> list[str]:
    """What the newest request holds of users and assistant, without hidden context."""
    messages = (await requests_to(model))[-1]["messages"]
    check_pairs(messages)
    return [one["content"] for one in messages[1:] if one["role"] != "tool" and "<Hidden" not in one["content"]]


async def test_edit_in_chatkit(user: User, model: ScriptedModel) -> None:
    await model.script(says("One."), says("Two."), says("Other."))
    first = await user.chatkit.say("first")
    thread = first.thread_id
    second = await user.chatkit.say("second", thread, quoted_text="One.")
    edited = await edit(user, thread, second.user_item_id, "changed")
    assert edited.error is None
    assert edited.user_item_id != second.user_item_id
    assert await list_texts(user, thread) == ["first", "One.", "changed", "Other."]
    assert (await list_user_items(user, thread))[1]["quoted_text"] == "One.", "the quote stays"
    assert await last_texts(model) == ["first", "One.", "> One.\n\nchanged"]


async def test_model_state_is_that_of_the_path(user: User, model: ScriptedModel) -> None:
    """`final_agent_state` of a run does not change when another one becomes active, and is what is sent next."""
    runs = user.runs
    await model.script(ADD_MILK, says("Milk."), ADD_BREAD, says("Bread."), says("Butter."), says("Again."), says("So."))
    first, second = id_of(await runs.say(CHAT, "add milk")), id_of(await runs.say(CHAT, "add bread"))
    before = {run: await runs.get_interaction(CHAT, run) for run in (first, second)}
    edited = id_of(await runs.edit_to_its_end(CHAT, second, "add butter"))
    thread = await find_thread(user, CHAT)
    await retry(user, thread, (await list_user_items(user, thread))[-1]["id"])
    for run, stored in before.items():
        now = await runs.get_interaction(CHAT, run)
        assert (now["final_agent_state"], now["agent_events"]) == (stored["final_agent_state"], stored["agent_events"])
    last = (await runs.get_chat(CHAT))["interactions"][-1]
    assert last["siblings"][:2] == [second, edited]
    await runs.say(CHAT, "show all")
    state = last["final_agent_state"]["messages"]
    assert (await requests_to(model))[-1]["messages"][1:-2] == state
    assert "add butter" in str(state)
    assert "Bread." not in str(state)


@pytest.mark.parametrize("script", ["same call", "other JSON", "call made twice"])
async def test_retry_adds_no_task_twice(script: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    first, again, titles = {
        "same call": (ADD_MILK, ADD_MILK, ["milk"]),
        "other JSON": (
            calls({"name": "add_task", "arguments": '{"title": "milk", "description": "two"}'}),
            calls({"name": "add_task", "arguments": '{ "description":"two","title":"milk" }'}),
            ["milk"],
        ),
        "call made twice": (*[calls(*ADD_MILK["tool_calls"] * 2)] * 2, ["milk", "milk"]),
    }[script]
    await model.script(first, says("a"), again, says("b"), again, says("c"))
    answer = await user.chatkit.say("add milk")
    for text in ("b", "c"):
        assert (await retry(user, answer.thread_id, answer.user_item_id)).text == text
        assert stored.titles(user.name) == titles
    items = await user.chatkit.items(answer.thread_id)
    assert items[0]["id"] == answer.user_item_id
    assert {item["id"] for item in items[1:]}.isdisjoint(item["id"] for item in answer.items)


async def test_same_call_for_an_edited_message_is_another_call(
    user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(ADD_MILK, says("Fine."), ADD_MILK, says("Fine, too."))
    first = await user.chatkit.say("add milk")
    await edit(user, first.thread_id, first.user_item_id, "add milk, please")
    assert stored.titles(user.name) == ["milk", "milk"]


async def test_third_attempt_is_told_once_what_the_first_did(user: User, model: ScriptedModel) -> None:
    await model.script(ADD_MILK, says("Added."), {"status": 401}, says("Added."))
    first = await user.chatkit.say("add milk")
    assert (await retry(user, first.thread_id, first.user_item_id)).error is not None
    assert (await retry(user, first.thread_id, first.user_item_id)).error is None
    assert str((await requests_to(model))[-1]["messages"]).count("add_task(") == 1


async def test_model_is_told_once_what_other_versions_did(user: User, model: ScriptedModel) -> None:
    await model.script(ADD_MILK, says("Fine."), ADD_BREAD, says("Fine, too."), says("Yes."))
    first = await user.chatkit.say("add milk")
    thread = first.thread_id
    await edit(user, thread, first.user_item_id, "add bread")
    for direction in ("previous", "next", "previous", "next", "previous"):
        [version] = await versions(user, thread)
        await show(user, thread, version[direction])
    await user.chatkit.say("and now?", thread)
    notes = [one["content"] for one in (await requests_to(model))[-1]["messages"] if "<Hidden" in str(one["content"])]
    [note] = [note for note in notes if "add_task" in note]
    assert '"bread"' in note
    assert "milk" not in note


async def test_change_by_hand_stays_on_every_version(user: User, model: ScriptedModel) -> None:
    both = add_task("milk", also=["bread"])
    await model.script(both, calls(call("list_tasks")), says("Both."), says("Hm."), says("One left."), says("Yes."))
    first = await user.chatkit.say("add milk and bread, and list")
    thread = first.thread_id
    second = await user.chatkit.say("hm", thread)
    await tick(user.chatkit, list_widgets(first)[-1], "milk")
    await edit(user, thread, second.user_item_id, "what is left?")
    assert "ticked task" in str((await requests_to(model))[-1])
    [_, version] = await versions(user, thread)
    await show(user, thread, version["previous"])
    await user.chatkit.say("and now?", thread)
    assert str((await requests_to(model))[-1]).count("ticked task") == 1


async def test_feedback_comes_back_with_its_version(user: User, model: ScriptedModel) -> None:
    await model.script(says("a"), says("b"))
    first = await user.chatkit.say("one")
    thread = first.thread_id
    await user.chatkit.feedback(thread, [first.items[-1]["id"]], "positive")
    await retry(user, thread, first.user_item_id)
    assert (await user.chatkit.items(thread))[-1].get("feedback") is None
    [version] = await versions(user, thread)
    await show(user, thread, version["previous"])
    assert (await user.chatkit.items(thread))[-1]["feedback"] == "positive"


async def test_two_edits_at_once_are_one_and_a_rejection(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(*[says("Yes.")] * 3)
    first = await user.chatkit.say("one")
    both = await asyncio.gather(
        *(edit(user, first.thread_id, first.user_item_id, text) for text in ("two", "three")), return_exceptions=True
    )
    rejected = [one for one in both if not isinstance(one, Answer) or one.error is not None]
    assert len(rejected) == 1, "the other one finds the chat busy, or its message replaced"
    assert len(stored.runs(user.name)) == 2
    assert len(await list_texts(user, first.thread_id)) == 2


async def test_nothing_changes_while_an_answer_runs(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."), HANGS)
    first = id_of(await user.runs.say(CHAT, "one"))
    running = await start_run(user, CHAT, "count", until="answer_delta")
    thread = await find_thread(user, CHAT)
    item = (await list_user_items(user, thread))[0]["id"]
    for rejected in (user.runs.branch(CHAT, first), user.runs.edit_to_its_end(CHAT, first, "x")):
        with pytest.raises(ApiError) as refused:
            await rejected
        assert refused.value.status == 409
    assert (await show(user, thread, first)).status_code == 409
    assert (await edit(user, thread, item, "x")).error is not None
    assert (await retry(user, thread, item)).error is not None
    assert len(stored.runs(user.name)) == 2
    await user.runs.cancel(CHAT, running)


@pytest.mark.parametrize("by", ["edit", "version"])
async def test_pending_approval_is_rejected(by: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    delete = delete_tasks(*range(1, 12))
    await model.script(add_tasks(11), says("Added."), says("Yes."), delete, says("So."))
    thread = (await user.chatkit.say("add them")).thread_id
    first = await user.chatkit.say("hm", thread)
    asked = await edit(user, thread, first.user_item_id, "delete all")
    assert stored.pending_approvals(user.name) == 1
    if by == "edit":
        await edit(user, thread, asked.user_item_id, "leave them")
        assert (await list_texts(user, thread))[-2:] == ["leave them", "So."]
    else:
        [_, version] = await versions(user, thread)
        await show(user, thread, version["previous"])
        assert (await list_texts(user, thread))[-2:] == ["hm", "Yes."]
    assert stored.pending_approvals(user.name) == 0
    assert "waiting" not in stored.run_statuses(user.name)
    assert len(stored.titles(user.name)) == 11


async def test_invalid_text(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."))
    run = id_of(await user.runs.say(CHAT, "one"))
    thread = await find_thread(user, CHAT)
    item = (await list_user_items(user, thread))[0]["id"]
    for text in ("", "  \u200b ", "nul \0", None, 7, "x" * 8_001):
        response = await user.chatkit.post("threads.custom_action", thread_id=thread, action=edit_action(item, text))
        assert response.status_code == 400 or [json.loads(response.text.removeprefix("data: "))["type"]] == ["error"]
        response = await user.runs.http.post(f"/chats/{CHAT}/interactions/{run}/edit", json={"new_user_message": text})
        assert response.status_code in (400, 413)
    assert len(stored.runs(user.name)) == 1


async def test_only_shown_messages_of_the_user_are_edited(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(*[says("Yes.")] * 3)
    replaced = id_of(await user.runs.say(CHAT, "one"))
    thread = await find_thread(user, CHAT)
    item = (await list_user_items(user, thread))[0]["id"]
    other = await user.chatkit.say("elsewhere")
    await user.runs.edit_to_its_end(CHAT, replaced, "two")
    answer = (await user.chatkit.items(thread))[-1]["id"]
    before = len(stored.runs(user.name))
    for one, status in ((item, 404), (other.user_item_id, 404), (answer, 400), ("msg_0", 404), (None, 400)):
        response = await user.chatkit.post("threads.custom_action", thread_id=thread, action=edit_action(one, "x"))
        assert response.status_code == status, response.text
    [foreign] = [run.id for run in stored.runs(user.name) if run.conversation_id == other.thread_id]
    for run, status in (("run_0", 404), (foreign, 404), (None, 400), (3, 400), ("nul \0", 400)):
        assert (await show(user, thread, run)).status_code == status
    for chat, run in ((CHAT, "run_0"), (CHAT, foreign), ("another", None)):
        with pytest.raises(ApiError) as refused:
            await user.runs.branch(chat, run)
        assert refused.value.status == 404
    with pytest.raises(ApiError) as refused:
        await user.runs.edit_to_its_end(CHAT, replaced, "x")
    assert refused.value.status == 409, "another version is shown"
    stranger = new_user()
    shown = (await list_user_items(user, thread))[0]["id"]
    response = await stranger.chatkit.post("threads.custom_action", thread_id=thread, action=edit_action(shown, "x"))
    assert response.status_code == 404
    assert len(stored.runs(user.name)) == before


@dataclass
class Tree:
    """The runs of a chat as they are meant to be: each run's predecessor, its text, and the active path."""

    parents: dict[str, str | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    head: str | None = None
    chosen: dict[str | None, str] = field(default_factory=dict)

    def add(self, run: str, parent: str | None, text: str) -> None:
        self.parents[run], self.texts[run] = parent, text
        self.head = self.chosen[parent] = run

    @property
    def path(self) -> list[str]:
        path: list[str] = []
        run = self.head
        while run is not None:
            path.insert(0, run)
            run = self.parents[run]
        return path

    def show(self, run: str | None, *, to_its_end: bool) -> None:
        while to_its_end and run in self.chosen:
            run = self.chosen[run]
        if run != self.head:
            self.head = run
            for one in self.path:
                self.chosen[self.parents[one]] = one
            self.chosen.pop(run, None)

    def siblings(self, run: str) -> list[str]:
        return [one for one in self.parents if self.parents[one] == self.parents[run]]


@pytest.mark.long(seconds=8)
@pytest.mark.parametrize("seed", range(2))
async def test_random_steps_keep_one_path(seed: int, user: User, model: ScriptedModel) -> None:
    """What is shown and what the model reads is the active path, whatever was said, edited, retried and shown."""
    chance, tree, runs = random.Random(seed), Tree(), user.runs
    await model.script(says("Yes."))
    tree.add(id_of(await runs.say(CHAT, "said 0")), None, "said 0")
    thread = await find_thread(user, CHAT)
    for number in range(1, 30):
        text, run = f"said {number}", chance.choice(tree.path) if tree.path else None
        await model.script(says("Yes."))
        match chance.choice(["say", "edit", "retry", "version", "branch"]):
            case "edit" if run:
                parent = tree.parents[run]
                tree.add(id_of(await runs.edit_to_its_end(CHAT, run, text)), parent, text)
            case "retry" if run:
                item = (await list_user_items(user, thread))[tree.path.index(run)]["id"]
                parent, text = tree.parents[run], tree.texts[run]
                assert (await retry(user, thread, item)).error is None
                tree.add((await shown_runs(runs))[-1], parent, text)
            case "version":
                run = chance.choice(list(tree.parents))
                assert (await show(user, thread, run)).status_code == 200
                tree.show(run, to_its_end=True)
            case "branch":
                run = chance.choice([None, *tree.parents])
                await runs.branch(CHAT, run)
                tree.show(run, to_its_end=False)
            case _:
                parent = tree.head
                events = await runs.say(CHAT, text)
                assert text_of(events) == "Yes."
                tree.add(id_of(events), parent, text)
                said = [one for one in await last_texts(model) if one != "Yes."]
                assert said == [tree.texts[one] for one in tree.path]
        await model.reset()
        shown = (await runs.get_chat(CHAT, limit=100))["interactions"]
        assert [one["id"] for one in shown] == tree.path
        assert [one["siblings"] for one in shown] == [tree.siblings(run) for run in tree.path]
        expected = [text for run in tree.path for text in (tree.texts[run], "Yes.")]
        assert await list_texts(user, thread) == expected
