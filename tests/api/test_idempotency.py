"""A request that is sent again under its Idempotency-Key is done once and answered alike."""

import asyncio
import json
import random
import string
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from tests.chatkit_client import JSON
from tests.runs_client import id_of, without_deltas
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, start_run
from tests.support.backends import user_at
from tests.support.fixtures import NewUser
from tests.support.script import SLOW, SLOW_TEXT, add_task, add_tasks, delete_tasks, says, summarises
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.chatkit import request, user_input
from todo_client.sse import EventParser

CHAT = "groceries"
APIS = ("run_api", "chat", "ai_sdk")


async def say(user: User, api: str, text: str, key: str, chat: str = CHAT) -> httpx2.Response:
    messages = {"threadId": chat, "messages": [{"role": "user", "content": text}]}
    requests: dict[str, tuple[str, Any]] = {
        "run_api": (f"/chats/{chat}/interactions", {"user_message": text}),
        "chat": ("/chat", messages),
        "ai_sdk": ("/chat/stream", messages),
    }
    path, body = requests[api]
    return await user.runs.http.post(path, json=body, headers={"Idempotency-Key": key})


def outcome_of(api: str, response: httpx2.Response) -> Any:
    """What every reader of the answer has, however the text was cut into pieces."""
    assert response.status_code == 200, response.text
    if api == "chat":
        return response.json()
    if api == "run_api":
        frames = EventParser().feed(response.content)
        return [(frame.name, frame.data) for frame in frames if not frame.name.endswith("_delta")]
    chunks = [
        json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line.startswith("data: {")
    ]
    return [chunk for chunk in chunks if not chunk["type"].endswith("-delta")]


async def post(user: User, path: str, key: str, body: Any = None) -> httpx2.Response:
    return await user.runs.http.post(f"/chats/{path}", json=body, headers={"Idempotency-Key": key})


