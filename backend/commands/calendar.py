import argparse
import sys
from collections.abc import Sequence
from functools import partial

from backend.api.identity import LOCAL_USER
from backend.calendar import address
from backend.settings import AddressSettings
from backend.users import profiles
from common import data_commands
from common.database import Database
from common.environment import SettingsInvalid, read_settings
from common.tokens import is_user_id


def run(arguments: Sequence[str]) -> None:
    """`python -m backend calendar`: prints a new address of a user's calendar, which replaces the older one."""
    parser = argparse.ArgumentParser(prog="calendar", description="Prints a new address of a user's calendar.")
    parser.add_argument("--user", type=_user, required=True, help="whose calendar: the `sub` of the user's tokens")
    parser.add_argument("--revoke", action="store_true", help="make the present address stop working")
    given = parser.parse_args(arguments)
    try:
        settings = read_settings(AddressSettings)
    except SettingsInvalid as error:
        sys.exit(str(error))
    if settings.auth_mode == "none" and given.user != LOCAL_USER:
        sys.exit(f"There is no user {given.user}: with AUTH_MODE=none the only user is {LOCAL_USER}.")
    base = settings.address
    work = partial(_revoke, user=given.user) if given.revoke else partial(_make, user=given.user, base=base)
    data_commands.run(work)


async def _make(database: Database, *, user: str, base: str) -> None:
    """Prints a new address of a user's calendar, which replaces the one before.

    Ends the process for an unknown user.
    """
    if user != LOCAL_USER and not await profiles.is_known(database, user):
        sys.exit(f"There is no user {user}: check the name. A user who has never opened the page must do that first.")
    secret = address.new_secret()
    await profiles.set_calendar(database, user, address.hash_of(secret))
    sys.stdout.write(f"{address.url(base, secret)}\n")


async def _revoke(database: Database, *, user: str) -> None:
    """Makes a user's calendar address invalid; ends the process with an error if there is none."""
    if not await profiles.revoke_calendar(database, user):
        sys.exit(f"{user} has no calendar address: check the name.")
    sys.stderr.write(f"The calendar address of {user} no longer works.\n")


def _user(text: str) -> str:
    """Checks a user's name for argparse."""
    if not is_user_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid user name")
    return text
