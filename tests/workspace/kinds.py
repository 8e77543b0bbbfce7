"""The confinements that work on this machine."""

import asyncio
from collections.abc import Callable
from functools import cache

from workspace.commands.detection import UNCONFINED, find_fault
from workspace.confinement.base import Confinement
from workspace.confinement.bubblewrap import find_bubblewrap
from workspace.confinement.landlock import find_landlock

OLD = "landlock of Linux 5.13"
_MADE: dict[str, Callable[[], Confinement | str]] = {
    "bubblewrap": find_bubblewrap,
    "landlock": find_landlock,
    OLD: lambda: find_landlock(version=1),
    "none": lambda: UNCONFINED,
}


def made(kind: str) -> Confinement:
    """For the account that asks."""
    confinement = _MADE[kind]()
    assert not isinstance(confinement, str), confinement
    return confinement


@cache
def usable(*, old: bool = False) -> list[str]:
    """The first is the one that would be found; an old Landlock differs only in what has to be closed beside it."""
    return [kind for kind in _MADE if kind != "none" and (old or kind != OLD) and _works(kind)]


def _works(kind: str) -> bool:
    confinement = _MADE[kind]()
    return not isinstance(confinement, str) and asyncio.run(find_fault(confinement)) is None