@pytest.mark.parametrize("api", APIS)
async def test_same_key_same_answer(api: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    """While it runs, and when it has ended."""
    await model.script({**SLOW, "token_delay": 0.03}, says("Never."))
    responses = await asyncio.gather(*(say(user, api, "count", "k") for _ in range(3)))
    responses.append(await say(user, api, "count", "k"))
    outcomes = [outcome_of(api, response) for response in responses]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert SLOW_TEXT in str(outcomes[0]) or api == "ai_sdk"
    assert stored.run_statuses(user.name) == ["completed"]
    assert len(await model.requests()) == 1


async def test_another_key_is_another_message(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_task("milk"), says("Added."), add_task("milk"), says("Added."))
    first = await user.runs.say(CHAT, "add milk", key="one")
    second = await user.runs.say(CHAT, "add milk", key="two")
    assert id_of(first) != id_of(second)
    assert stored.titles(user.name) == ["milk", "milk"]


@pytest.mark.parametrize("api", APIS)
async def test_key_of_another_request_is_rejected(api: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."))
    run = id_of(await user.runs.say(CHAT, "hello", key="k"))
    assert (await say(user, api, "something else", "k")).status_code == 409
    assert (await say(user, api, "hello", "k", chat="another")).status_code == 409
    assert (await post(user, f"{CHAT}/interactions/{run}/cancel", "k")).status_code == 409
    assert len(stored.runs(user.name)) == 1


async def test_invalid_and_valid_keys(user: User, model: ScriptedModel, stored: Stored) -> None:
    for key in ("", "a b", "a" * 256, "ä"):
        headers: Any = {"Idempotency-Key": key.encode()}
        body = {"user_message": "hello"}
        response = await user.runs.http.post(f"/chats/{CHAT}/interactions", json=body, headers=headers)
        assert response.status_code == 400, key
    assert stored.row_counts(user.name) == {}
    for key in ("".join(map(chr, range(0x21, 0x7F))), "a" * 255):
        await model.script(says("Hello."))
        assert without_deltas(await user.runs.say(CHAT, "hello", key=key)) == without_deltas(
            await user.runs.say(CHAT, "hello", key=key)
        )


async def test_rejected_request_does_not_use_up_its_key(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS, says("Hello."))
    run = await start_run(user, CHAT, "count", until="answer_delta")
    assert (await say(user, "run_api", "and?", "k")).status_code == 409
    await user.runs.cancel(CHAT, run)
    await user.runs.read(CHAT, run)
    assert (await say(user, "run_api", "and?", "k")).status_code == 200
    assert stored.run_statuses(user.name) == ["cancelled", "completed"]


async def cancel(user: User, model: ScriptedModel) -> tuple[str, Any]:
    await model.script(HANGS)
    return f"interactions/{await start_run(user, CHAT, 'count', until='answer_delta')}/cancel", None


async def queue(user: User, model: ScriptedModel) -> tuple[str, Any]:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    return f"interactions/{run}/messages", {"text": "and?", "mode": "follow_up"}


async def branch(user: User, model: ScriptedModel) -> tuple[str, Any]:
    await model.script(says("One."), says("Two."))
    first = id_of(await user.runs.say(CHAT, "one"))
    await user.runs.say(CHAT, "two")
    return "branch", {"interaction_id": first}


async def compact(user: User, model: ScriptedModel) -> tuple[str, Any]:
    await model.script(*[says("Hello.")] * 4, summarises("Much was said."))
    for number in range(4):
        await user.runs.say(CHAT, f"hello {number}")
    return "compact", None


async def approve(user: User, model: ScriptedModel) -> tuple[str, Any]:
    await model.script(add_tasks(11), delete_tasks(*range(1, 12)), says("Fine."))
    run = await start_run(user, CHAT, "delete them", until="approval_required")
    [approval] = (await user.runs.get_interaction(CHAT, run))["approvals"]
    return f"interactions/{run}/approve", {"approval_id": approval["approval_id"], "approved": True}


Prepare = Callable[[User, ScriptedModel], Awaitable[tuple[str, Any]]]
OPERATIONS: dict[str, Prepare] = {
    "cancel": cancel,
    "queue": queue,
    "branch": branch,
    "compact": compact,
    "approve": approve,
}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_operation_is_done_once(operation: str, user: User, model: ScriptedModel, stored: Stored) -> None:
    path, body = await OPERATIONS[operation](user, model)
    responses = [await post(user, f"{CHAT}/{path}", "k", body) for _ in range(3)]
    answers = [(response.status_code, response.json()) for response in responses]
    assert responses[0].is_success, responses[0].text
    assert all(answer == answers[0] for answer in answers)
    assert stored.queued_messages(user.name) == (operation == "queue")
    if operation in ("cancel", "approve"):
        await until(lambda: not {"running", "waiting"} & {*stored.run_statuses(user.name)})
        assert (await post(user, f"{CHAT}/{path}", "another", body)).status_code in (400, 409), "it is done"
    for run in stored.runs(user.name):
        if run.status == "running":
            await user.runs.cancel(CHAT, run.id)


async def test_edit_is_done_once(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("One."), says("Two."))
    run = id_of(await user.runs.say(CHAT, "one"))
    edited = []
    for _ in range(2):
        async with user.runs.edit(CHAT, run, "two", key="k") as events:
            edited.append(id_of([event async for event in events]))
    assert edited[0] == edited[1]
    assert len(stored.runs(user.name)) == 2


async def test_chatkit_request_is_the_same_however_it_is_written(
    user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(says("Hello."), says("Never."))
    body = request("threads.create", {"idempotency_key": "k"}, input=user_input("hello"))
    for written in (json.dumps(body), json.dumps(body, indent=1), json.dumps(dict(reversed(body.items())))):
        response = await user.chatkit.http.post("/chatkit", content=written, headers=JSON)
        assert (response.status_code, "Hello." in response.text) == (200, True), response.text
    assert len(stored.runs(user.name)) == 1
    body["params"]["input"] = user_input("something else")
    assert (await user.chatkit.http.post("/chatkit", json=body)).status_code == 409


async def send_chatkit(user: User, body: Any) -> tuple[str | None, str]:
    """Returns the conversation that was made, and the text of the response."""
    response = await user.chatkit.http.post("/chatkit", json=body)
    assert response.status_code == 200, response.text
    frames = [frame.data for frame in EventParser().feed(response.content)]
    made = [frame["thread"]["id"] for frame in frames if frame["type"] == "thread.created"]
    return made[0] if made else None, response.text


async def test_chatkit_messages_are_stored_once_for_days(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Sent again after a reload, to another process, and days later; also the one that has made the conversation."""
    await model.script(says("Hello."), says("Bye."), says("Never."))
    other = new_user(user.name, backend=1)
    create = request("threads.create", {"idempotency_key": "k1", "detached": True}, input=user_input("hello"))
    thread, _ = await send_chatkit(user, create)
    assert thread is not None
    add = request("threads.add_user_message", {"idempotency_key": "k2"}, thread_id=thread, input=user_input("bye"))
    await send_chatkit(user, add)
    for hours in (0, 24 * 7):
        stored.age_idempotency_keys(user.name, hours=hours)
        for one in (user, other):
            made, text = await send_chatkit(one, create)
            assert (made, "Hello." in text) == (thread, True)
            made, text = await send_chatkit(one, add)
            assert (made, "Bye." in text) == (None, True)
    assert stored.conversations(user.name) == [thread]
    assert stored.run_statuses(user.name) == ["completed"] * 2
    await user.chatkit.http.post("/chatkit", json=request("threads.delete", thread_id=thread))
    for body in (create, add):
        response = await user.chatkit.http.post("/chatkit", json=body)
        assert (response.status_code, "error" in response.json()) == (404, True), response.text
    assert stored.conversations(user.name) == []


@pytest.mark.parametrize("kind", ["edit", "retry"])
@pytest.mark.parametrize("at_once", [False, True])
async def test_chatkit_answer_again_is_started_once(
    kind: str, at_once: bool, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(says("Hello."), says("Again."), says("Never."))
    thread, _ = await send_chatkit(user, request("threads.create", input=user_input("hello")))
    [item] = {frame["id"] for frame in stored.rows_of(user.name, "entries") if frame["kind"] == "user_message"}
    metadata = {"idempotency_key": "k"}
    if kind == "edit":
        action = {"type": "edit_message", "payload": {"item_id": item, "text": "hello there"}}
        body = request("threads.custom_action", metadata, thread_id=thread, item_id=None, action=action)
    else:
        body = request("threads.retry_after_item", metadata, thread_id=thread, item_id=item)
    users = [user, new_user(user.name, backend=1), user]
    if at_once:
        sent = await asyncio.gather(*(send_chatkit(one, body) for one in users))
    else:
        sent = [await send_chatkit(one, body) for one in users]
    assert all("Again." in text for _, text in sent), sent
    assert stored.run_statuses(user.name) == ["completed"] * 2


async def test_queued_message_and_its_key_are_stored_together(user: User, model: ScriptedModel, stored: Stored) -> None:
    """One whose process failed before it was stored is not taken for one that may be stored."""
    path, body = await queue(user, model)
    with stored.reject_new_messages():
        assert (await post(user, f"{CHAT}/{path}", "k", body)).status_code == 503
    assert stored.queued_messages(user.name) == 0
    responses = await asyncio.gather(*(post(user, f"{CHAT}/{path}", "k", body) for _ in range(3)))
    assert {response.status_code for response in responses} == {202}
    assert len({response.text for response in responses}) == stored.queued_messages(user.name) == 1
    [run] = stored.runs(user.name)
    await user.runs.cancel(CHAT, run.id)
    again = await post(user, f"{CHAT}/{path}", "k", body)
    assert (again.status_code, again.text) == (202, responses[0].text), "although the run has ended"


async def test_users_have_keys_of_their_own(user: User, new_user: NewUser, model: ScriptedModel) -> None:
    await model.script(says("Hello."), says("Hello."))
    runs = {id_of(await one.runs.say(CHAT, "hello", key="k")) for one in (user, new_user(), user)}
    assert len(runs) == 2


async def test_keys_of_a_user_are_limited(user: User, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    await model.script(*[says("Hello.")] * 3)
    first = await user.runs.say(CHAT, "hello", key="k")
    stored.add_idempotency_keys(user.name, 9_999)
    for path, body in (
        (f"{CHAT}/interactions", {"user_message": "more"}),
        ("another/interactions", {"user_message": "more"}),
        (f"{CHAT}/branch", {"interaction_id": id_of(first)}),
    ):
        assert (await post(user, path, "one-more", body)).status_code == 429
    assert len(stored.runs(user.name)) == len(stored.conversations(user.name)) == 1
    assert without_deltas(await user.runs.say(CHAT, "hello", key="k")) == without_deltas(first), (
        "what is known is answered"
    )
    await user.runs.say(CHAT, "more")
    await new_user().runs.say(CHAT, "hello", key="k")


@pytest.mark.long(seconds=12)
@pytest.mark.parametrize(("settings", "days"), [({}, 8), ({"IDEMPOTENCY_DAYS": "2"}, 2)])
async def test_key_is_free_after_some_days(
    settings: dict[str, str], days: int, services: Services, model: ScriptedModel, stored: Stored
) -> None:
    """The sweep of a process deletes it when the process starts, and once a minute."""
    await model.script(says("Hello."), says("Another."))
    async with user_at(services, **settings) as user:
        first = await user.runs.say(CHAT, "hello", key="k")
    stored.age_idempotency_keys(user.name, hours=24 * days - 0.1)
    async with user_at(services, user, **settings) as user:
        await asyncio.sleep(1)  # until a sweep would have deleted it
        assert without_deltas(await user.runs.say(CHAT, "hello", key="k")) == without_deltas(first)
    stored.age_idempotency_keys(user.name, hours=0.2)
    async with user_at(services, user, **settings) as user:
        await until(lambda: not stored.rows_of(user.name, "kept_requests"))
        assert id_of(await user.runs.say(CHAT, "something else", key="k")) != id_of(first)


async def test_stored_responses_of_a_user_are_limited(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """By their bytes; a message stores none, so it is not rejected."""
    remember = {"text": "".join(random.Random(1).choices(string.ascii_letters, k=60_000))}
    memory = user.runs.http
    stored.add_stored_responses(user.name, 166, characters=60_000)
    first = await memory.post("/memory", json=remember, headers={"Idempotency-Key": "k"})
    assert first.status_code == 200
    rejected = await memory.post("/memory", json={"text": "more"}, headers={"Idempotency-Key": "k2"})
    assert (rejected.status_code, "10 MB" in rejected.json()["error"]) == (429, True), rejected.text
    again = await memory.post("/memory", json=remember, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()) == (200, first.json())
    assert (await memory.post("/memory", json={"text": "more"})).status_code == 200
    await model.script(says("Hello."), says("Hello."))
    for one in (user, new_user()):
        await one.runs.say(CHAT, "hello", key="k3")
    await new_user().runs.http.post("/memory", json={"text": "x"}, headers={"Idempotency-Key": "k"})


@pytest.mark.long
async def test_requests_at_once_in_two_processes_act_once(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    other = new_user(user.name, backend=1)
    for number in range(5):
        await model.script(add_task(f"task {number}"), says("Added."), says("Never."))
        sent = [one.runs.say("chat" + "x" * number, "add it", key=f"key-{number}") for one in (user, other) * 3]
        answers = await asyncio.gather(*sent)
        assert all(without_deltas(answer) == without_deltas(answers[0]) for answer in answers)
        await model.reset()
    assert stored.titles(user.name) == [f"task {number}" for number in range(5)]
    assert stored.run_statuses(user.name) == ["completed"] * 5


async def say_in_new_chat(user: User, api: str) -> httpx2.Response:
    """Says hello in a new chat without a name."""
    if api == "chatkit":
        body = request("threads.create", {"idempotency_key": "k"}, input=user_input("hello"))
        return await user.chatkit.http.post("/chatkit", json=body)
    messages = {"messages": [{"role": "user", "content": "hello"}]}
    return await user.runs.http.post(f"/{api}", json=messages, headers={"Idempotency-Key": "k"})


@pytest.mark.parametrize("api", ["chatkit", "chat", "chat/stream"])
async def test_new_chat_is_made_once_by_requests_at_once(
    api: str, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Each of two processes has found neither the key nor a chat when the other one begins to make its own."""
    await model.script(says("Hello."), says("Never."))
    other = new_user(user.name, backend=1)
    with stored.lock_table("conversations"):
        sent = [asyncio.create_task(say_in_new_chat(one, api)) for one in (user, other)]
        await until(lambda: stored.has_waiting_statements(count=2))
    for response in await asyncio.gather(*sent):
        assert (response.status_code, "Hello." in response.text) == (200, True), response.text
    assert stored.run_statuses(user.name) == ["completed"]
    assert len(stored.conversations(user.name)) == 1
