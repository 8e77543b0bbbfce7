"""`GET /changes`, `GET /done` and `GET /tasks`: what is read of one's own tasks without a tool."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import psycopg
import pytest

from mcp_server.server import create_app
from mcp_server.settings import Settings
from tests.logins import as_admin
from tests.mcp_server.calls import Tools
from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import AUDIENCE, own, theirs
from tests.mcp_server.wire import call, result, send
from tests.serving import serve
from tests.tokens import MCP_TOKEN_SECRET

NOTHING: dict[str, Any] = {"last": 0, "task_ids": [], "more": False}


@pytest.fixture
async def http(server_at: str, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=False, base_url=server_at) as client:
        yield client


def signed(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def changes(http: httpx2.AsyncClient, after: int | None = None, token: str | None = None) -> dict[str, Any]:
    params = {} if after is None else {"after": after}
    answer = await http.get("/changes", params=params, headers=signed(token) if token else {})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("path", ["/changes", "/done", "/tasks?ids=1"])
async def test_who_is_nobody_reads_nothing(guarded_http: httpx2.AsyncClient, path: str) -> None:
    for headers in ({}, signed("garbage"), signed(own(aud="https://other.example")), {"Authorization": "Basic YTpi"}):
        answer = await guarded_http.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_person_hears_of_their_own_tasks_only(guarded_http: httpx2.AsyncClient) -> None:
    for name in ("alice", "bob", "alice"):
        result(await send(guarded_http, call("add_task", {"title": name}, token=own(sub=name))))
    alice = await changes(guarded_http, 0, own(sub="alice"))
    bob = await changes(guarded_http, 0, theirs(sub="bob"))
    assert (alice["task_ids"], bob["task_ids"]) == ([1, 2], [1])
    assert await changes(guarded_http, 0, own(sub="carol")) == NOTHING
    for name, done in (("alice", 1), ("bob", 0)):
        if done:
            result(await send(guarded_http, call("complete_task", {"task_id": 1}, token=own(sub=name))))
        days = (await guarded_http.get("/done", headers=signed(own(sub=name)))).json()["days"]
        assert sum(day["done"] for day in days) == done


@pytest.mark.parametrize("path", ["/changes", "/done", "/tasks?ids=1"])
async def test_foreign_hosts_pages_and_methods(http: httpx2.AsyncClient, path: str) -> None:
    assert (await http.get(path, headers={"host": "evil.example"})).status_code == 421
    assert (await http.get(path, headers={"origin": "https://evil.example"})).status_code == 403
    assert (await http.post(path, json={})).status_code == 405


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        *[(f"/changes?after={odd}", "after must be the last") for odd in ("", "-1", "x", "1.5", "٣", "9" * 30, "1e3")],
        *[(f"/done?days={odd}", "days must be a whole number") for odd in ("0", "-1", "367", "x", "")],
        *[(f"/tasks{odd}", "ids must be at most") for odd in ("", "?ids=", "?ids=1,", "?ids=x", "?ids=-1", "?ids=1 2")],
        *[(f"/tasks?ids={odd}", "ids must be at most") for odd in ("1," * 100 + "1", "9" * 19, "٣")],
        ("/done?time_zone=Nowhere/At_All", "time_zone must be the name"),
        ("/done?time_zone=../../etc/passwd", "time_zone must be the name"),
    ],
)
async def test_bad_input_gets_a_sentence(http: httpx2.AsyncClient, path: str, sentence: str) -> None:
    answer = await http.get(path)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(sentence)


async def test_every_kind_of_change_is_told_once(tools: Tools, http: httpx2.AsyncClient) -> None:
    assert await changes(http) == await changes(http, 0) == NOTHING
    seen = 0
    calls: list[tuple[str, dict[str, Any], list[int]]] = [
        ("add_task", {"title": "a", "also": ["b", "c"]}, [1, 2, 3]),
        ("update_task", {"task_id": 2, "due": "2030-01-01", "repeat": "FREQ=DAILY", "also": [1]}, [1, 2]),
        ("complete_task", {"task_id": 2}, [2, 4]),
        ("delete_task", {"task_id": 3}, [3]),
        ("update_task", {"task_id": 3, "undo": True}, [3]),
    ]
    for name, arguments, ids in calls:
        await tools.call(name, **arguments)
        told = await changes(http, seen)
        assert (sorted(told["task_ids"]), told["more"]) == (ids, False)
        assert told["last"] > seen
        seen = told["last"]
        assert await changes(http, seen) == {"last": seen, "task_ids": [], "more": False}
    assert await changes(http) == {"last": seen, "task_ids": [], "more": False}
    assert (await changes(http, 0))["task_ids"] == [1, 2, 3, 4], "each once"


async def test_who_was_away_for_long_reads_anew(http: httpx2.AsyncClient, rows: Rows, database_url: str) -> None:
    def add(many: int) -> None:
        with psycopg.connect(as_admin(database_url)) as connection:
            connection.execute(
                "WITH c AS (INSERT INTO task_calls (user_id, operation, arguments, actor) "
                "VALUES ('local', 'add', '{}', 'mcp') RETURNING id) INSERT INTO task_changes "
                "(user_id, call_id, task_id) SELECT 'local', id, n FROM c, generate_series(1, %s) n",
                [many],
            )

    add(1_000)
    told = await changes(http, 0)
    assert (len(told["task_ids"]), told["more"]) == (1_000, False)
    add(1)
    told = await changes(http, 0)
    assert told == {"last": rows("SELECT max(id) AS id FROM task_changes")[0]["id"], "task_ids": [], "more": True}
    assert await changes(http, told["last"]) == {"last": told["last"], "task_ids": [], "more": False}
    assert await changes(http, told["last"] + 5) == told, "of a log that is not there any more"


async def test_no_line_and_no_call(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    identity = {"auth_mode": "jwt", "mcp_token_secret": MCP_TOKEN_SECRET, "mcp_url": AUDIENCE}
    settings = {"database_url": database_url, **identity, "limit_tool_calls_per_minute": 3}
    caplog.set_level(logging.INFO)
    async with (
        serve(create_app(Settings.model_validate(settings))) as base,
        httpx2.AsyncClient(base_url=base, trust_env=False) as http,
    ):
        caplog.clear()
        answers = [await http.get("/changes?after=0", headers=signed(own())) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        seconds = int(answers[-1].headers["retry-after"])
        assert answers[-1].json() == {"error": f"Requests come too fast: go on in {seconds} seconds."}
        assert (await http.get("/changes", headers=signed(own(sub="bob")))).status_code == 200
        result(await send(http, call("list_tasks", {}, token=own())))
        lines = [record for record in caplog.records if record.name.startswith(("mcp_server", "service", "uvicorn"))]
        assert [record.getMessage() for record in lines] == ["tool call"]


async def test_a_database_that_is_away(free_port: Any) -> None:
    settings = Settings.model_validate({"database_url": f"postgresql://todo@127.0.0.1:{free_port()}/todo"})
    async with serve(create_app(settings)) as base, httpx2.AsyncClient(base_url=base, trust_env=False) as http:
        for path in ("/changes?after=0", "/done", "/tasks?ids=1"):
            answer = await http.get(path)
            assert (answer.status_code, set(answer.json())) == (503, {"error"})
            assert answer.json()["error"].startswith("The task database cannot be reached right now")


async def test_the_days_are_the_person_s_own(database_url: str) -> None:
    """In Berlin 25 October 2026 has 25 hours; the clock stands in the night after it."""
    moments = [
        *("2026-10-23T21:59:59Z", "2026-10-23T22:00:00Z", "2026-10-24T21:59:59Z"),
        *("2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"),
    ]
    with psycopg.connect(as_admin(database_url)) as connection:
        for number, moment in enumerate(moments, start=1):
            connection.execute(
                "INSERT INTO tasks (user_id, id, title, status, completed_at) "
                "VALUES ('local', %s, 'x', 'completed', %s)",
                [number, moment],
            )
        connection.execute("INSERT INTO tasks (user_id, id, title, status) VALUES ('local', 7, 'old', 'completed')")
    settings = {"database_url": database_url, "test_now": "2026-10-26T00:30:00+01:00", "time_zone": "Europe/Berlin"}
    async with (
        serve(create_app(Settings.model_validate(settings))) as base,
        httpx2.AsyncClient(base_url=base, trust_env=False) as http,
    ):
        assert (await http.get("/done?days=3")).json() == {
            "days": [
                {"day": "2026-10-24", "done": 2},
                {"day": "2026-10-25", "done": 2},
                {"day": "2026-10-26", "done": 1},
            ]
        }
        days = (await http.get("/done")).json()["days"]
        assert (len(days), days[0]["day"], sum(day["done"] for day in days)) == (28, "2026-09-29", 6)
        utc = (await http.get("/done?days=2&time_zone=UTC")).json()["days"]
        assert utc == [{"day": "2026-10-24", "done": 2}, {"day": "2026-10-25", "done": 2}]
        kept = (await http.get("/done?days=1")).json()["days"]
        assert kept[0]["day"] == "2026-10-25", "the zone that was named is kept"


async def test_tasks_by_their_ids(guarded_http: httpx2.AsyncClient) -> None:
    async def read(ids: str, name: str = "alice") -> list[tuple[int, str, bool]]:
        answer = await guarded_http.get("/tasks", params={"ids": ids}, headers=signed(own(sub=name)))
        assert answer.status_code == 200, answer.text
        return [(task["id"], task["status"], bool(task["deleted_at"])) for task in answer.json()["tasks"]]

    for tool, arguments in (
        ("add_task", {"title": "a", "also": ["b", "c", "d"], "labels": ["home"]}),
        ("complete_task", {"task_id": 2}),
        ("delete_task", {"task_id": 3, "also": [4]}),
        ("update_task", {"task_id": 4, "undo": True}),
    ):
        result(await send(guarded_http, call(tool, arguments, token=own(sub="alice"))))
    there = [(1, "pending", False), (2, "completed", False), (3, "pending", True), (4, "pending", False)]
    assert await read("3,2,1,4,2,9") == there
    assert await read("0,9223372036854775807") == []
    assert await read("1,2,3", "bob") == []
