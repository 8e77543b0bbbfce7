"""How a user wants to be notified: on or off, how long before a task, when the digest is sent, and quiet hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any, LiteralString

from backend.errors import InvalidRequest
from common.database import Database

_COLUMNS = "is_on, remind, digest_time, quiet_from, quiet_until"
_LOAD = f"SELECT {_COLUMNS} FROM alert_settings WHERE user_id = %(user)s"
_ADD = "INSERT INTO alert_settings (user_id, is_on) VALUES (%(user)s, %(is_on)s) ON CONFLICT DO NOTHING"
SWITCH_ON = "INSERT INTO alert_settings (user_id) VALUES (%(user)s) ON CONFLICT DO NOTHING"
"""For a user who has no settings yet."""
# An assignment for each setting; what was not given keeps its value.
_SETTERS: dict[str, LiteralString] = {
    "is_on": "is_on = %(is_on)s",
    "remind": "remind = %(remind)s",
    "digest_time": "digest_time = %(digest_time)s",
    "quiet_from": "quiet_from = %(quiet_from)s",
    "quiet_until": "quiet_until = %(quiet_until)s",
}


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """`remind` are the minutes before the due time of a task that says nothing else; -1 for never."""

    is_on: bool = False
    remind: int = 0
    digest_time: time | None = time(8)
    quiet_from: time | None = None
    quiet_until: time | None = None


async def load_settings(database: Database, user_id: str) -> AlertSettings:
    return await database.fetch_one(user_id, _LOAD, AlertSettings) or AlertSettings()


async def change_settings(database: Database, user_id: str, changes: Mapping[str, Any]) -> AlertSettings:
    """Sets what is in `changes`, by the names of `AlertSettings`, and returns all.

    Settings of a user who had none are off, unless they are switched on. Raises `InvalidRequest`.
    """
    old = await load_settings(database, user_id)
    new_from, new_until = (changes.get(name, getattr(old, name)) for name in ("quiet_from", "quiet_until"))
    if (new_from is None) != (new_until is None):
        raise InvalidRequest("Quiet hours need both quiet_from and quiet_until, or null for both.")
    if new_from is not None and new_from == new_until:
        raise InvalidRequest("Quiet hours must end at another time than they begin, such as from 22:00 until 07:00.")
    setters = ", ".join(_SETTERS[name] for name in changes)
    async with database.transaction(user_id) as tx:
        await tx.execute(_ADD, is_on=bool(changes.get("is_on")))
        await tx.execute(f"UPDATE alert_settings SET {setters} WHERE user_id = %(user)s", **changes)
        cursor = await tx.execute(_LOAD, AlertSettings)
    settings = await cursor.fetchone()
    assert settings is not None
    return settings
