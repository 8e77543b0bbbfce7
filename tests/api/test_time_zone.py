"""The user's time zone: of the request, else the stored one, else the server's."""

from tests.scripted_model import ScriptedModel
from tests.support.answers import HANGS, find_thread, start_run
from tests.support.model_requests import list_clock_notes, requests_to
from tests.support.script import add_task, says
from tests.support.stored import Stored
from tests.support.users import User

HEADER = "X-Time-Zone"


def set_zone(user: User, zone: str | None) -> None:
    user.chatkit.http.headers.pop(HEADER, None)
    if zone is not None:
        user.chatkit.http.headers[HEADER] = zone


async def last_notes(model: ScriptedModel) -> list[str]:
    return list_clock_notes((await requests_to(model))[-1])


async def test_first_zone_is_stored_and_others_are_of_their_request(user: User, model: ScriptedModel) -> None:
    """It decides which day it is: at 9 in Berlin it is the evening before in Pago Pago."""
    await model.script(*[says("Hello.")] * 5)
    for zone, day in (
        (None, "Wed 2026-11-25"),
        ("Pacific/Pago_Pago", "Tue 2026-11-24"),
        (None, "Tue 2026-11-24"),
        ("Asia/Tokyo", "Wed 2026-11-25"),
        (None, "Tue 2026-11-24"),
    ):
        set_zone(user, zone)
        await user.chatkit.say("hello")
        [note] = await last_notes(model)
        assert note.startswith(day)
        assert zone is None or note.endswith(zone)


async def test_tools_know_the_zone(user: User, model: ScriptedModel, stored: Stored) -> None:
    await model.script(add_task("run", due="today"), says("Added."))
    set_zone(user, "Pacific/Pago_Pago")
    await user.chatkit.say("I ran")
    assert [task.due for task in stored.tasks(user.name)] == ["2026-11-24"]


async def test_unknown_zone_is_an_error(user: User, stored: Stored) -> None:
    """Which zones are known is in tests/unit/test_dates.py."""
    for zone, named in (
        ("Mars/Olympus", "Mars/Olympus"),
        ("Etc/Unknown", "Etc/Unknown"),
        ("+03:00", "+03:00"),
        ("A" * 5_000, "A" * 100 + "…"),
        ("", "empty"),
    ):
        set_zone(user, zone)
        for method, path in (("GET", "/chats"), ("GET", "/tasks?view=all"), ("POST", "/chatkit"), ("GET", "/memory")):
            response = await user.chatkit.http.request(method, path, json={} if method == "POST" else None)
            assert response.status_code == 400
            assert response.json() == {
                "error": f"X-Time-Zone must be a time zone of IANA's database, such as Europe/Berlin, and not {named}."
            }
    assert stored.row_counts(user.name) == {}


async def test_rejected_message_stores_no_zone(user: User, model: ScriptedModel) -> None:
    await model.script(HANGS, says("Hello."))
    run = await start_run(user, "one", "count", until="answer_delta")
    set_zone(user, "Asia/Tokyo")
    assert (await user.chatkit.say("and this?", await find_thread(user, "one"))).error is not None
    await user.runs.cancel("one", run)
    set_zone(user, None)
    await user.chatkit.say("hello")
    assert [note.split(", ")[1] for note in await last_notes(model)] == ["Europe/Berlin"]


async def test_notifications_are_mentioned(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 3)
    thread = (await user.chatkit.say("hello")).thread_id
    for is_on in (True, False):
        changed = await user.chatkit.http.patch("/alerts/settings", json={"on": is_on})
        assert changed.status_code == 200, changed.text
        await user.chatkit.say("hello again", thread)
    assert ["notifications on" in note for note in await last_notes(model)] == [False, True, False]


async def test_calendar_feed_is_mentioned(user: User, model: ScriptedModel) -> None:
    await model.script(*[says("Hello.")] * 3)
    thread = (await user.chatkit.say("hello")).thread_id
    assert (await user.runs.http.post("/calendar")).status_code == 201
    await user.chatkit.say("hello again", thread)
    await user.runs.http.delete("/calendar")
    await user.chatkit.say("bye", thread)
    assert ["calendar feed on" in note for note in await last_notes(model)] == [False, True, False]
