"""Whose tasks a valid token opens: its subject's, whatever else the call says."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import ARGUMENTS, AUDIENCE, EC, ED, METADATA, own, theirs
from tests.mcp_server.wire import LEGACY, MODERN, call, request, result, send, sentence
from tests.tokens import ISSUER, for_mcp

FOREIGN = "user_id must be left out or be your own: nothing was changed."

GOOD: dict[str, Callable[[], str]] = {
    "ours": own,
    "ours, one of its audiences": lambda: own(aud=["x", AUDIENCE]),
    "as the backend makes it": lambda: for_mcp("alice", AUDIENCE),
    "a clock that is a little ahead": lambda: own(nbf=int(time.time()) + 3, iat=int(time.time()) + 3),
    "RSA": theirs,
    "EC": lambda: EC.mint(aud=AUDIENCE),
    "Ed25519": lambda: ED.mint(aud=[AUDIENCE]),
    "no kid, one key of that algorithm": lambda: theirs(kid=None),
}


@pytest.mark.parametrize("token", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_good_token_is_its_subject(
    guarded_http: httpx2.AsyncClient, rows: Rows, token: Callable[[], str], version: str
) -> None:
    for user_id in ({}, {"user_id": "alice"}, {"user_id": ""}, {"user_id": None}, {"user_id": "null"}):
        result(await send(guarded_http, call("add_task", {"title": "milk", **user_id}, version=version, token=token())))
    assert [task["user_id"] for task in rows.tasks()] == ["alice"] * 5
    assert {change["user_id"] for change in rows.changes()} == {"alice"}


@pytest.mark.parametrize("subject", ["auth0|5f7c", "ünï", "o'brien", "a" * 200, "null", "x; DROP TABLE tasks"])
async def test_any_subject_can_be_a_person(guarded_http: httpx2.AsyncClient, rows: Rows, subject: str) -> None:
    result(await send(guarded_http, call("add_task", {"title": "milk"}, token=own(sub=subject))))
    (listed,) = result(await send(guarded_http, call("list_tasks", {}, token=own(sub=subject))))["tasks"]
    assert listed["title"] == "milk"
    assert [task["user_id"] for task in rows.tasks()] == [subject]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("tool", ARGUMENTS)
async def test_somebody_elses_user_id_is_refused_whether_there_is_such_a_person_or_not(
    guarded_http: httpx2.AsyncClient, rows: Rows, milk: Any, tool: str, version: str
) -> None:
    token = own(sub="bob")
    for user_id in ("alice", "nobody", "BOB", "bob ", "local"):
        arguments = ARGUMENTS[tool] | {"user_id": user_id}
        assert sentence(await send(guarded_http, call(tool, arguments, version=version, token=token))) == FOREIGN
    assert (rows.tasks(), rows.changes()) == milk


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("tool", ["complete_task", "update_task", "delete_task"])
async def test_a_foreign_task_is_a_missing_one(
    guarded_http: httpx2.AsyncClient, rows: Rows, milk: Any, tool: str, version: str
) -> None:
    words = set()
    for number in (1, 2):
        arguments = ARGUMENTS[tool] | {"task_id": number}
        response = await send(guarded_http, call(tool, arguments, version=version, token=own(sub="bob")))
        words.add(sentence(response).replace(str(number), "N"))
    assert words == {"There is no task N: call list_tasks to see the numbers of your tasks."}
    assert (rows.tasks(), rows.changes()) == milk


async def test_a_cursor_of_another_person_shows_nothing_of_theirs(guarded_http: httpx2.AsyncClient) -> None:
    for person in ("alice", "bob", "alice", "bob", "alice"):
        result(await send(guarded_http, call("add_task", {"title": f"of {person}"}, token=own(sub=person))))
    page = result(await send(guarded_http, call("list_tasks", {"limit": 1}, token=own())))
    cursor = {"cursor": page["next_cursor"], "limit": 1}
    following = result(await send(guarded_http, call("list_tasks", cursor, token=own(sub="bob"))))
    assert [task["title"] for task in following["tasks"]] == ["of bob"]
    stranger = result(await send(guarded_http, call("list_tasks", cursor, token=own(sub="carol"))))
    assert (stranger["tasks"], stranger["next_cursor"], stranger["total"]) == ([], None, 0)


async def test_a_key_of_another_person_tells_and_changes_nothing_of_theirs(
    guarded_http: httpx2.AsyncClient, rows: Rows
) -> None:
    for person in ("alice", "bob"):
        params = {"name": "add_task", "arguments": {"title": f"of {person}"}}
        made = request("tools/call", params, meta={"todo/idempotency_key": "k"}, token=own(sub=person))
        assert result(await send(guarded_http, made))["title"] == f"of {person}"
    assert [task["user_id"] for task in rows.tasks()] == ["alice", "bob"]


async def test_forty_people_at_once(guarded_http: httpx2.AsyncClient, rows: Rows) -> None:
    """Over one pool of connections, each call first with somebody else's user_id, in both protocols."""
    people = [f"person-{n}" for n in range(40)]

    async def live(n: int) -> None:
        me, victim, version = people[n], people[(n + 1) % 40], (MODERN, LEGACY)[n % 2]

        def asked(tool: str, **arguments: Any) -> httpx2.Request:
            return call(tool, arguments, version=version, token=own(sub=me))

        assert sentence(await send(guarded_http, asked("add_task", user_id=victim, title=f"of {me}"))) == FOREIGN
        made = result(await send(guarded_http, asked("add_task", title=f"of {me}: now act as {victim}")))
        assert sentence(await send(guarded_http, asked("complete_task", user_id=victim, task_id=made["id"]))) == FOREIGN
        result(await send(guarded_http, asked("complete_task", user_id=me, task_id=made["id"])))
        assert sentence(await send(guarded_http, asked("list_tasks", user_id=victim))) == FOREIGN
        assert [task["id"] for task in result(await send(guarded_http, asked("list_tasks")))["tasks"]] == [made["id"]]
        for other in range(1, 41):
            if other != made["id"] and other % 20 == n % 20:
                assert "There is no task" in sentence(await send(guarded_http, asked("delete_task", task_id=other)))

    await asyncio.gather(*(live(n) for n in range(40)))
    tasks = rows.tasks()
    assert sorted(task["user_id"] for task in tasks) == sorted(people)
    for row in tasks:
        assert row["title"].startswith(f"of {row['user_id']}:")
        assert row["status"] == "completed"
    for change in rows.changes():
        assert change["after"]["title"].startswith(f"of {change['user_id']}:")


async def test_where_tokens_come_from_is_published(guarded_http: httpx2.AsyncClient) -> None:
    assert (await guarded_http.get(METADATA)).json() == {
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": [],
        "bearer_methods_supported": ["header"],
        "resource_name": "Todo",
    }


@pytest.mark.parametrize("token", [None, "garbage"])
async def test_health_and_readiness_need_no_token(guarded_http: httpx2.AsyncClient, token: str | None) -> None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    for path in ("/health", "/ready", METADATA):
        assert (await guarded_http.get(path, headers=headers)).status_code == 200
