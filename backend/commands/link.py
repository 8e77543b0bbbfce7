import argparse
import sys
from collections.abc import Sequence
from functools import partial

from backend.accounts import links
from backend.accounts.accounts import find_account, fold_name
from backend.settings import AddressSettings
from common import data_commands
from common.database import Database
from common.environment import read_or_stop, read_settings


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="link", description="Prints a link that signs a user in on a phone, once.")
    parser.add_argument("--user", required=True, help="the name of the account")
    given = parser.parse_args(arguments)
    settings: AddressSettings = read_or_stop(read_settings, AddressSettings)
    if settings.auth_mode != "password":
        sys.exit(f"With AUTH_MODE={settings.auth_mode}, links are made on the page: choose “Use on my phone” there.")
    if settings.backend_url is None:
        sys.exit("BACKEND_URL is not set. Set it to the address of the page, which the link begins with.")
    data_commands.run(partial(_make, name=given.user, address=settings.backend_url))


async def _make(database: Database, *, name: str, address: str) -> None:
    user_id = fold_name(name)
    account = user_id and await find_account(database, user_id)
    if not account or account.disabled_at is not None:
        sys.exit(f"There is no account {name} that may sign in: check the name.")
    sys.stdout.write(f"{address}/#link={await links.make_link(database, account.user_id)}\n")
