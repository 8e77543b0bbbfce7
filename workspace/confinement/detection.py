"""Selects the sandbox by trying each kind when the service starts."""

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal

from workspace.confinement.base import (
    Confinement,
    Directory,
    DirectoryAccess,
    Launch,
    Name,
    create_environment,
    prefer_kill,
)
from workspace.confinement.bubblewrap import find_bubblewrap
from workspace.confinement.landlock import find_landlock
from workspace.confinement.sandbox_exec import find_sandbox_exec

log = logging.getLogger(__name__)

Choice = Literal["auto", Name]
Kinds = Mapping[Name, Callable[[], Confinement | str]]
KINDS: Kinds = MappingProxyType(
    {"bubblewrap": find_bubblewrap, "landlock": find_landlock, "sandbox-exec": find_sandbox_exec}
)
"""Functions that return a sandbox or why there is none, in the order in which they are tried."""
_NO_HOME = "/nonexistent"
_TRY_SECONDS = 20
# Files outside the folder must not be readable, and the folder must be writable.
_TRY = 'if cat "$1" >/dev/null 2>&1; then echo "files outside can be read" >&2; exit 3; fi; echo tried > trial'


@dataclass(frozen=True)
class Unconfined:
    name: ClassVar[Name] = "none"
    has_separate_count: ClassVar[bool] = False
    directories: ClassVar[DirectoryAccess] = None

    @contextmanager
    def launch(
        self, folder: Path, argv: Sequence[str], *, directory: Directory | None = None, readable: Sequence[str] = ()
    ) -> Iterator[Launch]:
        # The folder is no home, because Python and git run files that they find there.
        variables = create_environment(_NO_HOME, GIT_CEILING_DIRECTORIES=str(folder.parent))
        yield Launch(prefer_kill(argv), variables, str(folder))


class SandboxUnusable(Exception):
    def __init__(self, name: Name, reason: str) -> None:
        super().__init__(
            f"WORKSPACE_CONFINEMENT={name} does not work on this machine ({reason}): fix that, or unset it."
        )


async def find_sandbox(choice: Choice = "auto", *, kinds: Kinds = KINDS) -> Confinement | None:
    """Returns the first sandbox that works, or None; raises `SandboxUnusable` if the configured one does not."""
    if choice == "none":
        return Unconfined()
    for name, make in kinds.items():
        if choice not in ("auto", name):
            continue
        sandbox = make()
        if isinstance(sandbox, str):
            reason = sandbox
        elif (reason := await find_fault(sandbox)) is None:
            return sandbox
        if choice == name:
            raise SandboxUnusable(name, reason)
        log.info("sandbox %s cannot be used: %s", name, reason)
    return None


async def find_fault(confinement: Confinement) -> str | None:
    with tempfile.TemporaryDirectory(prefix="todo-workspace-") as folder, tempfile.NamedTemporaryFile() as outside:
        try:
            status, stderr = await _run_trial(confinement, Path(folder), ["sh", "-c", _TRY, "sh", outside.name])
        except (OSError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        if status == 0 and "trial" in os.listdir(folder):
            return None
        return stderr.splitlines()[-1] if stderr else f"it ended with {status}"


async def _run_trial(confinement: Confinement, folder: Path, argv: Sequence[str]) -> tuple[int | None, str]:
    with confinement.launch(folder, argv) as launch:
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=dict(launch.environment),
            cwd=launch.directory,
            pass_fds=launch.descriptors,
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(_TRY_SECONDS):
            _, stderr = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, stderr.decode(errors="replace").strip()
