"""Whatever is sent: a result or a sentence, nothing of the inside, and nobody else's tasks."""

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import same_examples
from tests.mcp.conftest import NewTools, new_user
from tests.mcp.servers import ARGUMENTS, AUDIENCE, SECRETS, own
from tests.mcp.wire import LEGACY, MODERN, call, request
from tests.mutations import mutated, spoiled
from tests.processes import ServiceProcess
from tests.tokens import mint_mcp_token

INSIDE = ("Traceback", "psycopg", "sqlalchemy", "internal error", *SECRETS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=210)
WORDS = st.sampled_from(
    ["2026-11-27", "2999-12-31", "today..", "overdue", "next", "+1d", "15:00", "none", "FREQ=DAILY", "high", "due", "k"]
)
IDS = st.integers(1, 6)
NAMES = "user_id title description task_id status cursor limit also due done priority labels add_labels label query"
VALUES = JSON | ANY_TEXT | WORDS | IDS | st.lists(IDS | ANY_TEXT, max_size=3)
ANYTHING = st.fixed_dictionaries({}, optional=dict.fromkeys([*NAMES.split(), "repeat", "order", "undo", "odd"], VALUES))
ANYTHING |= st.dictionaries(ANY_TEXT, JSON, max_size=2)
# Of each tool, calls that get far: any of these arguments beside what the tool must have.
LIKELY: dict[str, dict[str, Any]] = {
    "add_task": {"title": st.just("milk"), "due": WORDS, "repeat": WORDS, "labels": st.just(["a"])},
    "list_tasks": {"due": WORDS, "done": WORDS, "label": ANY_TEXT, "order": WORDS, "cursor": ANY_TEXT, "query": VALUES},
    "complete_task": {"task_id": IDS, "also": st.lists(IDS, max_size=3)},
    "update_task": {"task_id": IDS, "due": WORDS, "repeat": WORDS, "undo": st.booleans()},
    "delete_task": {"task_id": IDS},
}
TOOLS = st.sampled_from(sorted(LIKELY))
CALLS = st.tuples(TOOLS, ANYTHING) | TOOLS.flatmap(
    lambda tool: st.tuples(st.just(tool), st.fixed_dictionaries({}, optional=LIKELY[tool]))
)
META = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("todo/idempotency_key", "todo/actor", "todo/batch", "todo/undo_batch"), JSON | WORDS),
        "todo/time_zone": JSON | ANY_TEXT | st.just("Asia/Tokyo"),
    },
)


@pytest.fixture
def changing_http(server: ServiceProcess) -> Iterator[httpx2.Client]:
    """Of a user with a task, whose name and token the client has."""
    user = new_user()
    headers = {"Authorization": f"Bearer {mint_mcp_token(user, AUDIENCE)}", "X-Request-ID": user}
    with httpx2.Client(verify=False, base_url=server.url, headers=headers, trust_env=False, timeout=60) as http:
        yield http


@same_examples(200)
@given(called=CALLS, meta=META)
def test_any_arguments(changing_http: httpx2.Client, called: tuple[str, dict[str, Any]], meta: dict[str, Any]) -> None:
    def last() -> int:
        return changing_http.get("/changes").json()["last"]

    before = last()
    made = call(*called, meta=meta)
    headers = {name: made.headers[name] for name in made.headers if name.startswith(("mcp", "content-type", "accept"))}
    response = changing_http.post("/mcp", content=made.content, headers=headers)
    assert response.status_code in (200, 400), response.text
    answer = response.json()
    if "error" in answer or answer["result"]["isError"]:
        assert not any(word in response.text for word in (*INSIDE, "pydantic", "validation error")), response.text
        assert last() == before


@pytest.mark.long
async def test_mutated_requests(guarded_http: httpx2.AsyncClient, new_tools: NewTools) -> None:
    other = new_tools()
    await other.add("milk")
    before = await other.state()
    chance, token = random.Random(4), own(sub=new_user())
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
    valid = [
        *(call(tool, ARGUMENTS[tool], version=version) for tool in ARGUMENTS for version in (MODERN, LEGACY)),
        *(request("tools/list", version=version) for version in (MODERN, LEGACY)),
        request("server/discover"),
        request("initialize", hello, version=LEGACY),
    ]

    async def ask() -> None:
        made = chance.choice(valid)
        body = spoiled(json.dumps(mutated(json.loads(made.content), chance)).encode(), chance)
        headers = {**made.headers, "authorization": f"Bearer {token}"}
        del headers["host"], headers["content-length"]
        if chance.random() < 0.2:
            del headers[chance.choice(["mcp-protocol-version", "mcp-method", "accept", "content-type"])]
        response = await guarded_http.post("/mcp", content=body, headers=headers)
        assert response.status_code < 500, (body, response.text)
        assert not any(word in response.text for word in (*INSIDE, "milk")), (body, response.text)

    for _ in range(25):
        await asyncio.gather(*(ask() for _ in range(20)))
    assert await other.state() == before
