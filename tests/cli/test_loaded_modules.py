"""What the parts of the assistant load when they start, which takes most of the time of a start."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.conftest import find_free_port
from tests.processes import run
from tests.waiting import WAIT_SECONDS

_SETTING = re.compile("LLM_|CEREBRAS_|DATABASE_|OTEL_")

pytestmark = pytest.mark.long(seconds=10)

SCHEMA = {
    "alembic": "migrations run in a process of their own",
    "sqlalchemy": "only migrations compare the schema",
    "sqlmodel": "only migrations read the classes of the tables",
}
TRACES = {"opentelemetry.sdk": "without OTEL_EXPORTER_OTLP_ENDPOINT, no span is made"}
TOOL_SERVER = {
    **SCHEMA,
    **TRACES,
    "agents": "the backend's",
    "beartype": "of key_value",
    "docket": "no tool is a background task",
    "fastmcp.cli": "a tool server is started by itself",
    "fastmcp.client": "a tool server calls no other",
    "fastmcp.server.providers.proxy": "nor does it forward to one",
    "key_value": "sessions have no state",
    "openai": "the backend's",
}
UNNEEDED = {
    "backend": {
        **SCHEMA,
        **TRACES,
        "agents.extensions": "of other models and sandboxes",
        "agents.realtime": "nobody speaks",
        "agents.voice": "nobody speaks",
        "fastmcp": "the backend is a client, of the MCP SDK",
        "icalendar": "few users subscribe to their calendar",
        "numpy": "of agents.voice",
    },
    "mcp-server": {**TOOL_SERVER, "english": "only an import reads dates in English"},
    "workspace": {**TOOL_SERVER, "psycopg": "it has no database"},
    "offline-model": {
        "cryptography": "it checks no token",
        "httpx2": "it sends no request",
        "psycopg": "it has no database",
    },
    "up": {
        "httpx2": "nothing listens where Ollama would",
        "pydantic": "the services read their settings themselves",
    },
}
"""For each part, packages that a first request does not need, and why not."""


def test_services_load_only_what_a_first_request_needs(start, shared_dir: Path) -> None:
    ports = {name: str(find_free_port()) for name in ("--port", "--mcp-port", "--workspace-port")}
    options = [*(word for option in ports.items() for word in option), "--data-dir", str(shared_dir / "data")]
    variables = {
        name: value for name, value in os.environ.items() if not re.match("LLM_|CEREBRAS_|DATABASE_|OTEL_", name)
    }
    variables |= {"OLLAMA_HOST": f"127.0.0.1:{find_free_port()}", "PYTHONPROFILEIMPORTTIME": "1"}
    process = start("-m", "cli", "up", *options, env=variables)
    shown = ""
    for line in process.stdout:
        shown += line
        if line.startswith("  page "):
            break
    logs = {path.stem: path.read_text() for path in (shared_dir / "data/logs").glob("*.log")}
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_SECONDS)
    loaded = {part: find_modules(text) for part, text in {**logs, "up": shown}.items()}
    assert "backend.app" in loaded["backend"], shown
    assert all(loaded[part] for part in UNNEEDED)
    unneeded = {(part, name): why for part, packages in UNNEEDED.items() for name, why in packages.items()}
    assert {package: why for package, why in unneeded.items() if package[1] in loaded[package[0]]} == {}


@pytest.mark.parametrize("service", ["backend", "mcp_server"])
def test_settings_are_checked_without_what_serves(service: str) -> None:
    """The check runs before anything is started, so that everything waits for it."""
    address = {"DATABASE_URL": "postgresql://u@localhost/x"}
    checked = run(service, "check", PYTHONPROFILEIMPORTTIME="1", **address)
    loaded = find_modules(checked.stderr)
    assert (checked.returncode, f"{service}.settings" in loaded) == (0, True), checked.stderr
    assert loaded.isdisjoint({"agents", "aiohttp", "fastapi", "fastmcp", "httpx2", "mcp", "openai", "uvicorn"})
    assert loaded.isdisjoint({"cryptography", "english", "psycopg"})


def find_modules(output: str) -> set[str]:
    """Reads what `python -X importtime` writes."""
    return {*re.findall(r"^import time:.*\| +([\w.]+)$", output, re.MULTILINE)}
