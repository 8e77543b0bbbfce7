import argparse
import sys
from collections.abc import Sequence
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.calendar import address
from backend.conversation import profiles
from backend.settings import AddressSettings
from service import data_commands
from service.environment import SettingsInvalid, read
from service.tokens import is_user_id


def run(arguments: Sequence[str]) -> None:
    """`python -m backend calendar`: print a new address of a person's calendar, which replaces the older one."""
    parser = argparse.ArgumentParser(prog="calendar", description="Prints a new address of a person's calendar.")
    parser.add_argument("--user", type=_user, required=True, help="whose: the `sub` of that person's own tokens")
    parser.add_argument("--revoke", action="store_true", help="let the address that there is open nothing any more")
    given = parser.parse_args(arguments)
    try:
        base = read(AddressSettings).address
    except SettingsInvalid as error:
        sys.exit(str(error))
    data_commands.run(partial(_revoke, user=given.user) if given.revoke else partial(_make, user=given.user, base=base))


async def _make(engine: AsyncEngine, *, user: str, base: str) -> None:
    secret = address.new_secret()
    await profiles.set_calendar(engine, user, address.hash_of(secret))
    sys.stdout.write(f"{address.url(base, secret)}\n")


async def _revoke(engine: AsyncEngine, *, user: str) -> None:
    if not await profiles.revoke_calendar(engine, user):
        sys.exit(f"{user} has no address of a calendar: check the name.")
    sys.stderr.write(f"The address of {user}'s calendar opens nothing any more.\n")


def _user(text: str) -> str:
    if not is_user_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is nobody's name")
    return text
