"""Each task tool in each state: what ChatKit shows of it, what the run API tells, and what a click does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from mcp_server.server import create_app
from mcp_server.settings import McpSettings
from tests.chatkit_client import Answer, ChatKit
from tests.mcp.servers import serve_tools
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.support.answers import FOLLOW, open_answer
from tests.support.backends import local_backend, user_at
from tests.support.cards import (
    click_undo,
    fetch_widgets,
    find_checkboxes,
    find_undo_buttons,
    get_action,
    get_replaced_widget,
    get_total,
    list_latest_widgets,
    list_widgets,
    render_lines,
    send_action,
    send_sync_action,
    tick,
    walk_components,
)
from tests.support.fixtures import NewUser
from tests.support.model_requests import requests_to
from tests.support.script import add_task, call, calls, says
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User
from tests.tokens import MCP_TOKEN_SECRET, OTHER_SECRET
from tests.waiting import until
from todo_client.chatkit import user_input

Json = dict[str, Any]
MILK = call("add_task", title="milk")
BOTH = call("add_task", title="milk", also=["bread"])
FIVE = call("add_task", title="milk", also=["bread", "eggs", "soap", "rice"])
DETAILS: Json = {
    "description": "two litres",
    "due": "2026-11-27 15:00",
    "priority": "high",
    "labels": ["home", "shop"],
    "repeat": "FREQ=WEEKLY;BYDAY=FR",
}
FACTS = "two litres · Fri 27 Nov 15:00 · High · every Friday · #home #shop"


@dataclass(frozen=True)
class Case:
    """What is called in an earlier message, what then, and what is shown of that."""

    before: tuple[Json, ...]
    called: tuple[Json, ...]
    cards: tuple[list[str], ...]
    fails: bool = False


CASES: dict[str, Case] = {
    "added": Case((), (MILK,), (["☐ milk · Added · [Undo]"],)),
    "added with all details": Case(
        (), (call("add_task", title="milk", **DETAILS),), ([f"☐ milk · Added · [Undo] · {FACTS}"],)
    ),
    "a few added by one call": Case((), (BOTH,), (["☐ milk · Added"], ["☐ bread · Added"])),
    "many added by one call": Case(
        (), (FIVE,), (["5 tasks added", "[Undo]", "☐ milk", "☐ bread", "☐ eggs", "☐ soap", "☐ rice"],)
    ),
    "completed": Case((MILK,), (call("complete_task", task_id=1),), (["☑ milk · Completed · [Undo]"],)),
    "completed twice": Case(
        (MILK, call("complete_task", task_id=1)),
        (call("complete_task", task_id=1),),
        (["☑ milk · Completed"],),  # it changes nothing
    ),
    "a repeat completed": Case(
        (call("add_task", title="milk", due="2026-11-27", repeat="FREQ=WEEKLY;BYDAY=FR"),),
        (call("complete_task", task_id=1),),
        (["☑ milk · Completed · [Undo] · Fri 27 Nov · every Friday · next on Fri 4 Dec"],),
    ),
    "a repeat that counts from completion": Case(
        (),
        (call("add_task", title="milk", due="2026-11-27", repeat="FREQ=DAILY;FROM=DONE"),),
        (["☐ milk · Added · [Undo] · Fri 27 Nov · 1 day after it is done"],),
    ),
    "many completed, and one that is not there": Case(
        (FIVE,),
        (call("complete_task", task_id=1, also=[2, 3, 4, 99]),),
        (["4 tasks completed", "[Undo]", "☑ milk", "☑ bread", "☑ eggs", "☑ soap"],),
    ),
    "changed": Case((MILK,), (call("update_task", task_id=1, title="oat milk"),), (["☐ oat milk · Changed · [Undo]"],)),
    "reopened": Case(
        (MILK, call("complete_task", task_id=1)),
        (call("update_task", task_id=1, status="pending"),),
        (["☐ milk · Reopened · [Undo]"],),
    ),
    "deleted": Case(
        (BOTH,),
        (call("delete_task", task_id=1, also=[2]),),
        (["☐ milk (deleted) · Deleted"], ["☐ bread (deleted) · Deleted"]),
    ),
    "a deletion undone": Case(
        (MILK, call("delete_task", task_id=1)),
        (call("update_task", task_id=1, undo=True),),
        (["☐ milk · Undone"],),
    ),
    "an addition undone": Case((MILK,), (call("update_task", task_id=1, undo=True),), (["☐ milk (deleted) · Undone"],)),
    "listed": Case((BOTH,), (call("list_tasks"),), (["2 tasks", "☐ milk", "☐ bread"],)),
    "listed with all details": Case(
        (call("add_task", title="milk", **DETAILS),), (call("list_tasks"),), (["1 task", f"☐ milk · {FACTS}"],)
    ),
    "found": Case((BOTH,), (call("list_tasks", query="bread"),), (["1 task", "☐ bread"],)),
    "an empty list": Case((), (call("list_tasks"),), ()),
    "a page of a list": Case(
        (FIVE,),
        (call("list_tasks", limit=2),),
        (["The first 2 tasks", "☐ milk", "☐ bread", "There are more tasks. Ask for the rest to see them."],),
    ),
    "read to change one": Case(
        (MILK,), (call("list_tasks"), call("complete_task", task_id=1)), (["☑ milk · Completed · [Undo]"],)
    ),
    "a task that is not there": Case((), (call("complete_task", task_id=99),), (), fails=True),
    "arguments that are wrong": Case((), (call("add_task", title=""),), (), fails=True),
    "a tool that is not there": Case((), (call("buy_task", title="milk"),), (), fails=True),
}


async def make_calls(user: User, model: ScriptedModel, *wanted: Json, thread: str | None = None) -> Answer:
    """The answer with these calls, each in a model turn of its own."""
    await model.script(*map(calls, wanted), says("Fine."))
    answer = await user.chatkit.say("go", thread)
    assert (answer.error, answer.text) == (None, "Fine.")
    return answer


async def list_of(user: User, model: ScriptedModel, *titles: str) -> tuple[str, Json]:
    """The thread and the list's widget, of a list with these tasks."""
    first, *others = titles
    answer = await make_calls(user, model, call("add_task", title=first, also=others), call("list_tasks"))
    return answer.thread_id, list_widgets(answer)[-1]


