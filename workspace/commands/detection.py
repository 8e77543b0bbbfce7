"""Selects the sandbox by trying each kind when the service starts."""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from common.environment import SettingsInvalid
from workspace.commands.running import run_process
from workspace.confinement.base import Confinement, Directory, Launch, Name, create_environment, prefer_kill
from workspace.confinement.bubblewrap import find_bubblewrap
from workspace.confinement.landlock import find_landlock
from workspace.confinement.sandbox_exec import find_sandbox_exec

log = logging.getLogger(__name__)

Kinds = Mapping[Name, Callable[[Sequence[str]], Confinement | str]]
KINDS: Kinds = {"bubblewrap": find_bubblewrap, "landlock": find_landlock, "sandbox-exec": find_sandbox_exec}
"""Functions that return a sandbox in which commands may read some directories, or why there is none, in the order in
which they are tried.
"""
_NO_HOME = "/nonexistent"
_TRY_SECONDS = 20
# Files outside the folder must not be readable, and the folder must be writable.
_TRY = 'if cat "$1" >/dev/null 2>&1; then echo "files outside can be read" >&2; exit 3; fi; echo tried > trial'


@contextmanager
def _launch_unconfined(folder: Path, argv: Sequence[str], _: Directory | None) -> Iterator[Launch]:
    # The folder is no home, because Python and git run files that they find there.
    variables = create_environment(_NO_HOME, GIT_CEILING_DIRECTORIES=str(folder.parent))
    yield Launch(prefer_kill(argv), variables, str(folder))


UNCONFINED = Confinement("none", _launch_unconfined)


async def find_sandbox(
    choice: Name | Literal["auto"] = "auto", *, readable: Sequence[str] = (), kinds: Kinds = KINDS
) -> Confinement | None:
    """Returns the first sandbox that works, or None; raises `SettingsInvalid` if the configured one does not."""
    if choice == "none":
        return UNCONFINED
    for name, find in kinds.items():
        if choice not in ("auto", name):
            continue
        # Tried without `readable`, which may contain the file that the trial must not be able to read.
        tried, sandbox = find(()), find(readable)
        reason = tried if isinstance(tried, str) else await find_fault(tried)
        if reason is None and not isinstance(sandbox, str):
            return sandbox
        if choice == name:
            raise SettingsInvalid(
                f"WORKSPACE_CONFINEMENT={name} does not work on this machine ({reason}): fix that, or unset it."
            )
        log.info("sandbox %s cannot be used: %s", name, reason)
    return None


async def find_fault(confinement: Confinement) -> str | None:
    with tempfile.TemporaryDirectory(prefix="todo-workspace-") as folder, tempfile.NamedTemporaryFile() as outside:
        argv = ["sh", "-c", _TRY, "sh", outside.name]
        try:
            ran = await run_process(confinement, Path(folder), argv, timeout_s=_TRY_SECONDS)
        except OSError as error:
            return f"{type(error).__name__}: {error}"
        if ran.exit_code == 0 and "trial" in os.listdir(folder):
            return None
        return ran.stderr.splitlines()[-1] if ran.stderr else f"it ended with {ran.exit_code}"
