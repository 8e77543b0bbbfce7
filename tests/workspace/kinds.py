"""The confinements that work on this machine."""

import asyncio
from collections.abc import Callable
from functools import cache

from workspace.confinement.bubblewrap import bubblewrap
from workspace.confinement.confinement import Confinement
from workspace.confinement.found import why_not
from workspace.confinement.landlock import landlock
from workspace.confinement.unconfined import Unconfined

_MADE: dict[str, Callable[[], Confinement | str]] = {
    "bubblewrap": bubblewrap,
    "landlock": landlock,
    "landlock of Linux 5.13": lambda: landlock(1),  # which leaves the most open
    "none": Unconfined,
}


def made(kind: str) -> Confinement:
    """For the account that asks."""
    confinement = _MADE[kind]()
    assert not isinstance(confinement, str), confinement
    return confinement


@cache
def usable() -> list[str]:
    return [kind for kind in _MADE if kind != "none" and _works(kind)]


def _works(kind: str) -> bool:
    confinement = _MADE[kind]()
    return not isinstance(confinement, str) and asyncio.run(why_not(confinement)) is None