@pytest.mark.parametrize("name", CASES)
async def test_what_is_shown(name: str, user: User, model: ScriptedModel) -> None:
    case = CASES[name]
    if case.before:
        await make_calls(user, model, *case.before)
    answer = await make_calls(user, model, *case.called)
    shown = list_latest_widgets(answer)
    assert tuple(map(render_lines, shown)) == case.cards
    opened = await fetch_widgets(user.chatkit, answer.thread_id)
    assert [(item["id"], render_lines(item)) for item in opened] == [(item["id"], render_lines(item)) for item in shown]
    steps = answer.of("progress_update")
    done = [step for step in steps if step.get("icon") == "check"]
    assert len(done) == (0 if case.fails else len(case.called))
    assert all(step["text"] for step in steps)

    [interaction] = (await user.runs.get_chat(answer.thread_id))["interactions"]
    events = [event for event in interaction["agent_events"] if event["type"] != "ANSWER"]
    assert [event["type"] for event in events] == ["TOOL_CALL", "TOOL_RESULT"] * len(case.called)
    for wanted, made, result in zip(case.called, events[::2], events[1::2], strict=True):
        assert (made["tool_name"], json.loads(made["tool_input"])) == (wanted["name"], wanted["arguments"])
        assert result["id"] == made["id"]
        assert result["tool_output"]
        assert result["tool_output"].startswith("{") != case.fails


async def test_color_of_a_due_date(user: User, model: ScriptedModel) -> None:
    colors = {
        "2026-11-24": "danger",
        "2026-11-25 08:59": "danger",
        "2026-11-25 23:59": "warning",
        "2026-11-25": "warning",
        "2026-11-26": "secondary",
    }
    answer = await make_calls(user, model, *(call("add_task", title="milk", due=due) for due in colors))
    for (due, color), card in zip(colors.items(), list_widgets(answer), strict=True):
        badges = [part for part in walk_components(card["widget"]) if part["type"] == "Badge"]
        assert [one["color"] for one in badges if one.get("key", "").startswith(f"due-{due[:10]}")] == [color]


