"""A user's name and time zone: the zone of a request decides that request alone, and only the user changes theirs."""

from typing import Any

import httpx2
import pytest

from tests.api.test_calendar import create_url, read
from tests.mcp.wire import call, send
from tests.serving import http_client
from tests.support.fixtures import NewUser
from tests.support.stored import Stored
from tests.support.users import User

HEADER = "X-Time-Zone"
BERLIN, PAGO, TOKYO = "Europe/Berlin", "Pacific/Pago_Pago", "Asia/Tokyo"


async def profile(user: User, zone: str | None = None) -> dict[str, Any]:
    headers = {HEADER: zone} if zone else {}
    return (await user.runs.http.get("/profile", headers=headers)).raise_for_status().json()


async def change(user: User, **fields: Any) -> httpx2.Response:
    return await user.runs.http.patch("/profile", json=fields)


async def test_first_zone_is_stored_once(user: User, stored: Stored) -> None:
    assert await profile(user) == {"user_id": user.name, "name": "", "time_zone": None}
    assert stored.row_counts(user.name) == {}
    assert (await profile(user, BERLIN))["time_zone"] == BERLIN
    assert (await profile(user, TOKYO))["time_zone"] == BERLIN


@pytest.mark.parametrize("api", ["tasks", "messages"])
async def test_zone_of_a_request_is_not_stored(api: str, user: User, stored: Stored) -> None:
    """Of two devices, each has its own today; the calendar is in the stored zone, whatever they send."""
    await change(user, time_zone=BERLIN)
    url = await create_url(user)
    for zone, day in ((PAGO, "2026-11-24"), (TOKYO, "2026-11-25"), (BERLIN, "2026-11-25")):
        headers = {HEADER: zone}
        if api == "tasks":
            added = await user.runs.http.post("/tasks", json={"text": f"run {zone} today"}, headers=headers)
            assert added.json()["tasks"][0]["due"] == day
        else:
            user.chatkit.http.headers[HEADER] = zone
            await user.chatkit.say("hello")
        assert (await profile(user))["time_zone"] == BERLIN
        assert f"X-WR-TIMEZONE:{BERLIN}" in (await read(url)).text
    assert (await change(user, time_zone=PAGO)).json()["time_zone"] == PAGO
    assert f"X-WR-TIMEZONE:{PAGO}" in (await read(url)).text
    [row] = stored.rows_of(user.name, "profiles")
    assert row["time_zone"] == PAGO


async def test_tools_read_the_stored_zone(user: User, stored: Stored) -> None:
    """An MCP client from outside names none; one that does changes nothing."""
    await change(user, time_zone=PAGO)
    async with http_client(user.stack.services.mcp.url) as http:
        for meta, zone in (({}, PAGO), ({"todo/time_zone": TOKYO}, TOKYO), ({}, PAGO)):
            listed = await send(http, call("list_tasks", {}, token=user.mcp_token, meta=meta))
            assert listed.json()["result"]["structuredContent"]["time_zone"] == zone
    assert "people" not in stored.row_counts(user.name)


async def test_name(user: User) -> None:
    for name, shown in (
        ("Anna", "Anna"),
        ("  Ånna‮ 李\t ", "Ånna 李"),
        ("n" * 100, "n" * 100),
        ("نينا‎", "نينا‎"),
        ("a" + "\u0301" * 90, "a" + "\u0301" * 30),
        ("", ""),
        ("Anna", "Anna"),
        (" ", ""),
    ):
        response = await change(user, name=name)
        assert (response.status_code, response.json()["name"]) == (200, shown)
        assert (await profile(user))["name"] == shown


async def test_bad_changes(user: User, stored: Stored) -> None:
    line = "name must be one line of up to 100 visible characters, or empty."
    zone = "time_zone must be a time zone of IANA's database, such as Europe/Berlin, and not {}."
    for body, error in (
        ({}, "Send what is to change: name, time_zone or both."),
        ({"name": None, "time_zone": None}, "Send what is to change: name, time_zone or both."),
        ({"name": "n" * 101}, line),
        ({"name": "two\nlines"}, line),
        ({"name": "\u200b\u2060"}, line),
        ({"name": "\u3164"}, line),
        ({"time_zone": "Mars/Olympus"}, zone.format("Mars/Olympus")),
        ({"time_zone": "../../etc/passwd"}, zone.format("../../etc/passwd")),
        ({"time_zone": "localtime"}, zone.format("localtime")),
        ({"time_zone": ""}, zone.format("empty")),
        ({"name": "Anna", "time_zone": "x" * 5_000}, zone.format("x" * 100 + "…")),
        ({"user_id": "bob"}, "user_id is not a field of this request. Its fields are name and time_zone."),
    ):
        response = await change(user, **body)
        assert (response.status_code, response.json()) == (400, {"error": error})
    for invalid in ({"name": 5}, {"time_zone": ["Europe/Berlin"]}, []):
        assert (await user.runs.http.patch("/profile", json=invalid)).status_code == 400
    assert stored.row_counts(user.name) == {}


async def test_of_its_user_alone(new_user: NewUser) -> None:
    """Another user's token reads and changes that user's profile, whatever the request says."""
    alice, bob = new_user(), new_user()
    await change(alice, name="Alice", time_zone=BERLIN)
    await change(bob, name="Bob", time_zone=TOKYO)
    assert await profile(alice) == {"user_id": alice.name, "name": "Alice", "time_zone": BERLIN}
    expected = {"X-Expected-User": alice.name}
    assert (await bob.runs.http.patch("/profile", json={"name": "x"}, headers=expected)).status_code == 401
    for stranger in ({"Authorization": ""}, {"Authorization": "Bearer x.y.z"}):
        assert (await bob.runs.http.patch("/profile", json={"name": "x"}, headers=stranger)).status_code == 401
        assert (await bob.runs.http.get("/profile", headers=stranger)).status_code == 401
    assert [(await profile(user))["name"] for user in (alice, bob)] == ["Alice", "Bob"]
