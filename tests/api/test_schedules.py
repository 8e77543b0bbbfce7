"""Schedules: how they are made, changed and run, and that nothing runs twice, unasked or for the wrong user."""

import asyncio
import signal
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.logins import as_service
from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS
from tests.support.approvals import decide, newest_run, pending
from tests.support.backends import local_backend
from tests.support.fixtures import NewUser
from tests.support.model_requests import outputs_of, requests_to
from tests.support.script import add_task, add_tasks, call, calls, delete_tasks, says, start_coder
from tests.support.stack import Services, Stack, StackSettings, run_services, run_stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until

Json = dict[str, Any]
SUMMARY: Json = {"text": "summarise what I did", "repeat": "FREQ=WEEKLY;BYDAY=FR", "time": "16:00"}
CALL = calls(call("add_schedule", text="summarise what I did", repeat="FREQ=WEEKLY;BYDAY=FR", time="16:00"))
DAILY: Json = {"text": "what is open?", "repeat": "FREQ=DAILY", "time": "08:00"}

pytestmark = pytest.mark.long(seconds=20)


@pytest.fixture(scope="module")
def own_stack(server_url: str, template: str) -> Iterator[Stack]:
    """A stack with a database of its own, as every backend of a database starts what is due in it."""
    from tests.conftest import new_database

    settings = StackSettings(backends=2, environment={"APPROVALS": "bulk,agents"})
    with (
        tempfile.TemporaryDirectory(prefix="todo-schedules-", ignore_cleanup_errors=True) as name,
        new_database(server_url, template) as (_, url),
        run_services(as_service(url), Path(name)) as services,
        run_stack(services, settings, Path(name)) as stack,
    ):
        yield stack


@pytest.fixture
def stack(own_stack: Stack) -> Stack:
    own_stack.ensure_running()
    return own_stack


@pytest.fixture
def services(own_stack: Stack) -> Services:
    return own_stack.services


@pytest.fixture(autouse=True)
def no_other_schedules(stack: Stack) -> Iterator[None]:
    yield
    with Stored(stack.database_url) as stored:
        stored.delete_schedules()


async def make(user: User, **values: Any) -> Json:
    response = await user.runs.http.post("/schedules", json=values)
    assert response.status_code == 201, response.text
    return response.json()


async def list_all(user: User) -> list[Json]:
    return (await user.runs.http.get("/schedules")).raise_for_status().json()["schedules"]


async def only(user: User) -> Json:
    [schedule] = await list_all(user)
    return schedule


async def change(user: User, schedule: Json, **values: Any) -> Json:
    response = await user.runs.http.patch(f"/schedules/{schedule['id']}", json=values)
    assert response.status_code == 200, response.text
    return response.json()


async def run_now(user: User, schedule: Json) -> Json:
    """Runs a schedule, and returns it when its run has ended or waits."""
    response = await user.runs.http.post(f"/schedules/{schedule['id']}/run")
    assert response.status_code == 200, response.text
    return await when_last_is(user, "completed", "failed", "waiting")


async def when_last_is(user: User, *states: str) -> Json:
    async def find() -> Json | None:
        schedule = await only(user)
        return schedule if schedule["last"] and schedule["last"]["state"] in states else None

    return await until(find)


async def when_skipped(user: User) -> Json:
    async def find() -> Json | None:
        schedule = await only(user)
        return schedule if schedule["skipped"] else None

    return await until(find)


async def last_request(model: ScriptedModel) -> Json:
    return (await requests_to(model))[-1]


def runs_by_schedule(stored: Stored, user: str) -> list[str]:
    return [row["options"]["schedule"] for row in stored.rows_of(user, "runs") if "schedule" in row["options"]]


# How they are made


