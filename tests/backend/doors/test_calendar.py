"""The address of a calendar: who makes it, what opens it, and that it is told of nowhere."""

import json
import secrets

import httpx2
import pytest

from backend.settings import Settings
from tests.backend.calendar.subscribers import AUDIENCE, Subscriber
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit
from tests.tokens import of_provider


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return Settings.model_validate(settings.model_dump(exclude_unset=True) | of_provider(AUDIENCE))


@pytest.fixture
async def alice(chat: ChatKit) -> Subscriber:
    return Subscriber(chat, "alice")


@pytest.fixture
async def bob(chat: ChatKit) -> Subscriber:
    return Subscriber(chat, "bob")


def told(response: httpx2.Response) -> tuple[int, dict[str, str], bytes]:
    own = {name: value for name, value in response.headers.items() if name not in ("x-request-id", "date")}
    return response.status_code, own, response.content


async def test_two_people_read_their_own_tasks_only(alice: Subscriber, bob: Subscriber) -> None:
    urls = [await person.make() for person in (alice, bob)]
    await alice.call("add_task", title="alice's", due="2027-01-01")
    await bob.call("add_task", title="bob's", due="2027-01-01")
    assert [[*await person.events(url)] for person, url in zip((alice, bob), urls, strict=True)] == [
        ["alice's"],
        ["bob's"],
    ]
    assert [*await bob.events(urls[0])] == ["alice's"], "whoever knows the address reads it, signed in or not"


async def test_the_secret_is_random_told_once_and_kept_as_a_hash(alice: Subscriber, rows: Rows) -> None:
    assert not await alice.is_active()
    first, second = await alice.make(), await alice.make()
    assert await alice.is_active()
    found = [url.removeprefix(f"{alice.chat.base_url}/calendar/").removesuffix(".ics") for url in (first, second)]
    assert all(len(secret) == 43 for secret in found)
    assert found[0] != found[1]
    [row] = rows("SELECT * FROM profiles")
    assert len(row["calendar_hash"]) == 32
    assert not any(secret in str(rows("SELECT to_jsonb(p) FROM profiles p")) for secret in found)
    assert (await alice.read(first)).status_code == 404, "a new address replaces the older one"
    assert (await alice.read(second)).status_code == 200
    looked = await alice.chat.http.get("/calendar", headers=alice.headers)
    assert looked.json() == {"active": True}


async def test_a_revoked_address_opens_nothing(alice: Subscriber, bob: Subscriber) -> None:
    url, bobs = await alice.make(), await bob.make()
    await alice.revoke()
    assert (await alice.read(url)).status_code == 404
    assert not await alice.is_active()
    await alice.revoke()
    assert (await bob.read(bobs)).status_code == 200
    assert await bob.is_active()


def malformed(url: str) -> dict[str, str]:
    base, _, name = url.rpartition("/")
    secret = name.removesuffix(".ics")
    return {
        "wrong": f"{base}/{secrets.token_urlsafe(32)}.ics",
        "other case": f"{base}/{secret.swapcase()}.ics",
        "no ending": f"{base}/{secret}",
        "two endings": f"{base}/{name}.ics",
        "short": f"{base}/{secret[:-1]}.ics",
        "empty": f"{base}/.ics",
        "nothing": f"{base}/",
        "a folder": f"{base}/{secret}/.ics",
        "long": f"{base}/{'a' * 20_000}.ics",
        "not UTF-8": f"{base}/%ff%fe.ics",
        "NUL": f"{base}/%00.ics",
        "other query": f"{base}/x.ics?secret={secret}",
    }


async def test_all_that_opens_nothing_is_answered_alike(alice: Subscriber) -> None:
    revoked, url = await alice.make(), await alice.make()
    answers = {name: told(await alice.read(other)) for name, other in malformed(url).items()}
    answers["revoked"] = told(await alice.read(revoked))
    expected = answers["wrong"]
    assert answers == dict.fromkeys(answers, expected)
    assert expected[0] == 404
    assert json.loads(expected[2]) == {
        "error": "This calendar link does not work any more. Create a new one on the page."
    }
    assert (await alice.read(url, Authorization="Bearer garbage")).status_code == 200, "nothing else is looked at"


async def test_only_the_person_makes_looks_and_revokes(alice: Subscriber, rows: Rows) -> None:
    url, http = await alice.make(), alice.chat.http
    session = await http.post("/session", headers=alice.headers)
    cookie = {"Cookie": session.headers["set-cookie"].partition(";")[0]}
    http.cookies.clear()
    before = rows("SELECT * FROM profiles")
    foreign = {"Origin": "https://evil.example"}
    for method in ("GET", "POST", "DELETE"):
        assert (await http.request(method, "/calendar")).status_code == 401
        assert (await http.request(method, "/calendar", headers=cookie | foreign)).status_code == 403
        assert (
            await http.request(method, "/calendar", headers=cookie | {"Sec-Fetch-Site": "cross-site"})
        ).status_code == 403
    assert rows("SELECT * FROM profiles") == before
    own = cookie | {"Origin": alice.chat.base_url}
    assert (await http.get("/calendar", headers=own)).json() == {"active": True}
    assert (await http.post("/calendar", headers=own)).status_code == 201
    assert (await alice.read(url)).status_code == 404


async def test_the_address_that_is_set_is_told(backend: Backend) -> None:
    async with backend(backend_url="https://todo.example") as chat:
        assert (await Subscriber(chat, "alice").make()).startswith("https://todo.example/calendar/")


async def test_reading_too_often_is_refused_for_that_person(backend: Backend) -> None:
    async with backend(limit_calendar_reads_per_minute=2) as chat:
        alice, bob = Subscriber(chat, "alice"), Subscriber(chat, "bob")
        urls = [await alice.make(), await bob.make()]
        statuses = [(await alice.read(urls[0])).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert (await bob.read(urls[1])).status_code == 200
        assert await alice.is_active(), "the chat and the page go on"
