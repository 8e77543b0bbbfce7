"""Whose tasks a valid token opens: its subject's, whatever else the call says."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.mcp.conftest import NewTools
from tests.mcp.servers import ARGUMENTS, AUDIENCE, EC, ED, METADATA, own, theirs
from tests.mcp.wire import LEGACY, MODERN, call, result, send, sentence
from tests.support.stored import Stored
from tests.tokens import ISSUER, mint_mcp_token

GOOD: dict[str, Callable[[str], str]] = {
    "ours": lambda user: own(sub=user),
    "ours, one of its audiences": lambda user: own(sub=user, aud=["x", AUDIENCE]),
    "as the backend makes it": lambda user: mint_mcp_token(user, AUDIENCE),
    "a clock that is a little ahead": lambda user: own(sub=user, nbf=int(time.time()) + 3, iat=int(time.time()) + 3),
    "RSA": lambda user: theirs(sub=user),
    "EC": lambda user: EC.mint(sub=user, aud=AUDIENCE),
    "Ed25519": lambda user: ED.mint(sub=user, aud=[AUDIENCE]),
    "no kid, one key of that algorithm": lambda user: theirs(sub=user, kid=None),
}


@pytest.mark.parametrize("token", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_valid_token_is_its_subject(
    guarded_http: httpx2.AsyncClient, stored: Stored, user: str, token: Callable[[str], str], version: str
) -> None:
    for user_id in ({}, {"user_id": user}, {"user_id": ""}, {"user_id": None}, {"user_id": "null"}):
        made = call("add_task", {"title": "milk", **user_id}, version=version, token=token(user))
        result(await send(guarded_http, made))
    assert stored.titles(user) == ["milk"] * 5


@pytest.mark.parametrize("subject", ["auth0|5f7c", "ünï", "o'brien", "a" * 180, "null", "x; DROP TABLE tasks"])
async def test_any_subject_is_a_user(guarded_http: httpx2.AsyncClient, stored: Stored, user: str, subject: str) -> None:
    if subject != "null":
        subject += user[-20:]
    before = len(stored.tasks(subject))
    result(await send(guarded_http, call("add_task", {"title": "milk"}, token=own(sub=subject))))
    assert len(stored.tasks(subject)) == before + 1
    result(await send(guarded_http, call("list_tasks", {}, token=own(sub=subject))))


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("tool", ARGUMENTS)
async def test_the_user_id_of_another_is_rejected_whether_there_is_one_or_not(
    guarded_http: httpx2.AsyncClient, new_tools: NewTools, user: str, tool: str, version: str
) -> None:
    other = new_tools()
    await other.add("milk")
    before, sentences = await other.state(), set[str]()
    for user_id in (other.user, "nobody", user.upper(), f"{user} ", "local"):
        arguments = ARGUMENTS[tool] | {"user_id": user_id}
        made = call(tool, arguments, version=version, token=own(sub=user))
        sentences.add(sentence(await send(guarded_http, made)))
    assert len(sentences) == 1
    for odd in (" ", "x" * 201, "a\nb", 7):
        made = call(tool, ARGUMENTS[tool] | {"user_id": odd}, version=version, token=own(sub=user))
        assert "user_id" in sentence(await send(guarded_http, made))
    assert await other.state() == before


async def test_forty_users_at_once(guarded_http: httpx2.AsyncClient, stored: Stored, user: str) -> None:
    """Over one pool of connections, each call first with the user_id of another, in both protocols."""
    users = [f"{user}-{n}" for n in range(40)]

    async def live(n: int) -> None:
        me, victim, version = users[n], users[(n + 1) % 40], (MODERN, LEGACY)[n % 2]

        async def sent(tool: str, **arguments: Any) -> httpx2.Response:
            return await send(guarded_http, call(tool, arguments, version=version, token=own(sub=me)))

        sentence(await sent("add_task", user_id=victim, title=f"of {me}"))
        for _ in range(n % 5):
            result(await sent("add_task", title=f"of {me}"))
        made = result(await sent("add_task", title=f"of {me}"))
        sentence(await sent("complete_task", user_id=victim, task_id=made["id"]))
        result(await sent("complete_task", user_id=me, task_id=made["id"]))
        sentence(await sent("list_tasks", user_id=victim))
        tasks = result(await sent("list_tasks"))["tasks"]
        assert {task["title"] for task in tasks} == {f"of {me}"}
        for number in range(n % 5 + 2, 8):
            assert f"no task {number}" in sentence(await sent("delete_task", task_id=number))

    await asyncio.gather(*(live(n) for n in range(40)))
    for n, each in enumerate(users):
        assert [(task.title, task.status) for task in stored.tasks(each)] == [
            *[(f"of {each}", "pending")] * (n % 5),
            (f"of {each}", "completed"),
        ]


async def test_metadata_says_where_tokens_come_from(guarded_http: httpx2.AsyncClient) -> None:
    assert (await guarded_http.get(METADATA)).json() == {
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": [],
        "bearer_methods_supported": ["header"],
        "resource_name": "Todo",
    }


@pytest.mark.parametrize("token", [None, "garbage"])
async def test_what_needs_no_token(guarded_http: httpx2.AsyncClient, token: str | None) -> None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    for path in ("/health", "/ready", METADATA):
        assert (await guarded_http.get(path, headers=headers)).status_code == 200
