"""A user's tasks as a calendar that other programs subscribe to: its address, and what they read there."""

import json
import re
import secrets
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest
from icalendar import Calendar

from tests.conftest import find_free_port
from tests.serving import http_client
from tests.support.backends import user_at
from tests.support.fixtures import NewUser
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.support.users import User

DAY, TIME = "2027-03-29", "2027-03-29 02:30"


async def create_url(user: User) -> str:
    response = await user.chatkit.http.post("/calendar")
    assert response.status_code == 201, response.text
    return response.json()["url"]


async def is_active(user: User) -> bool:
    return (await user.chatkit.http.get("/calendar")).json()["active"]


async def read(url: str, **headers: str) -> httpx2.Response:
    """As a calendar program does, which sends neither token nor cookie."""
    async with http_client() as http:
        return await http.get(url, headers=headers)


async def read_events(url: str) -> dict[str, Any]:
    """The events by their summaries."""
    response = await read(url)
    assert response.status_code == 200, response.text
    return {str(event["summary"]): event for event in Calendar.from_ical(response.content).events}


async def add(user: User, title: str, **details: Any) -> int:
    response = await user.chatkit.http.post("/tasks", json={"title": title, **details})
    assert response.status_code == 201, response.text
    return response.json()["tasks"][0]["id"]


async def update(user: User, task: int, **fields: Any) -> None:
    assert (await user.chatkit.http.patch(f"/tasks/{task}", json=fields)).status_code == 200


class TestAddress:
    async def test_opens_the_tasks_of_its_user_alone(self, new_user: NewUser) -> None:
        users = {name: new_user() for name in ("alice", "bob")}
        for name, user in users.items():
            await add(user, f"{name}'s", due=DAY)
            assert [*await read_events(await create_url(user))] == [f"{name}'s"]

    async def test_secret_is_random_shown_once_and_stored_as_a_hash(self, user: User, stored: Stored) -> None:
        assert not await is_active(user)
        urls = [await create_url(user), await create_url(user)]
        assert await is_active(user)
        shown = [url.removeprefix(f"{user.url}/calendar/").removesuffix(".ics") for url in urls]
        assert [len(secret) for secret in shown] == [43, 43]
        assert shown[0] != shown[1]
        [profile] = stored.rows_of(user.name, "profiles")
        assert len(bytes.fromhex(profile["calendar_hash"].removeprefix("\\x"))) == 32
        assert not any(secret in json.dumps(profile) for secret in shown)
        assert (await read(urls[0])).status_code == 404, "a new address replaces the older one"
        assert (await read(urls[1])).status_code == 200

    async def test_revoked(self, user: User, new_user: NewUser) -> None:
        url, other = await create_url(user), new_user()
        others = await create_url(other)
        for _ in range(2):
            assert (await user.chatkit.http.delete("/calendar")).status_code == 204
            assert (await read(url)).status_code == 404
            assert not await is_active(user)
        assert (await read(others)).status_code == 200
        assert await is_active(other)

    async def test_responses_to_what_opens_nothing_are_equal(self, user: User) -> None:
        revoked, url = await create_url(user), await create_url(user)
        base, _, name = url.rpartition("/")
        secret = name.removesuffix(".ics")
        paths = {
            "wrong": f"{secrets.token_urlsafe(32)}.ics",
            "other case": f"{secret.swapcase()}.ics",
            "no ending": secret,
            "two endings": f"{name}.ics",
            "short": f"{secret[:-1]}.ics",
            "empty": ".ics",
            "nothing": "",
            "a folder": f"{secret}/.ics",
            "long": f"{'a' * 20_000}.ics",
            "not UTF-8": "%ff%fe.ics",
            "NUL": "%00.ics",
            "query": f"x.ics?secret={secret}",
            "revoked": revoked.rpartition("/")[2],
        }
        responses = {kind: await read(f"{base}/{path}") for kind, path in paths.items()}
        seen = {
            kind: (
                response.status_code,
                {name: value for name, value in response.headers.items() if name not in ("x-request-id", "date")},
                response.json(),
            )
            for kind, response in responses.items()
        }
        assert seen == dict.fromkeys(paths, seen["wrong"])
        status, _, content = seen["wrong"]
        assert status == 404
        assert content == {"error": "This calendar link does not work any more. Create a new one on the page."}
        assert (await read(url, Authorization="Bearer garbage")).status_code == 200, "nothing else is looked at"

    async def test_requests_of_other_sites_change_nothing(self, user: User) -> None:
        url = await create_url(user)
        async with http_client(user.url) as http:
            session = await http.post("/session", headers={"Authorization": f"Bearer {user.token}"})
            cookie = {"Cookie": session.headers["set-cookie"].partition(";")[0]}
            http.cookies.clear()
            for method in ("GET", "POST", "DELETE"):
                assert (await http.request(method, "/calendar")).status_code == 401
                for other in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                    assert (await http.request(method, "/calendar", headers=cookie | other)).status_code == 403
            assert (await read(url)).status_code == 200
            assert (await http.post("/calendar", headers=cookie | {"Origin": user.url})).status_code == 201
        assert (await read(url)).status_code == 404

    async def test_begins_with_the_address_that_is_set(self, services: Services, user: User) -> None:
        async with user_at(services, user, BACKEND_URL="https://todo.example") as there:
            assert (await create_url(there)).startswith("https://todo.example/calendar/")

    async def test_reads_per_minute(self, services: Services, user: User, new_user: NewUser) -> None:
        async with user_at(services, user, LIMIT_CALENDAR_READS_PER_MINUTE="2") as there:
            url = await create_url(there)
            assert [(await read(url)).status_code for _ in range(3)] == [200, 200, 429]
            assert await is_active(there), "the user's other requests go on"
            async with user_at(services, new_user()) as other:
                assert (await read(await create_url(other))).status_code == 200


