"""Who acted, as the log of changes has it: only the backend's own calls say that it was the assistant or the page."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from mcp_types import Implementation

from mcp_server.server import create_app
from mcp_server.settings import Settings
from tests.mcp_server.calls import Tools, client_of
from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import AUDIENCE, own, theirs
from tests.mcp_server.wire import LEGACY, MODERN, request, result, send, sentence
from tests.serving import serve
from tests.tokens import MCP_TOKEN_SECRET, NO_TIMES, OTHER_SECRET, for_mcp

CLAIM = {"todo/actor": "assistant"}
OF_OTHERS: dict[str, Callable[[], str | None]] = {
    "for a person to keep": own,
    "theirs": theirs,
    "theirs, with the claim": lambda: theirs(act={"sub": "todo-assistant/backend"}),
    "ours, for another actor": lambda: own(act={"sub": "somebody"}),
    "ours, the claim as text": lambda: own(act="todo-assistant/backend"),
}


@pytest.fixture
async def open_http(session_database_url: str, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A server with AUTH_MODE=none and a secret, as `./todo up` starts it."""
    settings = Settings.model_validate(
        {"database_url": session_database_url, "mcp_url": AUDIENCE, "mcp_token_secret": MCP_TOKEN_SECRET}
    )
    async with serve(create_app(settings)) as base, httpx2.AsyncClient(base_url=base, verify=False) as client:
        yield client


def adding(*, meta: dict[str, Any], token: str | None, version: str = MODERN, **arguments: Any) -> httpx2.Request:
    params = {"name": "add_task", "arguments": {"title": "milk", **arguments}}
    return request("tools/call", params, meta=meta, token=token, version=version)


def undoing(batch: Any, *, token: str, version: str = MODERN, **arguments: Any) -> httpx2.Request:
    params = {"name": "update_task", "arguments": {"task_id": 1, **arguments}}
    return request("tools/call", params, meta={"todo/undo_batch": batch}, token=token, version=version)


@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_the_backend_says_who_acted(guarded_http: httpx2.AsyncClient, rows: Rows, version: str) -> None:
    for actor in ("assistant", "person"):
        meta = {"todo/actor": actor, "todo/batch": f"of the {actor}"}
        result(await send(guarded_http, adding(meta=meta, token=for_mcp("bob", AUDIENCE), version=version)))
    assert [(change["user_id"], change["actor"], change["batch"]) for change in rows.changes()] == [
        ("bob", "assistant", "of the assistant"),
        ("bob", "person", "of the person"),
    ]
    made = undoing("of the assistant", token=for_mcp("bob", AUDIENCE), version=version)
    assert result(await send(guarded_http, made))["deleted"] is True
    assert [task["id"] for task in rows.tasks()] == [2]


@pytest.mark.parametrize(("name", "longest"), [("todo/actor", 60), ("todo/batch", 200), ("todo/undo_batch", 200)])
async def test_it_says_so_in_a_word(guarded_http: httpx2.AsyncClient, rows: Rows, name: str, longest: int) -> None:
    for value in (5, "", "x" * (longest + 1), "a\nb"):
        made = adding(meta={name: value}, token=for_mcp("bob", AUDIENCE))
        problem = f"{name} in _meta must be text of 1 to {longest} "
        assert sentence(await send(guarded_http, made)).startswith(problem)
    assert rows.changes() == []


@pytest.mark.parametrize("token", OF_OTHERS.values(), ids=OF_OTHERS)
@pytest.mark.parametrize("claim", ["assistant", "person", 5, "", "a\nb"])
async def test_nobody_else_is_believed(
    guarded_http: httpx2.AsyncClient, rows: Rows, token: Callable[[], str], claim: Any
) -> None:
    result(await send(guarded_http, adding(meta={"todo/actor": claim}, token=token())))
    assert [change["actor"] for change in rows.changes()] == ["mcp"]


@pytest.mark.parametrize("token", OF_OTHERS.values(), ids=OF_OTHERS)
async def test_nor_do_others_make_batches_or_take_them_back(
    guarded_http: httpx2.AsyncClient, rows: Rows, token: Callable[[], str]
) -> None:
    made = adding(meta={"todo/actor": "assistant", "todo/batch": "run"}, token=for_mcp("alice", AUDIENCE))
    result(await send(guarded_http, made))
    for claim in ("run", 5, "a\nb"):
        result(await send(guarded_http, adding(meta={"todo/batch": claim}, token=token())))
        made = undoing(claim, title="bread", token=token())
        assert result(await send(guarded_http, made))["title"] == "bread"
    assert [change["batch"] for change in rows.changes()] == ["run", *[None] * 6]


@pytest.mark.parametrize(
    "name",
    [
        "assistant",
        "Assistant",
        " person ",
        "import",
        "\u0430ssistant",
        "assistant\u3164",
        "assistant\u200b",
        "per\u0455on",
    ],
)
async def test_nor_is_a_client_that_calls_itself_so(server_at: str, rows: Rows, name: str) -> None:
    async with client_of(server_at, client_info=Implementation(name=name, version="1")) as client:
        await Tools(client).call("add_task", title="milk", meta=CLAIM)
    assert [change["actor"] for change in rows.changes()] == ["mcp"]


class TestWithoutSigningIn:
    """AUTH_MODE=none with a secret."""

    @pytest.mark.parametrize("version", [MODERN, LEGACY])
    async def test_a_call_without_a_token_is_served(
        self, open_http: httpx2.AsyncClient, rows: Rows, version: str
    ) -> None:
        keyed = CLAIM | {"todo/idempotency_key": "k"}
        for _ in range(2):
            result(await send(open_http, adding(meta=keyed, token=None, version=version)))
        result(await send(open_http, adding(meta={}, token=None, version=version, user_id="alice")))
        assert [task["user_id"] for task in rows.tasks()] == ["local", "alice"], "a key of any client is kept to"
        assert [change["actor"] for change in rows.changes()] == ["mcp", "mcp"]

    @pytest.mark.parametrize("version", [MODERN, LEGACY])
    async def test_the_backends_token_is_believed(
        self, open_http: httpx2.AsyncClient, rows: Rows, version: str
    ) -> None:
        token = for_mcp("local", AUDIENCE)
        result(await send(open_http, adding(meta=CLAIM, token=token, version=version, user_id="local")))
        assert [(change["user_id"], change["actor"]) for change in rows.changes()] == [("local", "assistant")]
        refused = await send(open_http, adding(meta=CLAIM, token=token, version=version, user_id="alice"))
        assert sentence(refused).startswith("user_id must be left out or be your own")

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
    async def test_a_wrong_token_is_refused(self, open_http: httpx2.AsyncClient, rows: Rows, token: str) -> None:
        made = adding(meta=CLAIM, token=None)
        made.headers["authorization"] = f"Bearer {token}"
        refused = await send(open_http, made)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert rows.changes() == []

    async def test_one_that_a_person_keeps_is_that_person(self, open_http: httpx2.AsyncClient, rows: Rows) -> None:
        result(await send(open_http, adding(meta=CLAIM, token=own(sub="bob"))))
        assert [(change["user_id"], change["actor"]) for change in rows.changes()] == [("bob", "mcp")]
