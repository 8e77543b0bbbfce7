"""Chats: their names, lists, titles and deletion, in the run API and in ChatKit."""

import asyncio
import json
from random import Random
from typing import Any

import httpx2
import psycopg
import pytest

from tests.chatkit_client import JSON
from tests.logins import as_admin
from tests.runs_client import id_of, names
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, find_thread, list_user_items, open_answer, start_run
from tests.support.fixtures import NewUser
from tests.support.script import PAUSING, add_tasks, delete_tasks, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client.connection import ApiError

CHAT = "groceries"
RUN = "run_" + "0" * 32
OUR_IDS = ("thr_0", "thr_" + "0" * 32, RUN, "msg_" + "a" * 32)
INVALID_NAMES = ("a b", "a%2Fb", "ä", "a" * 101, "%2e", "...", "openapi.json", "a@b", "%00", "a%0A")
INVALID_IDS = ("%00", "run_%00", "a%0A", "a b", "%ED%A0%80", "a" * 101)
OPERATIONS: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/log", None),
    ("POST", "/interactions", {"user_message": "hello"}),
    ("GET", "/interactions/{run}", None),
    ("GET", "/interactions/{run}/events", None),
    ("GET", "/interactions/{run}/steps", None),
    ("POST", "/interactions/{run}/cancel", None),
    ("POST", "/interactions/{run}/approve", {"approval_id": "apr_0", "approved": True}),
    ("POST", "/interactions/{run}/edit", {"new_user_message": "hello"}),
    ("POST", "/interactions/{run}/messages", {"text": "hello", "mode": "steer"}),
    ("POST", "/interactions/{run}/messages/msg_0/steer", None),
    ("DELETE", "/interactions/{run}/messages/msg_0", None),
    ("POST", "/branch", {"interaction_id": None}),
    ("POST", "/compact", None),
]


def check_error(response: httpx2.Response, *statuses: int) -> None:
    """A status with one sentence, and nothing of what went on inside."""
    assert response.status_code in statuses, (response.request.url, response.text)
    assert set(response.json()) == {"error"}
    assert response.json()["error"].endswith(".")
    assert "Traceback" not in response.text


async def each_operation(
    user: User, chat: str, run: str = RUN, *, besides: str | None = None
) -> list[tuple[str, httpx2.Response]]:
    """The path and response of each operation `besides` one."""
    return [
        (path, await user.runs.http.request(method, f"/chats/{chat}{path.format(run=run)}", json=body))
        for method, path, body in OPERATIONS
        if path != besides
    ]


async def titles(user: User, titled: str) -> list[str]:
    return [one["title"] for one in (await user.runs.get_chats(titled=titled))["chats"]]


async def test_message_to_a_new_name_makes_a_chat(user: User, model: ScriptedModel) -> None:
    for name in ("groceries", "A-b_c.9", "a" * 100, ".a", "thr", "1"):
        await model.script(says("Hello."), says("Again."))
        assert (await user.runs.say(name, "hello"))[0].data["chat_id"] == name
        thread = (await user.chatkit.list_threads()).data[0]["id"]
        by_id, by_name = await user.runs.get_chat(thread), await user.runs.get_chat(name)
        assert {**by_id, "id": name} == by_name
        [listed] = [one for one in (await user.runs.get_chats())["chats"] if one["name"] == name]
        assert listed.items() <= by_id.items()
        assert [one["chat_id"] for one in (listed, by_id, by_name)] == [thread] * 3
        assert (await list_user_items(user, thread))[0]["content"][0]["text"] == "hello"
        assert (await user.runs.say(thread, "again"))[0].data["chat_id"] == thread
        assert len((await user.runs.get_chat(name))["interactions"]) == 2


async def test_only_a_message_makes_a_chat(user: User, stored: Stored) -> None:
    for _, response in await each_operation(user, CHAT, besides="/interactions"):
        check_error(response, 404)
    assert stored.row_counts(user.name) == {}


async def test_invalid_names(user: User, stored: Stored) -> None:
    for name in OUR_IDS:
        for _, response in await each_operation(user, name):
            check_error(response, 404)
    for name in INVALID_NAMES:
        for path, response in await each_operation(user, name):
            if (name, path) != ("openapi.json", ""):  # which is the schema
                assert response.status_code in ((400, 404) if name == "a%2Fb" else (400,)), (name, path)
    assert stored.row_counts(user.name) == {}


