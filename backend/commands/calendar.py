import argparse
import sys
from collections.abc import Sequence
from functools import partial

from backend.accounts.accounts import LOCAL_USER
from backend.calendar import address
from backend.settings import AddressSettings
from backend.users import profiles
from common import data_commands
from common.database import Database
from common.environment import read_or_stop, read_settings


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="calendar", description="Prints a new address of a user's calendar.")
    parser.add_argument("--user", required=True, help="whose calendar: the `sub` of the user's tokens")
    parser.add_argument("--revoke", action="store_true", help="make the present address stop working")
    given = parser.parse_args(arguments)
    settings: AddressSettings = read_or_stop(read_settings, AddressSettings)
    if not settings.signs_in and given.user != LOCAL_USER:
        sys.exit(f"There is no user {given.user}: with AUTH_MODE=none the only user is {LOCAL_USER}.")
    work = partial(_revoke, user=given.user) if given.revoke else partial(_make, user=given.user, base=settings.address)
    data_commands.run(work)


async def _make(database: Database, *, user: str, base: str) -> None:
    if user != LOCAL_USER and not await profiles.is_known(database, user):
        sys.exit(f"There is no user {user}: check the name. A user who has never opened the page must do that first.")
    sys.stdout.write(f"{await address.create_address(database, user, base)}\n")


async def _revoke(database: Database, *, user: str) -> None:
    if not await profiles.revoke_calendar(database, user):
        sys.exit(f"{user} has no calendar address: check the name.")
    sys.stderr.write(f"The calendar address of {user} no longer works.\n")
