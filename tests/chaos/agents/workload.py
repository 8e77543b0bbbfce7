"""The workspace and the model script of users who start agents, and the checks of their runs."""

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path

from tests.chaos.agents.checks import AssignmentChecks
from tests.chaos.agents.model_script import APPROVAL_TOOL, AgentScript
from tests.chaos.checks.stored_rows import StoredRows
from tests.chaos.client_record import ClientRecord
from tests.chaos.system import APPROVAL_TOOLS
from tests.chatkit_client import ChatKit
from tests.workspace_service import create_workspace_service

_COMMAND_END_SECONDS = 5.0


class AgentWorkload:
    """With `approve_starts`, starting an agent needs an approval, too, and not only one of its tools."""

    def __init__(self, directory: Path, *, approve_starts: bool) -> None:
        self._approve_starts = approve_starts
        # The argument of `sleep` identifies the commands of this workload in the process list.
        self._long_seconds = f"6.{random.SystemRandom().randrange(10**9):09}"
        self.script = AgentScript(self._long_seconds)
        self.approval_tools = (*APPROVAL_TOOLS, APPROVAL_TOOL, *(["agents"] if approve_starts else []))
        self.workspace, self._folders = create_workspace_service(directory)
        self.figures = ""

    async def find_problems(self, rows: StoredRows, chat: ChatKit, record: ClientRecord) -> list[str]:
        """Is called when nothing is killed any more and no run is running; sets `figures`."""
        deadline = time.monotonic() + _COMMAND_END_SECONDS
        while (left := _find_processes(self._long_seconds)) and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        checks = AssignmentChecks(rows, self._folders, approve_starts=self._approve_starts)
        outcomes = Counter(assignment.status for assignment in checks.assignments.values())
        counts = ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))
        self.figures = (
            f"; agents started {'by approval' if self._approve_starts else 'without approval'}: "
            f"{len(checks.assignments)} ({counts}), {self.script.requests} model requests, "
            f"{sum(map(len, self.script.outputs.values()))} outputs read, "
            f"{len(record.finished_assignments)} reported as done; approvals: {checks.approval_counts}"
        )
        return [
            *(f"a command still runs: {process}" for process in left),
            *checks.find_problems(self.script.outputs, record.finished_assignments),
            *await checks.find_workflow_problems(chat),
        ]


def _find_processes(argument: str) -> list[str]:
    """Returns the processes whose command line contains a string."""
    processes: list[str] = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if argument.encode() in command_line:
            processes.append(f"{pid}: {command_line!r}")
    return processes
