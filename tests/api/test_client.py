"""The client that programs use: each of its operations at a running backend."""

import re
from typing import Any

import pytest

from tests.chatkit_client import Answer, ChatKit, check_sequence
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, call, calls, says
from tests.support.users import User
from todo_client.chatkit import Events, user_input

LISTS = calls(call("list_tasks"))


@pytest.fixture
def chat(user: User) -> ChatKit:
    return user.chatkit


async def whole(events: Events, *, created: bool = False) -> Answer:
    async with events as told:
        answer = Answer([event async for event in told])
    check_sequence(answer.events, created=created)
    return answer


def ids(items: list[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in items]


async def test_conversation(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(add_task("milk"), says("Done."), *[LISTS, says("One task.")] * 2)
    created = await whole(chat.create_thread("add milk"), created=True)
    thread = created.thread_id
    asked = await whole(chat.add_user_message(thread, "what is on my list?"))
    assert asked.listed == ["[ ] milk"]
    again = await whole(chat.retry_after_item(thread, asked.user_item_id))
    assert again.listed == ["[ ] milk"]
    first = await chat.list_items(thread, limit=1, order="asc")
    assert (ids(first.data), first.has_more) == ([created.user_item_id], True)
    rest = await chat.list_items(thread, limit=100, order="asc", after=first.after)
    assert not rest.has_more
    newest = (await chat.get_thread(thread))["items"]["data"]
    assert ids(newest) == ids(first.data + rest.data)
    assert newest[-1] == again.items[-1]


async def test_actions(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(add_task("milk", also=["bread"]), says("Done."), LISTS, says("Two tasks."))
    await chat.say("add milk and bread")
    shown = await chat.say("what is on my list?")
    item = shown.items[-1]
    ticks = [{"type": "complete_task", "payload": {"task_id": task_id}} for task_id in (1, 2)]
    ticked = await whole(chat.custom_action(shown.thread_id, item["id"], ticks[0]))
    (redrawn,) = [event["item"] for event in ticked.of("thread.item.replaced")]
    assert redrawn["copy_text"].splitlines() == ["- [x] milk", "- [ ] bread"]
    again = await chat.sync_custom_action(shown.thread_id, item["id"], ticks[1])
    assert again
    assert again["copy_text"].splitlines() == ["- [x] milk", "- [x] bread"]


async def test_each_event_is_one_line(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(says("Hello \u2028 you."))
    response = await chat.post("threads.create", input=user_input("add \u2028 milk"))
    assert re.fullmatch(rb"(data: \{[^\r\n]+\}\n\n){5,}", response.content)
