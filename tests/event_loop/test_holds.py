"""The longest time for which the worst request to each route and tool holds the event loop of a service."""

import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.read_routes import PATHS
from mcp_server.tools import RULES
from tests.api.test_routes import ROUTES
from tests.event_loop.cases import READ_CASES, ROUTE_CASES, TOOL_CASES, Attempt, each_body
from tests.event_loop.system import Clients, System, run_system, seed
from tests.scripted_model import ScriptedModel
from tests.serving import http_client

SECONDS = 0.2  # ten times the goal, for a busy machine
REPETITIONS = 5


@pytest.fixture(scope="module")
def system(session_database_url: str) -> Iterator[System]:
    """In a directory that the workspace's account may enter."""
    with (
        tempfile.TemporaryDirectory(prefix="todo-event-loop-") as name,
        run_system(session_database_url, Path(name)) as system,
    ):
        yield system


@pytest.fixture
async def clients(system: System) -> AsyncIterator[Clients]:
    async with (
        http_client(system.backend.url) as backend,
        http_client(system.mcp.url) as mcp,
        ScriptedModel(system.model.url) as model,
    ):
        clients = Clients(backend, mcp, model, system)
        if not system.ids:  # for the first of these tests, as the clients belong to its event loop
            await seed(clients)
        yield clients


def _list_cases() -> Iterator[Any]:
    for method, path in ROUTES:
        cases = ROUTE_CASES.get((method, path), {})
        for kind, attempt in cases.items():
            yield pytest.param([attempt], id=f"{method} {path} {kind}".strip())
        if method in ("POST", "PUT", "PATCH") and not path.endswith("{path}"):
            yield pytest.param([*each_body(method, path).values()], id=f"{method} {path} each JSON")
    for name, cases in {**TOOL_CASES, **READ_CASES}.items():
        if name == "/mcp":
            yield pytest.param([*cases.values()], id="mcp /mcp each JSON")
            continue
        for kind, attempt in cases.items():
            yield pytest.param([attempt], id=f"mcp {name} {kind}".strip())


def test_every_route_and_tool_has_a_worst_request() -> None:
    assert {*ROUTE_CASES} == {*ROUTES}
    assert {*READ_CASES} == {*PATHS, "/mcp"}
    assert {*TOOL_CASES} == {name.partition(".")[0] for name in RULES}


@pytest.mark.extended
@pytest.mark.parametrize("attempts", [*_list_cases()])
async def test_no_request_holds_the_event_loop(
    attempts: list[Attempt], clients: Clients, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    holds: dict[str, list[float]] = {name: [] for name in clients.system.measured}
    for _ in range(REPETITIONS):
        for service in clients.system.measured.values():
            service.reset()
        for attempt in attempts:
            await attempt(clients)
        for name, service in clients.system.measured.items():
            holds[name].append(service.read_longest_hold())
    medians = {name: statistics.median(seconds) for name, seconds in holds.items()}
    name_of_case = request.node.callspec.id
    with capsys.disabled():
        figures = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in medians.items())
        sys.stdout.write(f"\n{name_of_case}: {figures}\n")
    assert max(medians.values()) < SECONDS
