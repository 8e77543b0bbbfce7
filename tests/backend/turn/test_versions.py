"""Edits and versions over real sockets: what is shown, what the model is sent, and what is refused."""

import asyncio
from typing import Any

import httpx2
import pytest

from client.chatkit import user_input
from tests.backend.completions import check_pairs
from tests.backend.conftest import Rows
from tests.backend.consent import calls, cards, deleting, open_tasks, with_tasks
from tests.backend.now import without_now
from tests.backend.slow_turns import SLOW, read_text
from tests.backend.widgets import boxes, widgets_of
from tests.chatkit_client import Answer, ChatKit, text_of
from tests.scripted_model import ScriptedModel

ADD_MILK = {"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}
ADD_BREAD = {"tool_calls": [{"name": "add_task", "arguments": {"title": "bread"}}]}


def editing(item_id: Any, text: Any) -> dict[str, Any]:
    return {"action": {"type": "edit_message", "payload": {"item_id": item_id, "text": text}}}


async def edit(chat: ChatKit, thread: str, item_id: str, text: str) -> Answer:
    return await chat.stream("threads.custom_action", thread_id=thread, **editing(item_id, text))


async def retry(chat: ChatKit, thread: str, item_id: str) -> Answer:
    return await chat.stream("threads.retry_after_item", thread_id=thread, item_id=item_id)


async def show(chat: ChatKit, thread: str, run: Any) -> httpx2.Response:
    action = {"type": "show_version", "payload": {"interaction_id": run}}
    return await chat.post("threads.sync_custom_action", thread_id=thread, action=action)


async def texts(chat: ChatKit, thread: str) -> list[str]:
    return [text_of(item) for item in await chat.items(thread) if item["type"].endswith("message")]


async def versions(chat: ChatKit, thread: str) -> list[Any]:
    return [item.get("versions") for item in await chat.items(thread) if item["type"] == "user_message"]


async def last_request(model: ScriptedModel) -> list[dict[str, Any]]:
    messages = (await model.finished_requests())[-1]["body"]["messages"]
    check_pairs(messages)
    return without_now(messages)


async def test_an_edit_answers_the_new_text_in_the_place_of_the_old_one(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "One."}, {"text": "Two."}, {"text": "Other."})
    first = await chat.say("first")
    thread = first.thread_id
    second = await chat.say("second", thread, quoted_text="One.")
    changed = await edit(chat, thread, second.user_item_id, "changed")
    assert changed.error is None
    assert [event["type"] for event in changed.events[:3]] == ["thread.item.done", "thread.updated", "stream_options"]
    assert changed.user_item_id != second.user_item_id
    assert await texts(chat, thread) == ["first", "One.", "changed", "Other."]
    assert (await chat.items(thread))[2]["quoted_text"] == "One."
    messages = await last_request(model)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "changed" in messages[-1]["content"]
    assert "second" not in str(messages)