class TestEvents:
    async def test_open_tasks_with_a_due_date(self, user: User) -> None:
        await add(user, "no date")
        await add(user, "tax", due=DAY, priority="high", labels=["work", "a, b"], description="one\ntwo")
        await add(user, "dentist", due=TIME, priority="low")
        await update(user, await add(user, "done", due=DAY), status="completed")
        events = await read_events(await create_url(user))
        assert [*events] == ["tax", "dentist"]
        tax, dentist = events["tax"], events["dentist"]
        assert tax["dtstart"].dt == date(2027, 3, 29)
        assert (tax["transp"], tax["priority"], str(tax["description"])) == ("TRANSPARENT", 1, "one\ntwo")
        assert tax.categories == ["a, b", "work"]
        assert tax.walk("VALARM") == []
        assert dentist["dtstart"].dt == datetime(2027, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
        assert dentist["dtstart"].dt.utcoffset() == timedelta(hours=2)
        assert (dentist["duration"].dt, dentist["priority"]) == (timedelta(minutes=30), 9)
        [alarm] = dentist.walk("VALARM")
        assert (alarm["action"], alarm["trigger"].dt) == ("DISPLAY", timedelta(0))

    async def test_reminders(self, user: User) -> None:
        for title, remind in (("early", 90), ("never", "none"), ("on time", 0)):
            await add(user, title, due=TIME, remind=remind)
        events = await read_events(await create_url(user))
        alarms = {title: [alarm["trigger"].dt for alarm in event.walk("VALARM")] for title, event in events.items()}
        assert alarms == {"early": [-timedelta(minutes=90)], "never": [], "on time": [timedelta(0)]}

    async def test_repeat_keeps_its_uid(self, user: User) -> None:
        task = await add(user, "water", due=DAY, repeat="FREQ=WEEKLY;BYDAY=MO")
        url = await create_url(user)
        first = (await read_events(url))["water"]
        await update(user, task, status="completed")
        following = (await read_events(url))["water"]
        assert following["uid"] == first["uid"]
        assert following["dtstart"].dt == first["dtstart"].dt + timedelta(weeks=1)

    @pytest.mark.parametrize("zone", ["America/St_Johns", "UTC"])
    async def test_zone_of_the_server_where_the_users_is_not_known(
        self, zone: str, services: Services, user: User
    ) -> None:
        async with user_at(services, user, TIME_ZONE=zone) as there:
            del there.chatkit.http.headers["X-Time-Zone"]
            await add(there, "in summer", due="2027-07-01 23:30")
            await add(there, "in winter", due="2027-12-31 00:15")
            calendar: Any = Calendar.from_ical((await read(await create_url(there))).content)
        here = ZoneInfo(zone)
        moments = datetime(2027, 7, 1, 23, 30, tzinfo=here), datetime(2027, 12, 31, 0, 15, tzinfo=here)
        for event, moment in zip(calendar.events, moments, strict=True):
            assert event["dtstart"].dt.astimezone(UTC) == moment.astimezone(UTC)
            assert event["dtstart"].dt.replace(tzinfo=None) == moment.replace(tzinfo=None)
        assert [str(one["tzid"]) for one in calendar.timezones] == ([] if zone == "UTC" else [zone])
        for written in calendar.timezones:
            for moment in (datetime(2027, 1, 1, 12), datetime(2027, 7, 1, 12), datetime(2090, 7, 1, 12)):
                assert moment.replace(tzinfo=written.to_tz(lookup_tzid=False)).utcoffset() == here.utcoffset(moment)
        assert str(calendar["x-wr-calname"]) == "To-do"
        assert calendar["refresh-interval"].dt == timedelta(hours=1)

    async def test_all_pages_of_tasks_in_the_order_of_their_days(self, user: User, stored: Stored) -> None:
        stored.add_daily_tasks(user.name, 330, long_descriptions=89)
        assert [*await read_events(await create_url(user))] == [f"task {number}" for number in range(1, 331)]

    @pytest.mark.long(seconds=20)
    async def test_largest_calendar_is_complete(self, user: User, stored: Stored) -> None:
        """It has the 5,000 tasks that are due first."""
        stored.add_daily_tasks(user.name, 5_001)
        url = await create_url(user)
        response = await read(url)
        assert response.status_code == 200, response.text
        titles = re.findall(rb"^SUMMARY:task (\d+)\r$", response.content, re.MULTILINE)
        assert list(map(int, titles)) == [*range(1, 5_001)]
        assert response.content.count(b"\r\nEND:VEVENT\r\n") == 5_000
        assert response.content.endswith(b"\r\nEND:VCALENDAR\r\n")


class TestResponse:
    async def test_etag_changes_with_the_tasks_only(self, user: User) -> None:
        task = await add(user, "tax", due=DAY)
        url = await create_url(user)
        first, second = await read(url), await read(url)
        tag = first.headers["etag"]
        assert (second.content, second.headers["etag"]) == (first.content, tag)
        for known in (tag, f'W/{tag}, "other"', "*"):
            unchanged = await read(url, **{"If-None-Match": known})
            assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
            assert unchanged.headers["cache-control"] == first.headers["cache-control"]
        assert (await read(url, **{"If-None-Match": '"other"'})).status_code == 200
        await update(user, task, title="taxes")
        changed = await read(url, **{"If-None-Match": tag})
        assert (changed.status_code, b"taxes" in changed.content) == (200, True)
        assert changed.headers["etag"] != tag

    async def test_is_private_and_head_has_no_body(self, user: User) -> None:
        url = await create_url(user)
        response = await read(url)
        assert response.headers["content-type"] == "text/calendar; charset=utf-8"
        assert response.headers["cache-control"].startswith("private")
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in response.headers
        async with http_client() as http:
            head = await http.head(url)
        assert (head.status_code, head.content) == (200, b"")
        assert [head.headers[name] for name in ("etag", "content-length")] == [
            response.headers[name] for name in ("etag", "content-length")
        ]

    async def test_without_the_task_server(self, services: Services, user: User) -> None:
        """It is no empty calendar, for which a program would delete what it has."""
        away = {"MCP_INTERNAL_URL": f"http://127.0.0.1:{find_free_port()}/mcp", "MCP_RESEND_SECONDS": "0.1"}
        async with user_at(services, user, **away) as there:
            response = await read(await create_url(there))
        assert response.status_code == 503
        assert response.headers["retry-after"] == "300"
        assert response.json() == {"error": "The calendar cannot be read right now. Try again in a few minutes."}