async def test_cards_of_one_model_turn_keep_their_order(user: User, model: ScriptedModel) -> None:
    titles = [f"task {number}" for number in range(6)]
    await model.script(calls(*(call("add_task", title=title) for title in titles)), says("Added."))
    answer = await user.chatkit.say("add them")
    shown = list_widgets(answer)
    assert sorted(title for item in shown for title in find_checkboxes(item)) == titles
    assert [item["id"] for item in await fetch_widgets(user.chatkit, answer.thread_id)] == [i["id"] for i in shown]


NAMED = {
    "You have three tasks.": ["milk", "call Al", "milk & honey"],
    "Call Al first: it is the oldest.": ["milk", "call Al", "milk & honey"],
    "Two:\n\n- **2** milk\n* [ ] Call Al: oldest": ["milk", "call Al"],
    "1. **milk & honey**: two jars": ["milk & honey"],
    "I found no piano. You can say:\n\n- show all": [],
}


async def test_list_below_an_answer_has_the_tasks_it_names(user: User, model: ScriptedModel) -> None:
    await make_calls(user, model, call("add_task", title="milk", also=["call Al", "milk & honey"]))
    for words, shown in NAMED.items():
        await model.script(calls(call("list_tasks")), says(words))
        answer = await user.chatkit.say("which?")
        lists = [item for item in list_widgets(answer) if item["widget"]["type"] == "ListView"]
        assert [title for item in lists for title in find_checkboxes(item)] == shown, words


async def test_pages_of_one_list_are_one_widget(user: User, model: ScriptedModel, stored: Stored) -> None:
    await make_calls(user, model, FIVE)
    await make_calls(user, model, call("list_tasks", limit=2))
    chat = (await user.runs.get_chats())["chats"][0]["id"]
    [interaction] = (await user.runs.get_chat(chat))["interactions"]
    [result] = [event for event in interaction["agent_events"] if event["type"] == "TOOL_RESULT"]
    cursor = json.loads(result["tool_output"])["next_cursor"]
    answer = await make_calls(
        user, model, call("list_tasks", limit=2), call("list_tasks", limit=50, cursor=cursor), thread=chat
    )
    [whole] = list_widgets(answer)
    assert render_lines(whole) == ["5 tasks", *(f"☐ {title}" for title in stored.titles(user.name))]


