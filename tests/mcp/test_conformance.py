"""The conformance suite of the Model Context Protocol, in both protocol versions, without and with a token.

scenarios.py says which of the suite's scenarios apply to this server.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.scenarios import DOES_NOT_APPLY, MUST_PASS, NEED_A_FIXTURE
from tests.mcp.servers import theirs
from tests.mcp.wire import LEGACY, MODERN
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.processes import ServiceProcess

pytestmark = pytest.mark.long

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


@pytest.mark.parametrize("auth_mode", ["none", "jwt"])
@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_what_applies_passes(
    suite: Suite, server: ServiceProcess, guarded: ServiceProcess, version: str, auth_mode: str
) -> None:
    url, token = (server.url, None) if auth_mode == "none" else (guarded.url, theirs())
    found = suite(url, version, token=token)
    applies = MUST_PASS[version]
    assert set(found) == set(applies).union(*DOES_NOT_APPLY[version].values()), "each must be in one of the lists"
    for name in applies:
        complaints = _complaints(found[name])
        assert set(complaints) == NEED_A_FIXTURE.get(name, set()), complaints
    assert {name: _succeeded(found[name]) for name in applies} == applies


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_nothing_passes_without_a_token(suite: Suite, guarded: ServiceProcess, version: str) -> None:
    found = suite(guarded.url, version)
    assert all(_complaints(found[name]) for name in MUST_PASS[version])
