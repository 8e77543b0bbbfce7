"""A chat, its name and its interactions are its person's alone; and so is a key."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from client.connection import Refused
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW
from tests.runs_client import Runs, id_of
from tests.scripted_model import ScriptedModel
from tests.tokens import IDP_SECRET, ISSUER, minted, of_provider

pytestmark = pytest.mark.long

AUDIENCE = "todo"
JWT = of_provider(AUDIENCE)
PATHS = [
    ("GET", "/chats"),
    ("GET", "/chats/one"),
    ("POST", "/chats/one/interactions"),
    ("GET", "/chats/one/interactions/{run}"),
    ("GET", "/chats/one/interactions/{run}/events"),
    ("POST", "/chats/one/interactions/{run}/approve"),
    ("POST", "/chats/one/interactions/{run}/cancel"),
    ("POST", "/chats/one/interactions/{run}/edit"),
    ("POST", "/chats/one/interactions/{run}/messages"),
    ("POST", "/chats/one/branch"),
    ("POST", "/chats/one/compact"),
]


@pytest.fixture
async def people(backend: Backend) -> AsyncIterator[tuple[Runs, Runs, Runs]]:
    """Alice, Bob, and somebody without a token."""
    one, other = (minted(IDP_SECRET, sub=name, iss=ISSUER, aud=AUDIENCE) for name in ("alice", "bob"))
    async with (
        backend(**JWT) as chat,
        Runs(chat.base_url, token=one) as alice,
        Runs(chat.base_url, token=other) as bob,
        Runs(chat.base_url) as stranger,
    ):
        yield alice, bob, stranger


def body_of(path: str) -> Any:
    if path.endswith("/approve"):
        return {"approval_id": "apr_0", "approved": True}
    if path.endswith("/edit"):
        return {"new_user_message": "hello"}
    if path.endswith("/messages"):
        return {"text": "hello", "mode": "steer"}
    if path.endswith("/branch"):
        return {"interaction_id": None}
    return {"user_message": "hello"} if path.endswith("/interactions") else None


async def test_nobody_else_finds_a_chat_and_strangers_are_told_to_sign_in(
    people: tuple[Runs, Runs, Runs], model: ScriptedModel, rows: Rows
) -> None:
    alice, bob, stranger = people
    await model.script(SLOW)
    async with alice.interact("one", "count") as events:
        run = id_of([await anext(events)])
        for method, path in PATHS:
            place = path.format(run=run)
            response = await stranger.http.request(method, place, json=body_of(path))
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            if path not in ("/chats", "/chats/one/interactions"):
                assert (await bob.http.request(method, place, json=body_of(path))).status_code == 404, path
        assert (await bob.get_chats())["chats"] == []
        async for _ in events:
            pass
    assert rows("SELECT outcome FROM runs") == [{"outcome": "completed"}]
    thread = (await alice.get_chats())["chats"][0]["chat_id"]
    with pytest.raises(Refused) as refused:
        await bob.say(thread, "hello")
    assert refused.value.status == 404


async def test_two_people_have_names_and_keys_of_their_own(people: tuple[Runs, Runs, Runs], rows: Rows) -> None:
    alice, bob, _ = people
    runs = {id_of(await client.say("one", "hello", key="k")) for client in (alice, bob, alice)}
    assert len(runs) == 2
    assert len((await bob.get_chat("one"))["interactions"]) == 1
    owners = rows("SELECT user_id, name FROM conversations ORDER BY user_id")
    assert owners == [{"user_id": "alice", "name": "one"}, {"user_id": "bob", "name": "one"}]
