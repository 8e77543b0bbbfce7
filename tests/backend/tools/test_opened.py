"""A conversation that is opened: tasks as they are now, and the thumbs that were given."""

from typing import Any

import pytest

from backend.tools.tasks.tools import TaskTools
from tests.backend.conftest import Backend, Rows
from tests.backend.widgets import boxes, listed, tick
from tests.chatkit_client import ChatKit


async def shown(chat: ChatKit, thread: str, kind: str) -> dict[str, Any]:
    items = {
        "items.list": lambda: chat.ask("items.list", thread_id=thread, limit=100, order="asc"),
        "threads.get_by_id": lambda: chat.ask("threads.get_by_id", thread_id=thread),
    }
    answer = await items[kind]()
    return [item for item in answer.get("items", answer)["data"] if item["type"] == "widget"][-1]


@pytest.mark.parametrize("kind", ["items.list", "threads.get_by_id"])
async def test_what_changed_in_another_conversation_shows(chat: ChatKit, rows: Rows, kind: str) -> None:
    thread, item = await listed(chat, "milk", "bread", "eggs", "soap")
    _, other = await listed(chat, "rice")
    await tick(chat, other, "milk")
    await chat.say("rename bread to rye bread")
    await chat.say("delete eggs")
    now = await shown(chat, thread, kind)
    assert now["id"] == item["id"]
    assert {title: box["defaultChecked"] for title, box in boxes(now).items()} == {
        "milk": True,
        "rye bread": False,
        "eggs (deleted)": False,
        "soap": False,
    }
    assert now["widget"]["status"] == {"text": "3 tasks, 1 done"}
    assert boxes(now)["soap"] == boxes(item)["soap"]
    [stored] = rows("SELECT item FROM messages WHERE id = %s", item["id"])
    assert stored["item"]["widget"]["status"] == {"text": "4 tasks"}, "nothing is written by reading"
    await tick(chat, now, "rye bread")
    assert boxes(await shown(chat, thread, kind))["rye bread"]["defaultChecked"] is True


async def test_the_tools_are_asked_once_and_only_when_something_can_change(
    chat: ChatKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, _ = await listed(chat, "milk")
    await listed(chat, "bread", "eggs")
    asked = []
    call = TaskTools.call_tool

    async def counted(self: TaskTools, name: str, *rest: Any, **options: Any) -> Any:
        asked.append(name)
        return await call(self, name, *rest, **options)

    monkeypatch.setattr(TaskTools, "call_tool", counted)
    await chat.items(thread)
    assert asked == ["list_tasks"]
    nothing_shown = (await chat.say("hello")).thread_id
    asked.clear()
    await chat.items(nothing_shown)
    assert asked == []


async def test_a_long_list_is_read_as_far_as_it_is_shown(chat: ChatKit, rows: Rows) -> None:
    thread, _ = await listed(chat, "milk")
    for number in range(3):
        await chat.say(f"add task {number}")
    rows("DELETE FROM tasks WHERE title = 'milk'")
    assert list(boxes(await shown(chat, thread, "items.list"))) == ["milk (deleted)"]


async def test_without_the_tools_a_conversation_opens_as_it_was(chat: ChatKit, backend: Backend) -> None:
    thread, item = await listed(chat, "milk", "bread")
    async with backend(mcp_internal_url="http://127.0.0.1:9/mcp", mcp_resend_seconds=0.1) as without_tools:
        assert await shown(without_tools, thread, "items.list") == item


async def test_where_the_tools_refuse_a_conversation_opens_as_it_was(chat: ChatKit, rows: Rows) -> None:
    thread, item = await listed(chat, "milk", "bread")
    rows("ALTER TABLE tasks RENAME TO tasks_away")
    try:
        assert await shown(chat, thread, "items.list") == item
    finally:
        rows("ALTER TABLE tasks_away RENAME TO tasks")


async def test_a_thumb_is_there_after_a_reload_and_can_be_taken_back(chat: ChatKit, rows: Rows) -> None:
    answer = await chat.say("hello")
    thread = answer.thread_id
    [said] = [item for item in answer.items if item["type"] == "assistant_message"]
    assert "feedback" not in said
    await chat.ask("items.feedback", thread_id=thread, item_ids=[said["id"]], kind="positive")
    assert (await chat.items(thread))[-1] == {**said, "feedback": "positive"}
    assert (await chat.ask("threads.get_by_id", thread_id=thread))["items"]["data"][-1]["feedback"] == "positive"
    action = {"type": "take_feedback_back", "payload": {}}
    back = await chat.ask("threads.sync_custom_action", thread_id=thread, item_id=said["id"], action=action)
    assert back == {"updated_item": said}
    assert (await chat.items(thread))[-1] == said
    assert rows("SELECT 1 FROM messages WHERE feedback IS NOT NULL") == []
    refused = await chat.post("threads.sync_custom_action", thread_id=thread, item_id="msg_other", action=action)
    assert refused.status_code == 404
    assert (await chat.say("hello again", thread)).error is None
