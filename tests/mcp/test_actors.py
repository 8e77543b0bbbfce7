"""Who acted: only the backend's own calls say that it was the assistant or the user, or belong to a batch."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.mcp.servers import AUDIENCE, own, serve_tools, theirs
from tests.mcp.wire import LEGACY, MODERN, call, request, result, send, sentence
from tests.support.stored import Stored
from tests.tokens import NO_TIMES, OTHER_SECRET, mint_mcp_token

CLAIM = {"todo/actor": "assistant"}
OF_OTHERS: dict[str, Callable[[str], str]] = {
    "a user's own": lambda user: own(sub=user),
    "theirs": lambda user: theirs(sub=user),
    "theirs, with the claim": lambda user: theirs(sub=user, act={"sub": "todo-assistant/backend"}),
    "ours, for another actor": lambda user: own(sub=user, act={"sub": "somebody"}),
    "ours, the claim as text": lambda user: own(sub=user, act="todo-assistant/backend"),
}


@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_the_backend_says_who_acted(
    guarded_http: httpx2.AsyncClient, stored: Stored, user: str, version: str
) -> None:
    token = mint_mcp_token(user, AUDIENCE)
    for actor in ("assistant", "person"):
        meta = {"todo/actor": actor, "todo/batch": f"of the {actor}"}
        result(await send(guarded_http, call("add_task", {"title": "milk"}, meta=meta, token=token, version=version)))
    assert stored.task_calls(user) == [("add", "assistant"), ("add", "person")]
    meta = {"todo/undo_batch": "of the assistant"}
    made = call("update_task", {"task_id": 1}, meta=meta, token=token, version=version)
    assert result(await send(guarded_http, made))["deleted"] is True
    assert [task.title for task in stored.tasks(user)] == ["milk"]


@pytest.mark.parametrize("token", OF_OTHERS.values(), ids=OF_OTHERS)
async def test_nobody_else_is_believed(
    guarded_http: httpx2.AsyncClient, stored: Stored, user: str, token: Callable[[str], str]
) -> None:
    backend = {"todo/actor": "assistant", "todo/batch": "run"}
    made = call("add_task", {"title": "milk"}, meta=backend, token=mint_mcp_token(user, AUDIENCE))
    result(await send(guarded_http, made))
    for claim in ("assistant", "person", 5, "", "a\nb"):
        meta: dict[str, Any] = {"todo/actor": claim, "todo/batch": claim, "todo/undo_batch": "run"}
        made = call("update_task", {"task_id": 1, "title": repr(claim)}, meta=meta, token=token(user))
        assert result(await send(guarded_http, made))["deleted"] is None
    assert stored.task_calls(user) == [("add", "assistant"), *[("update", "mcp")] * 5]


@pytest.mark.parametrize(
    ("version", "name", "actor"),
    [
        (MODERN, "Inspector \x07", "Inspector ?"),
        (LEGACY, "Inspector", "mcp"),
        *[(MODERN, name, "mcp") for name in ("assistant", "Assistant", " person ", "import", "\u0430ssistant")],
        *[(MODERN, name, "mcp") for name in ("assistant\u3164", "assistant\u200b", "per\u0455on")],
    ],
)
async def test_other_clients_are_known_by_their_names(
    http: httpx2.AsyncClient, stored: Stored, user: str, version: str, name: str, actor: str
) -> None:
    """As far as a request says it: without sessions, the older protocol does not."""
    meta = {**CLAIM, "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
    made = call("add_task", {"title": "milk"}, version=version, meta=meta, token=own(sub=user))
    result(await send(http, made))
    assert stored.task_calls(user) == [("add", actor)]


async def test_without_sign_in_a_call_without_a_token_is_the_local_user_s(
    http: httpx2.AsyncClient, stored: Stored
) -> None:
    tasks, calls = len(stored.tasks("local")), len(stored.task_calls("local"))
    meta = {**CLAIM, "todo/idempotency_key": f"key-{calls}"}
    for version in (MODERN, LEGACY, MODERN):
        result(await send(http, call("add_task", {"title": "milk"}, meta=meta, version=version)))
    assert len(stored.tasks("local")) == tasks + 1
    for user_id in ("user123", "local", "", " ", None, "x" * 201, "a\nb", 7, ["alice"]):
        result(await send(http, call("add_task", {"title": "milk", "user_id": user_id})))
    assert [actor for _, actor in stored.task_calls("local")[calls:]] == ["mcp"] * 10
    assert stored.tasks("user123") == []


@pytest.mark.parametrize(
    "token",
    [
        "garbage",
        own(key=OTHER_SECRET),
        own(aud="https://elsewhere.example/mcp"),
        own(exp=1),
        theirs(),
        *(own(exp=value) for value in NO_TIMES),
    ],
)
async def test_without_sign_in_a_wrong_token_is_rejected(http: httpx2.AsyncClient, token: str) -> None:
    response = await send(http, call("list_tasks", {}, token=token))
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'


async def test_a_token_that_cannot_be_checked_does_not_make_one_list_of_all_users(
    session_database_url: str, stored: Stored, user: str
) -> None:
    """AUTH_MODE=none without a secret, called by a backend where users sign in."""
    async with serve_tools(session_database_url) as client:
        made = call("add_task", {"title": user, "user_id": user}, token=mint_mcp_token(user, AUDIENCE))
        assert "MCP_TOKEN_SECRET" in sentence(await send(client, made))
        assert user not in stored.titles("local")
        made = call("add_task", {"title": user, "user_id": "local"}, token=mint_mcp_token(user, AUDIENCE))
        result(await send(client, made))
    assert user in stored.titles("local")
    assert stored.tasks(user) == []


async def test_lists_are_no_changes(http: httpx2.AsyncClient, stored: Stored, user: str) -> None:
    made = request(
        "tools/call", {"name": "list_tasks", "arguments": {}}, meta=CLAIM, token=mint_mcp_token(user, AUDIENCE)
    )
    result(await send(http, made))
    assert stored.task_calls(user) == []
