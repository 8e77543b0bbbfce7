"""What the conformance suite said, as the end of the test run shows it: both lists, and what passed."""

import json
from collections.abc import Iterator

from tests.mcp_server.scenarios import DOES_NOT_APPLY, MUST_PASS, NEED_A_FIXTURE
from tests.node_packages import MCP_CLIENTS

CONFORMANCE = "conformance"
"""The property of a test's report that has the arguments of `Conformance.record`."""


class Conformance:
    def __init__(self) -> None:
        self._passed: dict[tuple[str, str], dict[str, int]] = {}

    def record(self, version: str, auth_mode: str, passed: dict[str, int]) -> None:
        """How many checks of each scenario that must pass did."""
        self._passed[version, auth_mode] = passed

    def lines(self) -> Iterator[str]:
        """Nothing if the suite did not run."""
        if not self._passed:
            return
        suite = "@modelcontextprotocol/conformance"
        yield f"{suite} {json.loads((MCP_CLIENTS / 'package.json').read_text())['dependencies'][suite]}"
        for version, must_pass in MUST_PASS.items():
            for (ran, auth_mode), passed in self._passed.items():
                if ran == version:
                    whole = sum(passed[name] == checks for name, checks in must_pass.items())
                    yield f"{version}, AUTH_MODE={auth_mode}: {whole} of {len(must_pass)} applicable scenarios pass"
            yield "  must pass (checks): " + ", ".join(f"{name} ({checks})" for name, checks in must_pass.items())
            for name in sorted(must_pass.keys() & NEED_A_FIXTURE.keys()):
                yield f"    {name} but for what needs the suite's own tool: {', '.join(sorted(NEED_A_FIXTURE[name]))}"
            yield f"  does not apply ({sum(map(len, DOES_NOT_APPLY[version].values()))}):"
            for reason, names in DOES_NOT_APPLY[version].items():
                yield f"    {reason}: {', '.join(sorted(names))}"
