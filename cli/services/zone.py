"""Where this machine is."""

import os
from collections.abc import Mapping
from pathlib import Path

LOCALTIME = Path("/etc/localtime")
_DATABASE = "zoneinfo/"


def time_zone(environment: Mapping[str, str], *, localtime: Path = LOCALTIME) -> str:
    """The name of this machine's time zone, as `TZ` or its own settings have it; UTC where they name none."""
    return named_zone(environment, localtime=localtime) or "UTC"


def named_zone(environment: Mapping[str, str], *, localtime: Path = LOCALTIME) -> str | None:
    """The same; None where they name none."""
    from common.clock import find_zone

    link = os.readlink(localtime) if localtime.is_symlink() else ""
    for named in (environment.get("TZ", "").removeprefix(":"), link):
        name = named.rpartition(_DATABASE)[2]
        if find_zone(name) is not None:
            return name
    return None
