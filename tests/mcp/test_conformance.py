"""The conformance suite of the Model Context Protocol, in both protocol versions, without and with a token.

The suite drives a server of its own with tools, prompts and resources of fixed names. Where this server has none, a
scenario says nothing of it, even one that passes: an empty list is a valid list, an unknown tool is an error.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.servers import theirs
from tests.mcp.wire import LEGACY, MODERN
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.processes import ServiceProcess

pytestmark = pytest.mark.long

# How many checks each of them makes, so that one which makes fewer is noticed.
MUST_PASS: dict[str, dict[str, int]] = {
    LEGACY: {
        "server-initialize": 2,
        "ping": 2,
        "tools-list": 3,
        "dns-rebinding-protection": 2,
    },
    MODERN: {
        "server-stateless": 22,
        "tools-list": 4,
        "caching": 7,
        "dns-rebinding-protection": 2,
        "http-header-validation": 14,
        "server-sse-multiple-streams": 1,
    },
}

# Checks of those scenarios that call for one of the suite's own tools, or for prompts.
NEED_A_FIXTURE: dict[str, set[str]] = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-server-declares-prompts-in-discover",
    },
}

Checks = dict[str, list[dict[str, Any]]]
Suite = Callable[..., Checks]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Runs what a protocol version requires of servers; answers the checks of each scenario."""
    node_modules = install_packages(MCP_CLIENTS)
    program = node_modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def run(base: str, version: str, *, token: str | None = None) -> Checks:
        signing_in = [] if token is None else ["--import", str(MCP_CLIENTS / "authorize.mjs")]
        options = ["--url", f"{base}/mcp", "--requirements", version, "--output-dir", str(tmp_path)]
        done = subprocess.run(
            [node_modules / ".bin" / "node", *signing_in, program, "server", *options],
            env=os.environ | {"MCP_TOKEN": token or ""},
            capture_output=True,
            text=True,
            timeout=120,
        )
        found = {_scenario(file): json.loads(file.read_text()) for file in tmp_path.glob("*/checks.json")}
        assert found, done.stdout + done.stderr
        return found

    return run


def _scenario(checks: Path) -> str:
    """The results are in server-SCENARIO-TIME/checks.json."""
    match = re.fullmatch(r"server-(.+)-\d{4}-\d{2}-\d{2}T.+", checks.parent.name)
    assert match, checks
    return match[1]


def _succeeded(checks: list[dict[str, Any]]) -> int:
    return sum(check["status"] == "SUCCESS" for check in checks)


def _complaints(checks: list[dict[str, Any]]) -> dict[str, str]:
    return {check["id"]: str(check) for check in checks if check["status"] in ("FAILURE", "WARNING")}


@pytest.mark.parametrize(("version", "auth_mode"), [(LEGACY, "none"), (MODERN, "jwt")])
def test_what_applies_passes(
    suite: Suite, server: ServiceProcess, guarded: ServiceProcess, version: str, auth_mode: str
) -> None:
    url, token = (server.url, None) if auth_mode == "none" else (guarded.url, theirs())
    found = suite(url, version, token=token)
    applies = MUST_PASS[version]
    for name in applies:
        complaints = _complaints(found[name])
        assert set(complaints) == NEED_A_FIXTURE.get(name, set()), complaints
    assert {name: _succeeded(found[name]) for name in applies} == applies