class TestTick:
    async def test_ticked_and_unticked(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        thread, item = await list_of(user, model, "milk", "bread")
        requests = len(await model.finished_requests())
        for number in range(1, 5):
            answer = await tick(user.chatkit, item, "milk")
            item = get_replaced_widget(answer)
            assert render_lines(item)[1] == ("☑ milk" if number % 2 else "☐ milk")
            assert stored.tasks(user.name)[0].status == ("completed" if number % 2 else "pending")
        assert len(await model.finished_requests()) == requests, "the model is not asked"
        assert {actor for operation, actor in stored.task_calls(user.name) if operation != "add"} == {"person"}
        assert (await fetch_widgets(user.chatkit, thread))[-1] == item

    async def test_synchronous(self, user: User, model: ScriptedModel) -> None:
        _, item = await list_of(user, model, "milk", "bread")
        action = get_action(find_checkboxes(item)["milk"])
        for kind, line in ((action["type"], "☑ milk"), ("reopen_task", "☐ milk")):
            status, answer = await send_sync_action(user.chatkit, item, {**action, "type": kind})
            assert (status, render_lines(answer["updated_item"])[1]) == (200, line)

    async def test_model_is_told(self, user: User, model: ScriptedModel) -> None:
        thread, item = await list_of(user, model, 'milk "fresh"', "bread")
        done = get_replaced_widget(await tick(user.chatkit, item, 'milk "fresh"'))
        await tick(user.chatkit, done, 'milk "fresh"')
        await model.script(says("Hello."))
        await user.chatkit.say("hello", thread)
        messages = (await requests_to(model))[-1]["messages"]
        told = [m["content"] for m in messages if m["role"] == "user" and '"milk \\"fresh\\""' in m["content"]]
        assert len(told) == 2
        assert all("HiddenContext" in one for one in told)
        assert "HiddenContext" not in json.dumps(await user.chatkit.items(thread))

    async def test_older_state_of_a_page(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        """A click does what the box that was clicked says, whatever has been done since, and once."""
        _, old = await list_of(user, model, "milk", "bread")
        done = get_replaced_widget(await tick(user.chatkit, old, "milk"))
        assert get_replaced_widget(await tick(user.chatkit, old, "milk")) == done
        reopened = get_replaced_widget(await tick(user.chatkit, done, "milk"))
        assert render_lines(get_replaced_widget(await tick(user.chatkit, done, "milk"))) == render_lines(reopened)
        assert [task.status for task in stored.tasks(user.name)] == ["pending", "pending"]

    async def test_at_once(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        titles = ["milk", "bread", "eggs", "soap", "rice"]
        thread, item = await list_of(user, model, *titles)
        await asyncio.gather(*(tick(user.chatkit, item, title) for title in titles))
        shown = (await fetch_widgets(user.chatkit, thread))[-1]
        assert render_lines(shown)[1:] == [f"☑ {title}" for title in titles]
        assert {task.status for task in stored.tasks(user.name)} == {"completed"}

    async def test_all_widgets_of_the_task_follow(self, user: User, model: ScriptedModel) -> None:
        thread, item = await list_of(user, model, "milk", "bread", "eggs")
        await make_calls(user, model, call("update_task", task_id=2, title="rye bread"), thread=thread)
        deleted = await make_calls(user, model, call("delete_task", task_id=3), thread=thread)
        assert item["id"] in [event["item"]["id"] for event in deleted.of("thread.item.replaced")]
        [shown] = [one for one in await fetch_widgets(user.chatkit, thread) if one["id"] == item["id"]]
        assert render_lines(shown) == ["2 tasks", "☐ milk", "☐ rye bread", "☐ eggs (deleted)"]
        assert "onChangeAction" not in find_checkboxes(shown)["eggs (deleted)"]
        await tick(user.chatkit, shown, "rye bread")
        after = [one for one in await fetch_widgets(user.chatkit, thread) if "rye bread" in find_checkboxes(one)]
        assert len(after) == 3
        assert all(find_checkboxes(one)["rye bread"]["defaultChecked"] for one in after)

    async def test_deleted_task(self, user: User, model: ScriptedModel) -> None:
        thread, item = await list_of(user, model, "milk", "bread")
        await make_calls(user, model, call("delete_task", task_id=1))
        answer = await tick(user.chatkit, item, "milk")
        status, rejected = await send_sync_action(user.chatkit, item, get_action(find_checkboxes(item)["milk"]))
        assert answer.error
        assert status == 409
        assert answer.error["message"].startswith(rejected["error"])
        assert "milk (deleted)" in find_checkboxes((await fetch_widgets(user.chatkit, thread))[-1])

    async def test_repeat_whose_next_task_is_open(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        """It is not opened again beside the next one."""
        answer = await make_calls(user, model, call("add_task", title="milk", due="2026-11-27", repeat="FREQ=DAILY"))
        done = get_replaced_widget(await tick(user.chatkit, list_widgets(answer)[0], "milk"))
        assert (await tick(user.chatkit, done, "milk")).error
        assert [task.status for task in stored.tasks(user.name)] == ["completed", "pending"]

    PAYLOADS = (None, [], "1", 1, {}, {"task_id": None}, {"task_id": "1"}, {"task_id": 1.0}, {"task_id": True})
    NUMBERS = ({"task_id": -1}, {"task_id": 3}, {"task_id": 2**70}, {"task_id": [1]}, {"payload": {"task_id": 1}})

    async def test_what_the_widget_does_not_offer(
        self, user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
    ) -> None:
        _, item = await list_of(user, model, "milk", "bread")
        other = new_user()
        await make_calls(other, model, FIVE)
        before = stored.row_counts(user.name)
        for payload in (*self.PAYLOADS, *self.NUMBERS):
            action = {"type": "complete_task", "payload": payload}
            assert (await send_action(user.chatkit, item, action)).error, payload
            assert (await send_sync_action(user.chatkit, item, action))[0] == 400, payload
        assert (await send_action(user.chatkit, item, {"type": "delete_task", "payload": {"task_id": 1}})).error
        assert (await send_sync_action(other.chatkit, item, get_action(find_checkboxes(item)["milk"])))[0] == 404
        tasks = [*stored.tasks(user.name), *stored.tasks(other.name)]
        assert {task.status for task in tasks} == {"pending"}
        assert stored.row_counts(user.name) == before

    @pytest.mark.parametrize(
        "changes",
        [
            {"MCP_INTERNAL_URL": "http://127.0.0.1:9/mcp", "MCP_RESEND_SECONDS": "0.1"},
            {"MCP_TOKEN_SECRET": OTHER_SECRET},
        ],
        ids=["away", "refuses"],
    )
    async def test_without_the_task_server(
        self, changes: dict[str, str], services: Services, user: User, model: ScriptedModel
    ) -> None:
        """The click fails with a sentence, the conversation opens as it was, and the click can be repeated."""
        thread, item = await list_of(user, model, "milk", "bread")
        async with user_at(services, user, **changes) as cut_off:
            assert (await tick(cut_off.chatkit, item, "milk")).error
            assert (await send_sync_action(cut_off.chatkit, item, get_action(find_checkboxes(item)["milk"])))[0] == 503
            assert (await fetch_widgets(cut_off.chatkit, thread))[-1] == item
        assert render_lines(get_replaced_widget(await tick(user.chatkit, item, "milk")))[1] == "☑ milk"

    async def test_reader_leaves(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        """What was clicked is done, and shown when the conversation is opened."""
        thread, item = await list_of(user, model, "milk", "bread")
        with stored.lock_table("tasks"):
            params = {"thread_id": thread, "item_id": item["id"], "action": get_action(find_checkboxes(item)["milk"])}
            clicking = asyncio.create_task(user.chatkit.stream("threads.custom_action", **params))
            await until(stored.has_waiting_statements)
            clicking.cancel()
            await asyncio.wait([clicking])
        await until(lambda: stored.tasks(user.name)[0].status == "completed")

        async def is_ticked() -> bool:
            return render_lines((await fetch_widgets(user.chatkit, thread))[-1])[1] == "☑ milk"

        await until(is_ticked)


class TestUndo:
    async def test_addition(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        answer = await make_calls(user, model, MILK)
        [card] = list_widgets(answer)
        after = get_replaced_widget(await click_undo(user.chatkit, card))
        assert stored.titles(user.name) == []
        assert render_lines(after) == ["☐ milk (deleted) · Undone"]
        assert await fetch_widgets(user.chatkit, answer.thread_id) == [after]
        assert (await click_undo(user.chatkit, card)).error, "once"
        assert ("undo", "person") in stored.task_calls(user.name)
        await model.script(says("Hello."))
        await user.chatkit.say("hello", answer.thread_id)
        messages = (await requests_to(model))[-1]["messages"]
        assert len([message for message in messages if message["role"] == "user"]) > 3, "the model is told"

    async def test_whole_answer(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        thread, shown = await list_of(user, model, "milk", "bread", "eggs")
        done = await make_calls(
            user, model, call("complete_task", task_id=1), call("delete_task", task_id=2), thread=thread
        )
        cards, line = list_latest_widgets(done), get_total(done)
        assert [find_undo_buttons(card) for card in cards] == [[], []], "the line below undoes all"
        assert render_lines(line) == ["Completed 1 · Deleted 1 · [Undo]"]
        undone = (await click_undo(user.chatkit, line)).of("thread.item.replaced")[-1]["item"]
        assert render_lines(undone) == ["Undone: Completed 1 · Deleted 1"]
        assert stored.titles(user.name) == ["milk", "bread", "eggs"]
        assert {task.status for task in stored.tasks(user.name)} == {"pending"}
        items = {item["id"]: item for item in await user.chatkit.items(thread)}
        assert items[line["id"]] == undone
        assert render_lines(items[shown["id"]]) == ["3 tasks", "☐ milk", "☐ bread", "☐ eggs"]
        assert (await click_undo(user.chatkit, line)).error, "once"

    async def test_after_later_changes(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        """Nothing is undone, and the error names the task that was changed."""
        [card] = list_widgets(await make_calls(user, model, MILK))
        await make_calls(user, model, call("update_task", task_id=1, title="oat milk"))
        refused = await click_undo(user.chatkit, card)
        assert "oat milk" in (refused.error or {})["message"]
        assert stored.titles(user.name) == ["oat milk"]

    async def test_only_what_the_widget_offers_and_once(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        [milk] = list_widgets(await make_calls(user, model, MILK))
        [bread] = list_widgets(await make_calls(user, model, call("add_task", title="bread")))
        for payload in (get_action(find_undo_buttons(bread)[0])["payload"], {"batch": "run_1"}, {"batch": 1}, {}, None):
            assert (await send_action(user.chatkit, milk, {"type": "undo", "payload": payload})).error
        answers = await asyncio.gather(*(click_undo(user.chatkit, bread) for _ in range(4)))
        assert sum(answer.error is None for answer in answers) == 1
        assert stored.titles(user.name) == ["milk"]

    async def test_synchronous(self, user: User, model: ScriptedModel, stored: Stored) -> None:
        [card] = list_widgets(await make_calls(user, model, MILK))
        status, answer = await send_sync_action(user.chatkit, card, get_action(find_undo_buttons(card)[0]))
        assert (status, render_lines(answer["updated_item"])) == (200, ["☐ milk (deleted) · Undone"])
        assert stored.titles(user.name) == []


async def test_open_button_changes_nothing(user: User, model: ScriptedModel, stored: Stored) -> None:
    """It is for the page; a client that sends it has the widget again."""
    thread, item = await list_of(user, model, "milk", "bread")
    before = stored.row_counts(user.name)
    for row in item["widget"]["children"]:
        actions = ((part, part.get("onClickAction")) for part in walk_components(row))
        [button] = [part for part, action in actions if action and action["type"] == "open_task"]
        assert button["onClickAction"]["handler"] == "client"
        assert get_replaced_widget(await send_action(user.chatkit, item, get_action(button))) == item
    assert (await send_action(user.chatkit, item, {"type": "open_task", "payload": {"task_id": 99}})).error
    assert stored.row_counts(user.name) == before
    assert (await fetch_widgets(user.chatkit, thread))[-1] == item


@asynccontextmanager
async def counted_requests(services: Services, user: User) -> AsyncIterator[tuple[User, list[str]]]:
    """Yields the user at a backend with a task server of its own, and the paths that are requested from that."""
    environment = services.backend_environment()
    names = ("mcp_url", "mcp_token_secret")
    settings = {name: environment[name.upper()] for name in names} | {"database_url": services.database_url}
    app, paths = create_app(McpSettings.model_validate(settings)), list[str]()

    async def count(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            paths.append(scope["path"])
        await app(scope, receive, send)

    async with serve(count) as url, user_at(services, user, MCP_INTERNAL_URL=f"{url}/mcp") as there:
        yield there, paths


async def test_readers_of_a_run_share_what_is_loaded_for_cards(
    services: Services, user: User, model: ScriptedModel
) -> None:
    thread, _ = await list_of(user, model, "milk", "bread")
    completion = calls(call("complete_task", task_id=1), text="one two three ")
    await model.script({**completion, "chunk_chars": 4, "hold_after": 2}, says("Fine."))
    async with counted_requests(services, user) as (there, paths):
        following = {"thread_id": thread, "action": FOLLOW}
        async with (
            open_answer(there, "complete milk", thread) as first,
            there.chatkit.open("threads.custom_action", **following) as second,
            there.chatkit.open("threads.custom_action", **following) as third,
        ):
            answers = [Answer([await anext(events)]) for events in (second, third)]
            paths.clear()
            await model.release()
            for answer, events in zip(answers, (second, third), strict=True):
                answer.events += [event async for event in events]
    for answer in (first, *answers):
        assert render_lines(list_widgets(answer)[-1]) == ["☑ milk · Completed · [Undo]"]
        assert render_lines(get_replaced_widget(answer)) == ["2 tasks, 1 done", "☑ milk", "☐ bread"]
    assert paths.count("/tasks") == 1


async def test_replay_of_a_run_loads_its_tasks_once(services: Services, user: User, model: ScriptedModel) -> None:
    thread, shown = await list_of(user, model, "milk", "bread", "eggs", "soap")
    await model.script(*(calls(call("complete_task", task_id=number)) for number in range(1, 5)), says("Fine."))
    message = {"thread_id": thread, "input": user_input("complete all")}
    answers, loads = list[Answer](), list[int]()
    for _ in range(2):  # at two backends, as one would share what it has loaded
        async with (
            counted_requests(services, user) as (there, paths),
            there.chatkit.open("threads.add_user_message", {"idempotency_key": "k"}, **message) as events,
        ):
            answers.append(Answer([event async for event in events]))
            loads.append(paths.count("/tasks"))
    live, replay = answers
    assert loads[1] == 1
    assert [render_lines(card)[0] for card in list_widgets(live)] == [
        f"☑ {title} · Completed · [{undo}]"
        for title, undo in (("milk", "Undo"), ("bread", "Undo all"), ("eggs", "Undo all"), ("soap", "Undo all"))
    ]
    for answer in answers:
        latest = dict[str, Json]()
        for event in (*answer.of("thread.item.done"), *answer.of("thread.item.replaced")):
            assert latest.get(event["item"]["id"]) != event["item"], "it was sent like this before"
            latest[event["item"]["id"]] = event["item"]
        assert render_lines(latest[shown["id"]])[0] == "4 tasks, 4 done"
    assert list_latest_widgets(replay) == list_latest_widgets(live)


@pytest.mark.parametrize("kind", ["items.list", "threads.get_by_id"])
async def test_opened_conversation_shows_changes_made_elsewhere(kind: str, user: User, model: ScriptedModel) -> None:
    thread, item = await list_of(user, model, "milk", "bread", "eggs", "soap")
    await make_calls(
        user,
        model,
        call("complete_task", task_id=1),
        call("update_task", task_id=2, title="rye bread", due="2026-11-27 15:00"),
        call("delete_task", task_id=3),
    )
    params = {"limit": 100, "order": "asc"} if kind == "items.list" else {}
    answer = await user.chatkit.ask(kind, thread_id=thread, **params)
    [now] = [one for one in answer.get("items", answer)["data"] if one["id"] == item["id"]]
    assert render_lines(now) == [
        "3 tasks, 1 done",
        "☑ milk",
        "☐ rye bread · Fri 27 Nov 15:00",
        "☐ eggs (deleted)",
        "☐ soap",
    ]
    assert now["copy_text"].splitlines()[0] == "- [x] milk"


NO_SIGN_IN = {
    **{"AUTH_MODE": "none", "AUTH_JWT_SECRET": "", "AUTH_ISSUER": "", "AUTH_AUDIENCE": ""},
    **{"AGENTS": "off", "WORKSPACE_URL": "", "WORKSPACE_TOKEN_SECRET": ""},
}


@asynccontextmanager
async def chat_of(services: Services, secret: str) -> AsyncIterator[ChatKit]:
    async with (
        serve_tools(services.database_url, mcp_token_secret=secret or None) as tools,
        local_backend(
            services,
            **NO_SIGN_IN,
            MCP_INTERNAL_URL=str(tools.base_url.join("/mcp")),
            MCP_URL="",
            MCP_TOKEN_SECRET=secret,
        ) as own,
        ChatKit(own.url) as chat,
    ):
        yield chat


@pytest.mark.parametrize("secret", [MCP_TOKEN_SECRET, ""], ids=["secret", "no secret"])
async def test_undo(services: Services, model: ScriptedModel, secret: str) -> None:
    """Without a secret no call of the page can be trusted to name the answer it undoes: a sentence says what to set."""
    async with chat_of(services, secret) as chat:

        async def titles() -> set[str]:
            return {task["title"] for task in (await chat.http.get("/tasks?view=all")).json()["tasks"]}

        before = await titles()
        title = f"milk, {'with' if secret else 'without'} a secret"
        added = (await chat.http.post("/tasks", json={"title": title})).json()
        undone = await chat.http.post("/tasks/undo", json={"batch": added["batch"]})
        assert undone.status_code == (200 if secret else 400)
        assert ("MCP_TOKEN_SECRET" in undone.text) is not bool(secret)
        assert await titles() == (before if secret else before | {title})
        if not secret:
            await model.script(calls(call("update_task", task_id=added["tasks"][0]["id"], undo=True)), says("Undone."))
            await chat.say("undo that")
        assert await titles() == before, "the assistant can undo in either case"

        await model.script(add_task(title), says("Added."))
        [card] = list_widgets(await chat.say("add milk"))
        clicked = await click_undo(chat, card)
        assert ("MCP_TOKEN_SECRET" in str(clicked.error)) is not bool(secret)
        assert await titles() == (before if secret else before | {title})
