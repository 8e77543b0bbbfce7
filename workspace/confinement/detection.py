"""Which confinement there is on this machine: found by trying, once, when the service starts."""

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from workspace.confinement.base import Confinement, Name
from workspace.confinement.bubblewrap import bubblewrap
from workspace.confinement.landlock import landlock
from workspace.confinement.sandbox_exec import sandbox_exec
from workspace.confinement.unconfined import Unconfined

log = logging.getLogger(__name__)

Wanted = Literal["auto", Name]
Kinds = Mapping[Name, Callable[[], Confinement | str]]
KINDS: Kinds = MappingProxyType({"bubblewrap": bubblewrap, "landlock": landlock, "sandbox-exec": sandbox_exec})
"""In the order in which they are tried: what makes one, or says why there is none."""
_TRY_SECONDS = 20
# What lies beside the folder must not be readable, and the folder must be writable.
_TRY = 'if cat "$1" >/dev/null 2>&1; then echo "files outside can be read" >&2; exit 3; fi; echo tried > trial'


class NotUsable(Exception):
    """A confinement was named that does not work here."""

    def __init__(self, name: Name, reason: str) -> None:
        super().__init__(
            f"WORKSPACE_CONFINEMENT={name} does not work on this machine ({reason}): fix that, or unset it."
        )


async def find(wanted: Wanted = "auto", *, kinds: Kinds = KINDS) -> Confinement | None:
    """The first one that works, or None. Raises `NotUsable` where `wanted` names one that does not."""
    if wanted == "none":
        return Unconfined()
    for name, make in kinds.items():
        if wanted not in ("auto", name):
            continue
        made = make()
        if isinstance(made, str):
            reason = made
        elif (reason := await why_not(made)) is None:
            return made
        if wanted == name:
            raise NotUsable(name, reason)
        log.info("sandbox %s cannot be used: %s", name, reason)
    return None


async def why_not(confinement: Confinement) -> str | None:
    """Why it does not work here; None if it does."""
    with tempfile.TemporaryDirectory(prefix="todo-workspace-") as folder, tempfile.NamedTemporaryFile() as outside:
        try:
            status, said = await _tried(confinement, Path(folder), ["sh", "-c", _TRY, "sh", outside.name])
        except (OSError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        if status == 0 and "trial" in os.listdir(folder):
            return None
        return said.splitlines()[-1] if said else f"it ended with {status}"


async def _tried(confinement: Confinement, folder: Path, argv: Sequence[str]) -> tuple[int | None, str]:
    """Its exit status, and what it said on stderr."""
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
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, said.decode(errors="replace").strip()