async def test_invalid_ids(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    run = id_of(await user.runs.say(CHAT, "hello"))
    for invalid in INVALID_IDS:
        for path, response in await each_operation(user, CHAT, invalid):
            if "{run}" in path:
                check_error(response, 404)
        for path, cursor in (("", "after"), (f"/{CHAT}", "before")):
            check_error(await user.runs.http.get(f"/chats{path}?{cursor}={invalid}"), 400)
    for limit in ("-1", "101", "x", ""):
        for path in ("/chats", f"/chats/{CHAT}"):
            check_error(await user.runs.http.get(f"{path}?limit={limit}"), 400)
    for number in ("-1", "1.5", "x", "", "9223372036854775808", "9" * 40, "\N{SUPERSCRIPT TWO}"):
        headers: Any = {"Last-Event-ID": number.encode()}
        check_error(await user.runs.http.get(f"/chats/{CHAT}/interactions/{run}/events", headers=headers), 400)


BODIES = (
    b"",
    b"{}",
    b'{"user_message": 1}',
    b'{"user_message": ""}',
    b'{"user_message": " \\u200b"}',
    b'{"user_message": "' + b"a" * 8_001 + b'"}',
    b'{"user_message": "a\\u0000"}',
    b'{"user_message": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
)


async def test_invalid_bodies(user: User, stored: Stored) -> None:
    """What no route takes as JSON is in tests/api/test_invalid_requests.py."""
    for content in BODIES:
        check_error(await user.runs.http.post(f"/chats/{CHAT}/interactions", content=content, headers=JSON), 400)
    assert stored.row_counts(user.name) == {}


async def test_run_of_another_chat(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."), says("Hello."))
    run = id_of(await user.runs.say("one", "hello"))
    await user.runs.say("two", "hello")
    for path, response in await each_operation(user, "two", run):
        if "{run}" in path:
            check_error(response, 404)
    for read in (user.runs.get_chats(after="three"), user.runs.get_chat("two", before=run)):
        with pytest.raises(ApiError) as refused:
            await read
        assert refused.value.status == 404


async def test_other_users_find_nothing(user: User, new_user: NewUser, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS)
    run = await start_run(user, CHAT, "count", until="answer_delta")
    thread = await find_thread(user, CHAT)
    other, stranger = new_user(), new_user()
    stranger.runs.http.headers.pop("authorization")
    for chat in (CHAT, thread):
        for _, response in await each_operation(other, chat, run, besides="/interactions"):
            check_error(response, 404)
        for _, response in await each_operation(stranger, chat, run):
            check_error(response, 401)
            assert response.headers["www-authenticate"] == "Bearer"
    with pytest.raises(ApiError) as refused:
        await other.runs.say(thread, "hello")
    assert refused.value.status == 404
    assert (await other.runs.get_chats())["chats"] == []
    assert stored.run_statuses(user.name) == ["running"], "nobody stopped it"
    await user.runs.cancel(CHAT, run)


async def test_two_first_messages_at_once_make_one_chat(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(*[says("Hello.")] * 10)
    other = new_user(user.name, backend=1)
    sent = [
        one.runs.http.post(f"/chats/{CHAT}/interactions", json={"user_message": "hello"}) for one in (user, other) * 5
    ]
    statuses = [response.status_code for response in await asyncio.gather(*sent)]
    assert set(statuses) <= {200, 409}
    assert len(stored.conversations(user.name)) == 1
    assert len(stored.runs(user.name)) == statuses.count(200) >= 1


async def test_list_in_the_run_api(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 3)
    for name in ("one", "two"):
        await user.runs.say(name, "hello")
    thread = (await user.chatkit.say("hello from ChatKit")).thread_id
    first = await user.runs.get_chats(limit=2)
    assert [one["name"] for one in first["chats"]] == [None, "two"]
    assert first["chats"][0]["chat_id"] == thread
    assert first["has_more"]
    rest = await user.runs.get_chats(limit=2, after=first["after"])
    assert [one["name"] for one in rest["chats"]] == ["one"]
    assert (rest["has_more"], rest["after"]) == (False, None)
    assert (await user.runs.get_chats(after="two"))["chats"] == rest["chats"]


async def test_interactions_of_a_chat_in_pages(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 5)
    said = [f"hello {number}" for number in range(5)]
    for text in said:
        await user.runs.say(CHAT, text)
    pages = [await user.runs.get_chat(CHAT, limit=2)]
    while (before := pages[-1]["before"]) is not None:
        pages.append(await user.runs.get_chat(CHAT, limit=2, before=before))
    assert [[one["user_message"] for one in page["interactions"]] for page in pages] == [said[3:], said[1:3], said[:1]]
    assert [page["has_more"] for page in pages] == [True, True, False]
    whole = [one for page in reversed(pages) for one in page["interactions"]]
    assert (await user.runs.get_chat(CHAT, limit=5))["interactions"] == whole
    head = await user.runs.get_chat(CHAT, limit=0)
    assert (head["interactions"], head["leaf"]) == ([], whole[-1]["id"])


@pytest.mark.long
async def test_page_of_large_interactions_stays_below_a_megabyte(user: User, model: ScriptedModel) -> None:
    text = "".join(Random(1).choices("éèêë", k=140_000))
    for _ in range(3):
        await model.script({"text": text, "chunk_chars": 100_000})
        await user.runs.say(CHAT, "say it")
    await model.received_requests(4)  # the last one, for a summary, must not come in the next test
    pages: list[dict[str, Any]] = []
    before: str | None = None
    while not pages or pages[-1]["has_more"]:
        response = await user.runs.http.get(f"/chats/{CHAT}", params={"before": before} if before else {})
        pages.append(response.json())
        before = pages[-1]["before"]
        assert len(response.content) < 1_048_576 or len(pages[-1]["interactions"]) == 1
    found = [one for page in reversed(pages) for one in page["interactions"]]
    assert len(pages) > 1
    assert [one["agent_events"][-1]["content"] == text for one in found] == [True] * 3, "nothing is cut"


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_pages_of_large_answers(order: Any, user: User, model: ScriptedModel, stack: Stack) -> None:
    """They have fewer items than asked for, and all pages together have each item once."""
    await model.script(*[says("Hello.")] * 7)
    for number in range(7):
        await user.runs.say(CHAT, f"hello {number}")
    with psycopg.connect(as_admin(stack.database_url)) as connection:
        connection.execute(
            "UPDATE entries SET text = repeat(text, 50000) WHERE user_id = %s AND kind = 'assistant_message'",
            [user.name],
        )
    thread = await find_thread(user, CHAT)
    pages = [await user.chatkit.list_items(thread, limit=100, order=order)]
    while pages[-1].has_more:
        pages.append(await user.chatkit.list_items(thread, limit=100, order=order, after=pages[-1].after))
    ids = [item["id"] for page in pages for item in page.data]
    assert len(ids) == len({*ids}) == 14
    assert 1 < len(pages) < 7
    assert max(len(json.dumps(page.data)) for page in pages) < 1_048_576 + 400_000


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_lists_in_chatkit_have_no_gaps(order: Any, user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 6)
    threads = [(await user.chatkit.say(f"hello {number}")).thread_id for number in range(3)]
    for number in range(3):
        await user.chatkit.say(f"again {number}", threads[0])
    items = await user.chatkit.items(threads[0], order=order)
    assert len(items) == 8
    found: list[Any] = []
    after = None
    while True:
        page = await user.chatkit.list_items(threads[0], limit=3, order=order, after=after)
        found, after = found + page.data, page.after
        if not page.has_more:
            break
        assert len(page.data) == 3
    assert found == items
    assert after is None
    listed: list[str] = []
    while True:
        page = await user.chatkit.list_threads(limit=2, order=order, after=after)
        listed, after = [*listed, *(one["id"] for one in page.data)], page.after
        if not page.has_more:
            break
    assert listed == (threads if order == "asc" else threads[::-1])


async def test_search_by_title(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 4)
    for text in ("Buy 100% juice", "buy 1000 nails", "Call mum_", "buy d"):
        await user.chatkit.say(text)
    assert await titles(user, "BUY") == ["buy d", "buy 1000 nails", "Buy 100% juice"]
    assert await titles(user, "100%") == ["Buy 100% juice"]
    assert await titles(user, "m_") == ["Call mum_"]
    assert await titles(user, "_") == ["Call mum_"]
    assert await titles(user, "nothing of it") == []
    assert len(await titles(user, "")) == 4
    first = await user.runs.get_chats(titled="buy", limit=2)
    assert ([one["title"] for one in first["chats"]], first["has_more"]) == (["buy d", "buy 1000 nails"], True)
    rest = await user.runs.get_chats(titled="buy", limit=2, after=first["after"])
    assert ([one["title"] for one in rest["chats"]], rest["has_more"]) == (["Buy 100% juice"], False)


async def test_search_for_a_long_title(user: User) -> None:
    for invalid in ("x" * 201, "a\x00b"):
        check_error(await user.runs.http.get("/chats", params={"titled": invalid}), 400)


async def test_title_is_the_first_message_until_it_is_renamed(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."), says("Again."))
    first = await user.chatkit.say("add buy milk\nand a very long wish that goes on and on, beyond what a title holds")
    title = first.of("thread.created")[0]["thread"]["title"]
    assert title.startswith("add buy milk and a very long wish")
    assert title.endswith("…")
    assert (await user.chatkit.update_thread(first.thread_id, "Shopping"))["title"] == "Shopping"
    await user.chatkit.say("what is left?", first.thread_id)
    assert (await user.chatkit.get_thread(first.thread_id))["title"] == "Shopping"


async def test_rename_and_feedback_while_an_answer_runs(user: User, model: ScriptedModel) -> None:
    await model.script(PAUSING)
    async with open_answer(user, "count") as answer:
        thread = answer.thread_id
        assert (await user.chatkit.update_thread(thread, "Mine"))["title"] == "Mine"
        await user.chatkit.feedback(thread, [answer.user_item_id], "positive")
        await model.release()
    assert (await user.chatkit.get_thread(thread))["title"] == "Mine"


async def test_feedback_is_for_all_items_or_for_none_until_it_is_removed(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."))
    answer = await user.chatkit.say("hello")
    item = answer.items[-1]["id"]
    with pytest.raises(ApiError):
        await user.chatkit.feedback(answer.thread_id, [item, "msg_0"], "negative")
    assert not any(one.get("feedback") for one in await user.chatkit.items(answer.thread_id))
    await user.chatkit.feedback(answer.thread_id, [item], "negative")
    assert (await user.chatkit.items(answer.thread_id))[-1]["feedback"] == "negative"
    removal = {"thread_id": answer.thread_id, "item_id": item, "action": {"type": "take_feedback_back"}}
    assert "feedback" not in (await user.chatkit.ask("threads.sync_custom_action", **removal))["updated_item"]


async def test_list_says_which_chat_is_answering(user: User, model: ScriptedModel) -> None:
    await model.script(says("Hello."), HANGS)
    await user.chatkit.say("hello")
    run = await start_run(user, CHAT, "count", until="answer_delta")
    assert [one["answering"] for one in (await user.runs.get_chats())["chats"]] == [run, None]
    assert (await user.runs.get_chat(CHAT))["answering"] == run
    await user.runs.cancel(CHAT, run)
    await user.runs.read(CHAT, run)
    assert [one["answering"] for one in (await user.runs.get_chats())["chats"]] == [None, None]


@pytest.mark.parametrize("name", ["groceries", None])
async def test_rename_and_delete(name: str | None, user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Hello."))
    await user.runs.say(CHAT, "hello")
    thread = await find_thread(user, CHAT)
    chat, http = name or thread, user.runs.http
    renamed = await user.runs.rename_chat(chat, " Shop\u200bping ")
    assert renamed.items() <= (await user.runs.get_chat(chat)).items()
    assert (renamed["id"], renamed["chat_id"], renamed["title"]) == (chat, thread, "Shopping")
    assert (await user.chatkit.get_thread(thread))["title"] == "Shopping"
    for body in ({}, {"title": None}, {"title": 1}, {"title": " "}, {"title": "a\nb"}, {"title": "x" * 201}):
        check_error(await http.patch(f"/chats/{chat}", json=body), 400)
    assert (await user.runs.get_chat(chat))["title"] == "Shopping"
    assert (await http.put(f"/chats/{chat}/files/a.txt", content=b"x")).status_code == 201
    assert (await http.delete(f"/chats/{chat}")).status_code == 204
    again = await http.delete(f"/chats/{chat}")
    assert again.json() == {"error": f"There is no conversation {chat}. It may have been deleted."}
    assert again.status_code == 404
    check_error(await http.patch(f"/chats/{chat}", json={"title": "x"}), 404)
    assert stored.conversations(user.name) == []


@pytest.mark.parametrize("by", ["chatkit", "run API"])
@pytest.mark.parametrize("state", ["running", "waiting"])
async def test_deletion_stops_the_run_in_any_process(
    state: str, by: str, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(says("Hello."), add_tasks(11))
    await model.script(HANGS if state == "running" else delete_tasks(*range(1, 12)))
    first = id_of(await user.runs.say(CHAT, "hello"))
    other = new_user(user.name, backend=1)
    async with user.runs.interact(CHAT, "go on") as events:
        second = (await anext(events)).data["interaction_id"]
        async for event in events:
            if event.name in ("answer_delta", "approval_required"):
                break
        await until(lambda: stored.run_statuses(user.name)[-1] == state)
        if by == "chatkit":
            await other.chatkit.delete_thread(await find_thread(user, CHAT))
        else:
            await other.runs.delete_chat(CHAT)
        assert names([event async for event in events])[-1] == "interaction_complete"
    for run in (first, second):
        assert (await other.runs.http.get(f"/chats/{CHAT}/interactions/{run}/events")).status_code == 404
    assert stored.conversations(user.name) == []
    assert stored.pending_approvals(user.name) == 0
    assert len(stored.titles(user.name)) == 11
    await model.reset()
    await model.script(says("Hello."))
    await user.runs.say(CHAT, "hello")
    assert len((await user.runs.get_chat(CHAT))["interactions"]) == 1, "the name is free"
