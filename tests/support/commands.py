"""Runs `./todo` as a process, without the settings of this machine."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.conftest import ROOT
from tests.logins import as_owner
from tests.processes import INHERITED
from tests.support.stack import SIGN_IN, Stack
from tests.waiting import WAIT_SECONDS


def redirected(command: Sequence[str], redirection: str) -> list[str]:
    """Returns the command as a shell runs it with a redirection such as `>&-`."""
    return ["sh", "-c", f'"$@" {redirection}', "sh", *command]


def todo(
    *arguments: str, stdin: Any = None, redirection: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command with this environment only."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    command = redirected([sys.executable, "-P", "-m", "cli", *arguments], redirection)
    variables = {**inherited, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **environment}
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL if stdin is None else stdin}
    return subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False, **options
    )


def read_sentences(messages: str) -> list[str]:
    """Returns the lines without those that show the progress of a command that takes long."""
    return [line for line in messages.splitlines() if not re.match(r" +\d+ s  ", line)]


async def todo_at(
    stack: Stack, *arguments: str, redirection: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command as the operator of a stack, on its database and workspaces."""
    workspaces = stack.services.workspace.environment["WORKSPACE_DIR"]
    settings = {**SIGN_IN, "MIGRATION_DATABASE_URL": as_owner(stack.database_url), "WORKSPACE_DIR": workspaces}
    return await asyncio.to_thread(partial(todo, *arguments, redirection=redirection, **settings | environment))
