"""What both services do with their settings alike."""

import gc
import logging
import socket

import pytest

from backend.settings import Settings as BackendSettings
from mcp_server.settings import Settings as McpSettings
from service import process
from service.settings import ServiceSettings
from tests.logins import as_owner
from tests.tokens import MCP_TOKEN_SECRET

PER_PERSON: dict[type[ServiceSettings], dict[str, int]] = {
    McpSettings: {
        "limit_tool_calls_per_minute": 600,
        "limit_tasks": 10_000,
        "limit_changes_per_day": 5_000,
        "keep_changes_days": 365,
    },
    BackendSettings: {
        "limit_turns_per_minute": 60,
        "limit_running_turns": 4,
        "limit_turns_per_day": 1_000,
        "limit_conversations": 5_000,
        "limit_requests_per_minute": 600,
        "limit_calendar_reads_per_minute": 10,
        "limit_agent_runs": 50,
    },
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in PER_PERSON:
        for name in service.model_fields:
            monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("service", PER_PERSON)
def test_only_people_who_sign_in_are_limited_without_a_setting(service: type[ServiceSettings]) -> None:
    given = {"database_url": "postgresql://localhost/todo", "mcp_token_secret": MCP_TOKEN_SECRET}
    limits = PER_PERSON[service]
    without, with_sign_in = (service.model_validate({**given, "auth_mode": mode}) for mode in ("none", "jwt"))
    assert {name: getattr(with_sign_in, name) for name in limits} == limits
    changed = {name for name in service.model_fields if getattr(without, name) != getattr(with_sign_in, name)}
    assert changed == {"auth_mode", *limits}
    assert {getattr(without, name) for name in limits} == {None}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the socket of a process that ends
@pytest.mark.parametrize(("service", "app"), [(McpSettings, "mcp_server.server"), (BackendSettings, "backend.app")])
def test_the_owner_is_warned_of_at_start(
    service: type[ServiceSettings], app: str, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that nothing is served
        port = {f"{service.prefix.lower()}_port": taken.getsockname()[1]}
        settings = service.model_validate({"database_url": as_owner(database_url), **port})
        with pytest.raises(SystemExit), caplog.at_level(logging.WARNING):
            process.serve(settings, lambda *_: None, app=app, grace_seconds=1, announce=pytest.fail, name="test")
        gc.collect()
    [record] = caplog.records
    assert record.name == app.partition(".")[0]
    assert record.getMessage().startswith("The services log in as the owner of the tables, ")
