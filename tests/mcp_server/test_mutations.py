"""Valid requests with something changed in them: an answer to each, never a failure, and nobody else's tasks."""

import asyncio
import json
import random
from typing import Any

import httpx2
import pytest

from tests.mcp_server.conftest import Rows
from tests.mcp_server.guarded import ARGUMENTS, own
from tests.mcp_server.wire import LEGACY, MODERN, call, request
from tests.tokens import MCP_TOKEN_SECRET

MUTATIONS = 1_000
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "a" * 5000,
    [],
    {},
    [[]],
    {"a": {}},
    "alice",
]
FORBIDDEN = ("Traceback", "psycopg", "sqlalchemy", "postgresql://", "eyJ", "milk", MCP_TOKEN_SECRET)


def mutated(body: Any, chance: random.Random) -> Any:
    """One place in a JSON value made odd, doubled or left out."""
    if not isinstance(body, dict) or not body or chance.random() < 0.15:
        return chance.choice([*ODD, [body]])
    name = chance.choice(list(body))
    match chance.randrange(6):
        case 0:
            return {key: value for key, value in body.items() if key != name}
        case 1:
            return body | {chance.choice(["extra", "user_id", "id", "_meta"]): chance.choice(ODD)}
        case _:
            return body | {name: mutated(body[name], chance)}


def spoiled(body: bytes, chance: random.Random) -> bytes:
    """A byte changed or the end cut off, now and then."""
    place = chance.randrange(len(body))
    match chance.randrange(8):
        case 0:
            return body[:place]
        case 1:
            return body[:place] + chance.randbytes(1) + body[place + 1 :]
        case _:
            return body


@pytest.mark.long
async def test_no_mutation_fails_or_reaches_another_person(
    guarded_http: httpx2.AsyncClient, rows: Rows, milk: Any
) -> None:
    chance, token = random.Random(4), own(sub="bob")
    valid = [
        *(call(tool, ARGUMENTS[tool], version=version) for tool in ARGUMENTS for version in (MODERN, LEGACY)),
        *(request("tools/list", version=version) for version in (MODERN, LEGACY)),
        request("server/discover"),
        request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}, version=LEGACY),
    ]

    async def ask() -> None:
        made = chance.choice(valid)
        body = spoiled(json.dumps(mutated(json.loads(made.content), chance)).encode(), chance)
        headers = {**made.headers, "authorization": f"Bearer {token}"}
        del headers["host"], headers["content-length"]
        if chance.random() < 0.2:
            del headers[chance.choice(["mcp-protocol-version", "mcp-method", "accept", "content-type"])]
        async with asyncio.timeout(10):
            response = await guarded_http.post("/mcp", content=body, headers=headers)
        assert response.status_code < 500, (body, response.text)
        assert not any(word in response.text for word in FORBIDDEN), (body, response.text)

    for _ in range(MUTATIONS // 20):
        await asyncio.gather(*(ask() for _ in range(20)))
    assert [task for task in rows.tasks() if task["user_id"] != "bob"] == milk[0]
    assert [change for change in rows.changes() if change["user_id"] != "bob"] == milk[1]