async def test_the_assistant_makes_one_after_approval(user: User, model: ScriptedModel) -> None:
    await model.script(CALL, says("Every Friday at 16:00, from 27 November on."))
    chat = "plans"
    async with user.runs.interact(chat, "every Friday at 16:00 summarise what I did") as events:
        async for event in events:
            if event.name == "approval_required":
                break
    run = await newest_run(user, chat)
    [approval] = pending(run)
    assert approval["text"].split("\n") == [
        "Do this again and again",
        "when: every Friday at 16:00",
        "do: summarise what I did",
        "Each time is an answer that uses your model. You are asked before what needs your approval.",
    ]
    assert await list_all(user) == []
    ended = await decide(user, chat, approval)
    assert ended["status"] == "COMPLETED"
    schedule = await only(user)
    assert {**SUMMARY, "when": "every Friday at 16:00", "state": "on"}.items() <= schedule.items()
    assert schedule["next_at"] == "2026-11-27T15:00:00Z"
    assert outputs_of(await last_request(model)) == [
        "Made: every Friday at 16:00. The first time is Fri 2026-11-27 16:00, Europe/Berlin."
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"text": "sum up", "repeat": "every day", "time": "16:00"}, "repeat has the unknown part"),
        ({"text": "sum up", "repeat": "FREQ=DAILY;FROM=DONE", "time": "16:00"}, "which only tasks can have"),
        ({"text": "sum up", "repeat": "FREQ=DAILY", "time": "4 pm"}, "time must be a local time"),
        ({"text": " ", "repeat": "FREQ=DAILY", "time": "16:00"}, "text must say"),
        ({"text": "sum up"}, "it needs text, repeat and time"),
    ],
)
async def test_a_call_that_cannot_be_made_asks_nobody(
    user: User, model: ScriptedModel, arguments: Json, sentence: str
) -> None:
    await model.script(calls(call("add_schedule", **arguments)), says("That did not work."))
    await user.runs.say("plans", "do it daily")
    assert sentence in outputs_of(await last_request(model))[0]
    assert await list_all(user) == []


async def test_it_asks_whatever_is_approved_in_advance(services: Services, model: ScriptedModel) -> None:
    await model.script(CALL)
    async with local_backend(services, APPROVALS="none") as backend, User(backend) as user:
        async with user.runs.interact("plans", "sum up on Fridays") as events:
            async for event in events:
                if event.name == "approval_required":
                    break
        assert (await newest_run(user, "plans"))["status"] == "WAITING_APPROVAL"


async def test_a_text_is_read_before_it_is_made(user: User) -> None:
    async def preview(text: str) -> Json:
        return (await user.runs.http.get("/schedules/preview", params={"text": text})).raise_for_status().json()

    assert await preview("Every Friday at 16:00 summarise what I did") == {
        "text": "summarise what I did",
        "repeat": "FREQ=WEEKLY;BYDAY=FR",
        "time": "16:00",
        "when": "every Friday at 16:00",
        "next_at": "2026-11-27T15:00:00Z",
        "problem": None,
    }
    assert (await preview("tell me what is due today every morning at 7"))["text"] == "tell me what is due today"
    for text, problem in (
        ("summarise what I did", "Say how often"),
        ("every Friday summarise", "Say at what time, such as: every Friday at 16:00."),
        ("every Friday at 16:00", "Say what is to be done every Friday at 16:00"),
        ("every hour sum up", "Say how often"),
        ("", "Say how often"),
    ):
        assert (await preview(text))["problem"].startswith(problem), text


async def test_one_is_changed_paused_and_deleted(user: User) -> None:
    schedule = await make(user, **SUMMARY)
    assert (await change(user, schedule, time="17:30"))["next_at"] == "2026-11-27T16:30:00Z"
    assert (await change(user, schedule, repeat="FREQ=DAILY"))["when"] == "every day at 17:30"
    changed = await change(user, schedule, text="what is open?", only_if_needed=True)
    assert (changed["text"], changed["only_if_needed"]) == ("what is open?", True)
    assert (await change(user, schedule, paused=True))["state"] == "paused"
    assert (await change(user, schedule, paused=False))["state"] == "on"
    for body in ({}, {"time": "25:00"}, {"repeat": "FREQ=HOURLY"}, {"text": ""}, {"zone": "UTC"}, {"paused": 1}):
        response = await user.runs.http.patch(f"/schedules/{schedule['id']}", json=body)
        assert response.status_code == 400, body
    assert (await only(user)) == await change(user, schedule, paused=False)
    assert (await user.runs.http.delete(f"/schedules/{schedule['id']}")).status_code == 204
    assert await list_all(user) == []
    for response in (
        await user.runs.http.delete(f"/schedules/{schedule['id']}"),
        await user.runs.http.post(f"/schedules/{schedule['id']}/run"),
        await user.runs.http.patch(f"/schedules/{schedule['id']}", json={"paused": True}),
    ):
        assert response.status_code == 404