async def test_versions_are_paged_through_and_each_goes_on_as_it_did(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"})
    first = await chat.say("one")
    thread = first.thread_id
    await chat.say("more", thread)
    assert await versions(chat, thread) == [None, None]
    changed = await edit(chat, thread, first.user_item_id, "two")
    await retry(chat, thread, changed.user_item_id)
    assert await texts(chat, thread) == ["two", "d"]
    [third] = await versions(chat, thread)
    assert (third["number"], third["count"], third.get("next")) == (3, 3, None)

    assert (await show(chat, thread, third["previous"])).json() == {}
    assert await texts(chat, thread) == ["two", "c"]
    [second] = await versions(chat, thread)
    assert (second["number"], second["count"]) == (2, 3)
    await show(chat, thread, second["previous"])
    assert await texts(chat, thread) == ["one", "a", "more", "b"]
    shown, other = await versions(chat, thread)
    assert (shown["number"], shown["count"], shown.get("previous"), other) == (1, 3, None, None)

    await model.script({"text": "e"})
    await chat.say("and on", thread)
    assert [message["content"] for message in (await last_request(model))[1:]] == ["one", "a", "more", "b", "and on"]
    await show(chat, thread, shown["next"])
    await show(chat, thread, third["previous"])
    assert await texts(chat, thread) == ["two", "c"]
    await show(chat, thread, second["previous"])
    assert await texts(chat, thread) == ["one", "a", "more", "b", "and on", "e"]


async def test_the_model_is_told_what_the_version_before_the_edit_has_done(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, {"text": "Done."}, ADD_BREAD, {"text": "Done, too."})
    first = await chat.say("add milk")
    await edit(chat, first.thread_id, first.user_item_id, "add bread")
    assert [row["title"] for row in rows("SELECT title FROM tasks ORDER BY id")] == ["milk", "bread"]
    told = (await last_request(model))[2]["content"]
    assert "changed this message" in told
    assert 'add_task({"title": "milk"})' in told


async def test_the_same_call_of_an_edited_message_is_another_call(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, {"text": "Done."}, ADD_MILK, {"text": "Done, too."})
    first = await chat.say("add milk")
    await edit(chat, first.thread_id, first.user_item_id, "add milk, please")
    assert len(rows("SELECT 1 FROM tasks")) == 2, "only an answer to the same message repeats the same call"


async def test_after_a_switch_the_model_is_told_once_what_other_versions_have_done(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(ADD_MILK, {"text": "Done."}, ADD_BREAD, {"text": "Done, too."}, {"text": "Yes."})
    first = await chat.say("add milk")
    thread = first.thread_id
    await edit(chat, thread, first.user_item_id, "add bread")
    for _ in range(3):
        [version] = await versions(chat, thread)
        await show(chat, thread, version["previous"])
        [version] = await versions(chat, thread)
        await show(chat, thread, version["next"])
    assert len(rows("SELECT 1 FROM messages WHERE item->'content' ? 'elsewhere' AND superseded_by IS NULL")) == 0
    [version] = await versions(chat, thread)
    await show(chat, thread, version["previous"])
    await chat.say("and now?", thread)
    notes = [
        message["content"] for message in await last_request(model) if "another version" in str(message["content"])
    ]
    assert len(notes) == 1
    assert 'add_task({"title": "bread"})' in notes[0]
    assert "milk" not in notes[0]


async def test_what_was_done_by_hand_stays_on_every_version(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    first = await chat.say("add milk and bread")
    thread = first.thread_id
    listed = await chat.say("show my list", thread)
    [widget] = widgets_of(listed)
    box = boxes(widget)["milk"]["onChangeAction"]
    await chat.ask("threads.sync_custom_action", thread_id=thread, item_id=widget["id"], action=box)
    await edit(chat, thread, listed.user_item_id, "what is left?")
    assert "The person ticked task" in str(await last_request(model))
    [_, version] = await versions(chat, thread)
    await show(chat, thread, version["previous"])
    assert len(rows("SELECT 1 FROM messages WHERE kind = 'change' AND superseded_by IS NULL")) == 1


async def test_a_thumb_is_there_again_with_its_version(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "a"}, {"text": "b"})
    first = await chat.say("one")
    thread = first.thread_id
    await chat.ask("items.feedback", thread_id=thread, item_ids=[first.items[-1]["id"]], kind="positive")
    await retry(chat, thread, first.user_item_id)
    [version] = await versions(chat, thread)
    await show(chat, thread, version["previous"])
    assert (await chat.items(thread))[-1]["feedback"] == "positive"


async def test_two_edits_at_once_are_one_and_a_refusal(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    first = await chat.say("one")
    both = await asyncio.gather(
        *(edit(chat, first.thread_id, first.user_item_id, text) for text in ("two", "three")), return_exceptions=True
    )
    refused = [one for one in both if not isinstance(one, Answer) or one.error is not None]
    assert len(refused) == 1, "the other one finds it busy, or its message replaced"
    assert len(rows("SELECT 1 FROM runs")) == 2
    assert len(await texts(chat, first.thread_id)) == 2


async def test_while_an_answer_runs_neither_an_edit_nor_another_version_comes_between(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    first = await chat.say("one")
    thread = first.thread_id
    [run] = [row["id"] for row in rows("SELECT id FROM runs")]
    await model.script(SLOW)
    async with chat.open("threads.add_user_message", thread_id=thread, input=user_input("count")) as events:
        await read_text(events, at_least=4)
        before = rows("SELECT id, superseded_by FROM messages ORDER BY seq")
        busy = await edit(chat, thread, first.user_item_id, "two")
        assert busy.error is not None
        assert "still answering" in busy.error["message"]
        shown = await show(chat, thread, run)
        assert shown.status_code == 409
        assert "still answering" in shown.json()["error"]
        assert rows("SELECT id, superseded_by FROM messages ORDER BY seq") == before


async def test_what_waits_for_consent_is_refused_by_an_edit_and_by_another_version(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    thread = await with_tasks(chat, model, 11)
    added = (await chat.items(thread))[0]["id"]
    await model.script(
        calls(deleting(*range(1, 12))), {"text": "Hello."}, calls(deleting(*range(1, 12))), {"text": "So."}
    )
    asked = await chat.say("delete all", thread)
    assert cards(asked)
    changed = await edit(chat, thread, asked.user_item_id, "hello")
    assert changed.text == "Hello."
    assert "wrote something else instead" in str((await last_request(model))[-1])
    await edit(chat, thread, changed.user_item_id, "delete all")
    [first, _] = rows("SELECT id FROM runs WHERE message_id IN (%s, %s)", added, asked.user_item_id)
    assert rows("SELECT status FROM runs ORDER BY started_at DESC LIMIT 1") == [{"status": "waiting"}]
    assert (await show(chat, thread, first["id"])).status_code == 200, "where it stands already"
    [_, version] = await versions(chat, thread)
    assert (version["number"], version["count"]) == (3, 3)
    await show(chat, thread, version["previous"])
    assert (await texts(chat, thread))[-2:] == ["hello", "Hello."]
    assert rows("SELECT 1 FROM runs WHERE status <> 'ended'") == []
    assert rows("SELECT DISTINCT decision FROM approvals") == [{"decision": "refused"}]
    assert open_tasks(rows) == 11
    await model.script({"text": "Yes."})
    assert (await chat.say("and now?", thread)).error is None
    assert "went to another version" in str(await last_request(model))


@pytest.mark.parametrize(
    ("text", "status"), [("", 400), ("  \u200b ", 400), ("nul \0", 400), (None, 400), (7, 400), ("x" * 8001, 200)]
)
async def test_the_text_of_an_edit_is_held_to_what_a_message_is(
    chat: ChatKit, rows: Rows, text: Any, status: int
) -> None:
    first = await chat.say("one")
    before = rows("SELECT * FROM messages ORDER BY seq")
    response = await chat.post("threads.custom_action", thread_id=first.thread_id, **editing(first.user_item_id, text))
    assert response.status_code == status
    if status == 200:
        assert "8,000 is the most" in response.text
    assert rows("SELECT * FROM messages ORDER BY seq") == before
    assert len(rows("SELECT 1 FROM runs")) == 1


async def test_an_edit_that_names_a_widget_is_held_to_the_same(chat: ChatKit, rows: Rows) -> None:
    """Of an action on no item the id of a widget is passed over."""
    first = await chat.say("add milk")
    [card] = widgets_of(first)
    before = rows("SELECT * FROM messages ORDER BY seq")
    where = {"thread_id": first.thread_id, "item_id": card["id"]}
    response = await chat.post("threads.custom_action", **where, **editing(first.user_item_id, " "))
    assert response.status_code == 400
    assert rows("SELECT * FROM messages ORDER BY seq") == before


async def test_only_ones_own_shown_messages_are_edited(chat: ChatKit, rows: Rows) -> None:
    first = await chat.say("one")
    other = await chat.say("elsewhere")
    await edit(chat, first.thread_id, first.user_item_id, "two")
    before = rows("SELECT * FROM messages ORDER BY seq")
    for item, status in (
        (first.user_item_id, 404),  # replaced already
        (other.user_item_id, 404),  # of another conversation
        (first.items[-1]["id"], 404),
        ((await chat.items(first.thread_id))[-1]["id"], 400),  # not what the person said
        ("msg_0", 404),
        (None, 400),
    ):
        response = await chat.post("threads.custom_action", thread_id=first.thread_id, **editing(item, "x"))
        assert response.status_code == status, response.text
    for run, status in (("run_0", 404), (None, 400), (3, 400), ("nul \0", 400)):
        assert (await show(chat, first.thread_id, run)).status_code == status
    [run] = rows("SELECT id FROM runs WHERE conversation_id = %s", other.thread_id)
    assert (await show(chat, first.thread_id, run["id"])).status_code == 404
    assert rows("SELECT * FROM messages ORDER BY seq") == before


async def test_a_conversation_of_before_is_one_path_and_can_be_edited(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    """What an answer of before had replaced does not come back."""
    await model.script({"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"})
    first = await chat.say("one")
    thread = first.thread_id
    await retry(chat, thread, first.user_item_id)
    await chat.say("more", thread)
    rows(
        "UPDATE runs SET edits_run_id = NULL, kept_seq = NULL, chosen = true, parent_run_id = ("
        "SELECT max(id) FROM runs AS before WHERE before.id < runs.id), message_id = ("
        "SELECT id FROM messages WHERE run_id = runs.id AND kind = 'user_message')"
    )
    assert await versions(chat, thread) == [None, None]
    assert await texts(chat, thread) == ["one", "b", "more", "c"]
    changed = await edit(chat, thread, first.user_item_id, "two")
    assert changed.error is None
    assert await texts(chat, thread) == ["two", "d"]
    [version] = await versions(chat, thread)
    assert (version["number"], version["count"]) == (2, 2)
    await show(chat, thread, version["previous"])
    assert await texts(chat, thread) == ["one", "b", "more", "c"]
    await show(chat, thread, version["previous"])
    assert await texts(chat, thread) == ["one", "b", "more", "c"]
