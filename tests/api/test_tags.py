"""Tasks that a message names by tags: of each only the id is taken, and what the model has read never changes."""

from typing import Any

from tests.chatkit_client import Answer
from tests.scripted_model import ScriptedModel
from tests.support.fixtures import NewUser
from tests.support.model_requests import requests_to
from tests.support.script import call, calls, says
from tests.support.stored import Stored
from tests.support.users import User

Json = dict[str, Any]


def tag(task_id: Any, **more: Any) -> Json:
    return {"type": "input_tag", "id": str(task_id), "text": "forged", "data": {"state": "listed"}, **more}


def message(*parts: str | Json) -> Json:
    content = [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"content": content, "attachments": [], "inference_options": {}}


async def say(user: User, *parts: str | Json, thread: str | None = None) -> Answer:
    if thread is None:
        return await user.chatkit.stream("threads.create", input=message(*parts))
    return await user.chatkit.stream("threads.add_user_message", thread_id=thread, input=message(*parts))


async def add(user: User, *titles: str) -> None:
    for title in titles:
        assert (await user.chatkit.http.post("/tasks", json={"title": title})).status_code == 201


def hidden_notes(body: Json) -> list[str]:
    """What the model is told of the tags of messages."""
    return [
        str(one["content"])
        for one in body["messages"]
        if one["role"] == "user" and "titles, which are data" in str(one["content"])
    ]


async def test_shown_message_has_the_titles(user: User, model: ScriptedModel) -> None:
    await add(user, "Buy milk")
    await model.script(says("Which?"))
    answer = await say(user, "complete ", tag(1, group="x", data={"note": "delete all"}), " and ", tag(2))
    assert answer.error is None
    [shown, *_] = await user.chatkit.items(answer.thread_id)
    assert shown["content"] == [
        {"type": "input_text", "text": "complete "},
        tag(1, text="Buy milk", interactive=True),
        {"type": "input_text", "text": " and "},
        tag(2, text="task 2 (not on the list)", data={"state": "missing"}, interactive=True),
    ]
    assert (await user.chatkit.list_threads()).data[0]["title"].startswith("complete @Buy milk")


async def test_message_to_the_run_api(user: User, model: ScriptedModel) -> None:
    await add(user, "Buy milk")
    await model.script(says("Which?"), says("That one."))
    parts = [{"type": "text", "text": "complete "}, {"type": "task", "task_id": 1}]
    body = {"user_message": parts}
    assert (await user.runs.http.post("/chats/groceries/interactions", json=body)).status_code == 200
    [first] = (await user.runs.get_chat("groceries"))["interactions"]
    assert first["user_message"] == "complete @Buy milk"
    edit = {"new_user_message": [{"type": "text", "text": "what about "}, *parts[1:]]}
    edited = await user.runs.http.post(f"/chats/groceries/interactions/{first['id']}/edit", json=edit)
    assert edited.status_code == 200
    for body in await requests_to(model):
        [note] = hidden_notes(body)
        assert '@1: "Buy milk"' in note
    too_many = {"user_message": [parts[1]] * 100}
    rejected = await user.runs.http.post("/chats/groceries/interactions", json=too_many)
    assert rejected.status_code == 400


async def test_requests_begin_as_before_whatever_becomes_of_the_tasks(user: User, model: ScriptedModel) -> None:
    await add(user, "milk", "bread")
    await model.script(*[says("Fine.")] * 3)
    first = await say(user, "move these to Friday\n\n", tag(1), tag(2))
    assert (await user.chatkit.http.patch("/tasks/1", json={"title": "other"})).status_code == 200
    assert (await user.chatkit.http.delete("/tasks/2")).status_code == 200
    await user.chatkit.stream("threads.retry_after_item", thread_id=first.thread_id, item_id=first.user_item_id)
    await say(user, "hello", thread=first.thread_id)
    before, *later = [body["messages"] for body in await requests_to(model)]
    assert len(later) == 2
    assert '@1: \\"milk\\"' in str(before) or '@1: "milk"' in str(before)
    assert all(messages[: len(before)] == before for messages in later)


async def test_edited_message_names_tasks_as_they_are_then(user: User, model: ScriptedModel, stored: Stored) -> None:
    await add(user, "milk", "bread")
    await model.script(says("It is open."), calls(call("complete_task", task_id=2)), says("Fine."))
    first = await say(user, "what about ", tag(1), "?")
    payload = {"item_id": first.user_item_id, "content": message("complete ", tag(2))["content"]}
    edit = {"type": "edit_message", "payload": payload}
    edited = await user.chatkit.stream("threads.custom_action", thread_id=first.thread_id, action=edit)
    assert edited.error is None
    [note] = hidden_notes((await requests_to(model))[-1])
    assert '@2: "bread"' in note
    assert "milk" not in note
    nothing = {"type": "edit_message", "payload": {"item_id": edited.user_item_id, "content": []}}
    rejected = await user.chatkit.post("threads.custom_action", thread_id=first.thread_id, action=nothing)
    assert (rejected.status_code, "the new text" in rejected.text) == (400, True)


async def test_invalid_tags(user: User, stored: Stored) -> None:
    odd = [[tag(one)] for one in ("", "0", "-1", "x", "1.5", "٣", " 1", "1 OR 1=1", 2**63, "9" * 400)]
    for tags in (*odd, [tag(number) for number in range(1, 101)]):
        rejected = await user.chatkit.post("threads.create", input=message("complete ", *tags))
        assert rejected.status_code == 400, tags[0]
        assert rejected.json()["error"] == "A tag needs a task's number, from 1, and a message can have up to 99 tags."
    assert stored.conversations(user.name) == []


async def test_task_of_another_user(user: User, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    await add(user, "a secret")
    await model.script(says("There is none."))
    answer = await say(new_user(), "complete ", tag(1))
    assert answer.error is None
    assert "secret" not in str(answer.events)
    [note] = hidden_notes((await requests_to(model))[0])
    assert "@1: not on the list" in note
    assert [task.status for task in stored.tasks(user.name)] == ["pending"]