async def test_the_eleventh_is_rejected(user: User) -> None:
    for _ in range(10):
        await make(user, **SUMMARY)
    response = await user.runs.http.post("/schedules", json=SUMMARY)
    assert response.status_code == 429
    assert response.json()["error"] == "You have 10 schedules, which is the limit. Delete one of them first."
    assert len(await list_all(user)) == 10


async def test_nobody_else_sees_or_touches_one(user: User, new_user: NewUser, model: ScriptedModel) -> None:
    schedule, other = await make(user, **SUMMARY), new_user()
    path = f"/schedules/{schedule['id']}"
    for response in (
        await other.runs.http.patch(path, json={"paused": True}),
        await other.runs.http.post(f"{path}/run"),
        await other.runs.http.delete(path),
    ):
        assert response.status_code == 404
    assert await list_all(other) == []
    assert await only(user) == schedule


# How they run


async def test_due_ones_run_once_in_the_zone_of_their_user(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """Each with the tasks of its own user."""
    other = new_user()
    users = (user, other)
    for one in users:
        await model.script(add_task(f"milk of {one.name}"), says("Added."))
        await one.runs.say("lists", "add milk")
        await make(one, **DAILY)
    await model.script(*[{"when": "what is open", **calls(call("list_tasks"))}] * 2, *[says("See the list.")] * 2)
    for one in users:
        stored.make_schedules_due(one.name, days=1)
    for one in users:
        schedule = await when_last_is(one, "completed")
        assert schedule["last"]["answer"] == "See the list."
        assert schedule["next_at"] == "2026-11-26T07:00:00Z"
        [run] = [run for run in stored.rows_of(one.name, "runs") if "schedule" in run["options"]]
        [listed] = [row for row in stored.rows_of(one.name, "tool_calls") if row["run_id"] == run["id"]]
        assert f"milk of {one.name}" in listed["output"]
        assert {f"milk of {each.name}" in listed["output"] for each in users if each is not one} == {False}


async def test_one_that_cannot_be_read_holds_up_no_others(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    """As after an older backup was restored."""
    other = new_user()
    for one in (user, other):
        await make(one, **DAILY)
    stored.set_repeat(other.name, "FREQ=SOMETIMES")
    await model.script(says("Nothing."))
    stored.make_schedules_due(other.name, days=9)
    stored.make_schedules_due(user.name, days=1)
    assert (await when_last_is(user, "completed"))["last"]["answer"] == "Nothing."


async def test_two_first_runs_at_once(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Neither has a conversation yet, in which the other one would find it busy."""
    await model.script(HANGS)
    schedule = await make(user, **DAILY)
    responses = await asyncio.gather(*[user.runs.http.post(f"/schedules/{schedule['id']}/run") for _ in range(4)])
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]
    assert len(runs_by_schedule(stored, user.name)) == len(stored.conversations(user.name)) == 1
    running = await only(user)
    await user.runs.cancel(running["chat_id"], running["last"]["run_id"])


async def test_what_was_missed_is_made_up_for_once(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Nothing."))
    await make(user, **DAILY)
    stored.make_schedules_due(user.name, days=20)
    schedule = await when_last_is(user, "completed")
    assert schedule["next_at"] == "2026-11-26T07:00:00Z"
    assert len(runs_by_schedule(stored, user.name)) == 1


async def test_one_that_ends_has_its_last_run(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Once."))
    schedule = await make(user, **{**DAILY, "repeat": "FREQ=DAILY;COUNT=1"})
    stored.make_schedules_due(user.name, days=3)
    ended = await when_last_is(user, "completed")
    assert (ended["state"], ended["next_at"]) == ("ended", None)
    await change(user, schedule, paused=True)
    response = await user.runs.http.patch(f"/schedules/{schedule['id']}", json={"paused": False})
    assert response.status_code == 409
    assert response.json()["error"].startswith("This schedule has ended")
    assert (await change(user, schedule, repeat="FREQ=DAILY", paused=False))["state"] == "on"


async def test_a_paused_one_does_not_run(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(says("Nothing."))
    schedule = await make(user, **DAILY)
    await change(user, schedule, paused=True)
    await make(user, **{**DAILY, "text": "the other one"})
    stored.make_schedules_due(user.name, days=2)

    async def has_run() -> bool:
        return any(each["last"] and each["last"]["state"] == "completed" for each in await list_all(user))

    await until(has_run)
    assert runs_by_schedule(stored, user.name) == [(await list_all(user))[1]["id"]]
    resumed = await change(user, schedule, paused=False)
    assert resumed["next_at"] == "2026-11-26T07:00:00Z"  # not what it has missed


def have_begun(stored: Stored, users: Sequence[User], most: int) -> bool:
    return sum(len(runs_by_schedule(stored, one.name)) for one in users) >= most


@pytest.mark.long(seconds=30)
@pytest.mark.parametrize(("count", "rounds"), [(4, 2), pytest.param(20, 4, marks=pytest.mark.extended)])
async def test_each_runs_once_whoever_is_killed(
    stack: Stack, new_user: NewUser, model: ScriptedModel, stored: Stored, count: int, rounds: int
) -> None:
    """Two processes look, and one after the other is killed; what had begun is not begun again."""
    users = [new_user() for _ in range(2)]
    for one in users:
        for number in range(count // 2):
            await make(one, **{**DAILY, "text": f"say {number}"})
    for number in range(1, rounds + 1):
        await model.script(*[{**says("Nothing new today."), "token_delay": 0.05, "chunk_chars": 1}] * 3 * count)
        for one in users:
            stored.make_schedules_due(one.name, days=number)
        await until(partial(have_begun, stored, users, count * (number - 1) + 1))
        stack.backends[number % 2].end(signal.SIGKILL)
        stack.ensure_running()
        await until(partial(have_begun, stored, users, count * number))
        await until(lambda: not stored.is_run_running())
    for one in users:
        counts = runs_by_schedule(stored, one.name)
        assert {counts.count(each) for each in counts} == {rounds}


async def test_limits_count_and_are_said(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script({**says("Hello."), "usage": {"prompt_tokens": 5_000_000, "completion_tokens": 1}})
    await user.runs.say("lists", "hello")
    await make(user, **DAILY)
    stored.make_schedules_due(user.name, days=1)
    schedule = await when_skipped(user)
    assert schedule["skipped"]["reason"].startswith("One of your limits was reached")
    assert (schedule["last"], schedule["next_at"]) == (None, "2026-11-26T07:00:00Z")
    assert runs_by_schedule(stored, user.name) == []
    response = await user.runs.http.post(f"/schedules/{schedule['id']}/run")
    assert response.status_code == 429
    assert response.json()["error"].startswith("You have used up your 5,000,000 model tokens")


async def test_disabled_users_and_those_without_an_account_have_no_runs(
    stack: Stack, services: Services, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(*[says("Hello.")] * 3)
    enabled, disabled, removed = (new_user() for _ in range(3))
    for one in (enabled, disabled, removed):
        await make(one, **DAILY)
    for backend in stack.backends:
        backend.end()
    for one in (enabled, disabled):
        stored.add_named_account(one.name)
    stored.disable_account(disabled.name)
    for one in (enabled, disabled, removed):
        stored.make_schedules_due(one.name, days=1)
    async with local_backend(services, AUTH_MODE="password", AUTH_JWT_SECRET="", AUTH_ISSUER="", AUTH_AUDIENCE=""):

        def is_over() -> bool:
            states = [stored.rows_of(one.name, "schedules")[0] for one in (disabled, removed)]
            return stored.run_statuses(enabled.name) == ["completed"] and all(each["paused"] for each in states)

        await until(is_over)
    stored.delete_accounts()
    stack.ensure_running()
    for one in (disabled, removed):
        assert runs_by_schedule(stored, one.name) == []
        assert (await only(one))["skipped"]["reason"] == "Your account was disabled."


async def test_a_user_whom_the_provider_refuses_has_no_runs_until_they_sign_in_again(
    stack: Stack, services: Services, user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(says("Hello."))
    await make(user, **DAILY)
    for backend in stack.backends:
        backend.end()
    stored.add_named_account(user.name)
    stored.set_provider_refused(user.name, is_refused=True)
    stored.make_schedules_due(user.name, days=2)
    async with local_backend(services, AUTH_MODE="password", AUTH_JWT_SECRET="", AUTH_ISSUER="", AUTH_AUDIENCE=""):
        await until(lambda: stored.rows_of(user.name, "schedules")[0]["skip_reason"] == "provider")
        assert stored.run_statuses(user.name) == []
        stored.set_provider_refused(user.name, is_refused=False)
        stored.make_schedules_due(user.name, days=1)
        await until(lambda: stored.run_statuses(user.name) == ["completed"])
    stored.delete_accounts()
    stack.ensure_running()


async def test_one_that_waits_for_approval_is_skipped_and_goes_on_after_it(
    user: User, model: ScriptedModel, stored: Stored
) -> None:
    await model.script(
        *(add_tasks(11), says("Added."), delete_tasks(*range(1, 12)), says("Deleted.")),
    )
    await user.runs.say("lists", "add them")
    await make(user, **DAILY)
    stored.make_schedules_due(user.name, days=1)
    schedule = await when_last_is(user, "waiting")
    stored.make_schedules_due(user.name, days=1)
    skipped = await when_skipped(user)
    assert skipped["skipped"]["reason"] == "The one before still waits for your approval."
    assert skipped["last"]["state"] == "waiting"
    assert len(stored.titles(user.name)) == 11
    [approval] = pending(await newest_run(user, schedule["chat_id"]))
    await decide(user, schedule["chat_id"], approval)
    ended = await when_last_is(user, "completed")
    assert (ended["last"]["changes"], ended["last"]["answer"]) == ("Deleted 11", "Deleted.")
    assert stored.titles(user.name) == []


async def test_one_that_still_runs_is_skipped(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(HANGS)
    await make(user, **DAILY)
    stored.make_schedules_due(user.name, days=1)
    schedule = await when_last_is(user, "running")
    stored.make_schedules_due(user.name, days=1)
    assert (await when_skipped(user))["skipped"]["reason"] == "The one before was still running."
    await user.runs.cancel(schedule["chat_id"], schedule["last"]["run_id"])
    await when_last_is(user, "cancelled")


async def test_what_is_always_allowed_is_asked_for(user: User, model: ScriptedModel, stored: Stored) -> None:
    """Also what the user has allowed in the conversation of the schedule."""
    write = calls(call("write_file", path="a.txt", content="x"))
    work = [start_coder("write it"), write, says("Written."), says("Done.")]
    await model.script(*work, start_coder("write it"))
    schedule = await make(user, **SUMMARY)
    waiting = await run_now(user, schedule)
    assert waiting["last"]["state"] == "waiting"
    run = await newest_run(user, waiting["chat_id"])
    [approval] = pending(run)
    await user.runs.approve(waiting["chat_id"], run["id"], approval["approval_id"], approved=True, always=True)
    await when_last_is(user, "completed")
    assert stored.consents(user.name) == ["do_with_coder"]
    assert (await run_now(user, schedule))["last"]["state"] == "waiting"


async def test_a_run_makes_no_schedule(user: User, model: ScriptedModel) -> None:
    await model.script(CALL, says("I cannot do that."))
    schedule = await run_now(user, await make(user, **DAILY))
    assert schedule["last"]["state"] == "completed"
    assert len(await list_all(user)) == 1
    first, last = await requests_to(model)
    assert "add_schedule" not in [tool["function"]["name"] for tool in first["tools"]]
    assert "add_schedule" in outputs_of(last)[0]
    assert "not found" in outputs_of(last)[0]


@pytest.mark.long(seconds=60)
async def test_the_hundredth_run_reads_as_much_as_the_fifth(user: User, model: ScriptedModel) -> None:
    """It reads the last three results, in order, and nothing else of the conversation."""
    schedule = await make(user, **DAILY)
    sizes, text = list[int](), ""
    for number in range(1, 101):
        await model.script(calls(call("list_tasks")), says(f"Result {number:03}."))
        await run_now(user, schedule)
        request = (await requests_to(model))[0]
        text = str(request["messages"])
        assert [f"Result {each:03}." in text for each in range(1, number)] == [
            each >= number - 3 for each in range(1, number)
        ]
        sizes.append(len(text))
        await model.reset()
    assert abs(sizes[99] - sizes[4]) <= 8  # characters, as of a time
    assert "Result 097" in text
    assert text.index("Result 097") < text.index("Result 098") < text.index("Result 099")


async def test_the_user_goes_on_with_the_conversation(user: User, model: ScriptedModel) -> None:
    """Their message is no run of the schedule: the model reads the whole conversation and may make schedules."""
    await model.script(says("Three are open."), says("Milk, bread and salt."))
    schedule = await run_now(user, await make(user, **DAILY))
    await user.runs.say(schedule["chat_id"], "which?")
    request = await last_request(model)
    assert [message["content"] for message in request["messages"]][-4:][0] == "what is open?"
    assert "add_schedule" in [tool["function"]["name"] for tool in request["tools"]]


async def test_a_deleted_conversation_is_made_anew(user: User, model: ScriptedModel) -> None:
    await model.script(says("One."), says("Two."))
    schedule = await run_now(user, await make(user, **DAILY))
    assert (await user.runs.http.delete(f"/chats/{schedule['chat_id']}")).status_code in (200, 204)
    assert (await only(user))["chat_id"] is None
    again = await run_now(user, schedule)
    assert again["chat_id"] not in (None, schedule["chat_id"])


async def test_another_zone_of_the_user_moves_the_times(user: User) -> None:
    await make(user, **SUMMARY)
    assert (await user.runs.http.patch("/profile", json={"time_zone": "America/New_York"})).status_code == 200
    schedule = await only(user)
    assert (schedule["next_at"], schedule["time_zone"]) == ("2026-11-27T21:00:00Z", "America/New_York")


# What is reported


async def test_results_and_what_needs_attention_are_alerts(user: User, model: ScriptedModel, stored: Stored) -> None:
    """One for each outcome; with `only_if_needed`, none of what completed."""
    (await user.runs.http.patch("/alerts/settings", json={"on": True})).raise_for_status()
    schedule = await make(user, **DAILY)

    async def reported(count: int) -> list[str]:
        def find() -> list[str] | None:
            rows = sorted(stored.rows_of(user.name, "alerts"), key=lambda row: row["id"])
            assert {row["kind"] for row in rows} <= {"schedule"}
            return [row["outcome"] for row in rows] if len(rows) >= count else None

        return await until(find)

    await model.script(says("Nothing."), add_tasks(11), says("Added."))
    await run_now(user, schedule)
    assert await reported(1) == ["completed"]
    await change(user, schedule, only_if_needed=True)
    await run_now(user, schedule)
    await model.script(says(""), says(""))
    assert (await run_now(user, schedule))["last"]["problem"] == "The model gave an empty answer. Try again."
    assert await reported(2) == ["completed", "failed"]
    await model.script(delete_tasks(*range(1, 12)), says("Deleted."))
    waiting = await run_now(user, schedule)
    assert await reported(3) == ["completed", "failed", "waiting"]
    for _ in range(2):
        stored.make_schedules_due(user.name, days=2)
        await until(lambda: stored.rows_of(user.name, "schedules")[0]["next_at"] > "2026-11-25T12")
    assert await reported(4) == ["completed", "failed", "waiting", "skipped"]
    [approval] = pending(await newest_run(user, waiting["chat_id"]))
    await decide(user, waiting["chat_id"], approval)
    await when_last_is(user, "completed")
    assert len(await reported(4)) == 4
