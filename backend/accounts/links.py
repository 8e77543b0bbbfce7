"""Links by which a user's phone is signed in: each is a code that can be taken once."""

from datetime import datetime
from typing import NamedTuple

from backend.accounts.accounts import LOCAL_USER, find_account
from backend.accounts.codes import make_code, take_code
from backend.accounts.events import add_event
from backend.errors import BackendError
from common.database import Database

LINK_SECONDS = 600.0
DEVICE_SECONDS = 400 * 86_400
"""How long a linked device stays signed in, which is as long as browsers keep a cookie."""
_HAS_DEVICES = """
SELECT EXISTS (
    SELECT FROM one_time_codes WHERE user_id = %(user)s AND kind = 'link' AND expires_at > now()
) OR EXISTS (
    SELECT FROM sessions WHERE user_id = %(user)s AND kind = 'device' AND ended_at IS NULL AND expires_at > now()
) AS has_devices"""


class LinkNotValid(BackendError):
    """This link is not valid any more: a link works once, for ten minutes. Make a new one and try again."""

    code, status = "link_not_valid", 401


class TakenLink(NamedTuple):
    user_id: str
    device_expires: float
    """The latest time at which the device's session may end, as Unix time."""
    by: str | None
    """The session that has made the link; None: the operator, or this machine without sign-in."""


async def make_link(
    database: Database, user_id: str, *, by: str | None = None, device_expires: datetime | None = None
) -> str:
    """Returns the code of a new link, with which the older ones of the user end.

    The session of the device ends at `device_expires` at the latest.
    """
    details = {"by": by} | ({} if device_expires is None else {"device_expires": device_expires.timestamp()})
    code = await make_code(database, user_id, "link", seconds=LINK_SECONDS, details=details, replaces=True)
    await add_event(database, user_id, "link_made")
    return code


async def take_link(database: Database, code: str) -> TakenLink:
    """Returns whose link it is. Raises `LinkNotValid`, also if the user may not sign in any more."""
    taken = await take_code(database, code, "link")
    if taken is None:
        raise LinkNotValid
    account = await find_account(database, taken.user_id)
    if account is not None and account.disabled_at is not None:
        raise LinkNotValid
    return TakenLink(taken.user_id, taken.details.get("device_expires", float("inf")), taken.details["by"])


async def has_local_devices(database: Database) -> bool:
    """Whether the local user has a linked device, or a link for one."""
    row = await database.fetch_one(LOCAL_USER, _HAS_DEVICES)
    return row is not None and row["has_devices"]
