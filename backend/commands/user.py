"""Accounts with passwords: `python -m backend user add NAME` and the like, with the login of the tables' owner."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from getpass import getpass
from typing import Any

from backend.accounts import accounts, codes, events
from backend.accounts.passwords import MAX_LENGTH, PasswordRejected, check_password, hash_password
from backend.commands import forget
from backend.settings import AddressSettings
from backend.users import data
from common import data_commands
from common.clock import to_utc
from common.commands import escape_unprintable, format_table
from common.database import NO_USER, Database
from common.environment import read_or_stop, read_settings

_SETUP_SECONDS = 3_600
_EVENTS: dict[str, str] = {
    "account_made": "account made",
    "account_disabled": "account disabled",
    "account_enabled": "account enabled",
    "account_removed": "account removed",
    "account_adopted": "data adopted",
    "sign_in": "signed in",
    "sign_in_failed": "sign-in failed",
    "sign_out": "signed out",
    "password_changed": "password changed",
    "token_made": "token made",
    "token_ended": "token ended",
    "link_made": "link made",
    "device_linked": "device linked",
    "session_ended": "session ended",
    "client_allowed": "client allowed",
    "client_ended": "client ended",
}


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="user", description="Adds, lists and changes accounts with passwords.")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (does, act) in _ACTIONS.items():
        action = actions.add_parser(name, help=does, description=f"{does.capitalize()}.")
        action.set_defaults(act=act)
        if name in ("add", "password"):
            action.add_argument("--stdin", action="store_true", help="read the password from standard input")
        if name == "setup":
            action.add_argument("--if-first", action="store_true", help="print nothing if there is an account")
        elif name != "list":
            action.add_argument("name", nargs="?" if name == "log" else None, help="the name of the user")
    given = parser.parse_args(arguments)
    data_commands.run(partial(given.act, given=given))


async def _add(database: Database, *, given: argparse.Namespace) -> None:
    user_id, name = _parse_name(given.name), given.name.strip()
    if await accounts.find_account(database, user_id) is not None:
        sys.exit(f"There is already an account {escape_unprintable(user_id)}. ./todo user list shows all.")
    password_hash = _read_password(user_id, from_stdin=given.stdin)
    if not await accounts.add_account(database, user_id, name=name, password_hash=password_hash):
        sys.exit(f"There is already an account {escape_unprintable(user_id)}. ./todo user list shows all.")
    await events.add_event(database, user_id, "account_made", by="command")
    sys.stdout.write(f"Made the account {escape_unprintable(name)}.\n")


async def _list(database: Database, *, given: argparse.Namespace) -> None:
    listed = await accounts.list_accounts(database)
    if not listed:
        sys.stdout.write("There is no account yet. ./todo user setup lets you make the first one on the page.\n")
        return
    rows = [["user", "name", "made (UTC)", "last sign-in", "state"]]
    for one in listed:
        state = "disabled" if one.disabled_at else "enabled"
        last = _render_time(one.last_sign_in) if one.last_sign_in else "-"
        names = escape_unprintable(one.user_id), escape_unprintable(one.name)
        rows.append([*names, _render_time(one.created_at), last, state])
    sys.stdout.write("\n".join(format_table(rows, left=range(5))) + "\n")


async def _set_password(database: Database, *, given: argparse.Namespace) -> None:
    account = await _find(database, given.name)
    password_hash = _read_password(account.user_id, from_stdin=given.stdin)
    if not await accounts.set_password(database, account.user_id, password_hash):
        _exit_unknown(given.name)
    sys.stdout.write("Changed the password. All sessions and tokens of the user have ended.\n")


async def _disable(database: Database, *, given: argparse.Namespace) -> None:
    account = await _find(database, given.name)
    if await accounts.disable_account(database, account.user_id):
        await events.add_event(database, account.user_id, "account_disabled")
    await forget.stop_runs(database, account.user_id)
    user = escape_unprintable(account.user_id)
    sys.stdout.write(f"Disabled the account {user}. All of its sessions, tokens and answers have ended.\n")


async def _enable(database: Database, *, given: argparse.Namespace) -> None:
    account = await _find(database, given.name)
    if await accounts.enable_account(database, account.user_id):
        await events.add_event(database, account.user_id, "account_enabled")
    sys.stdout.write(f"Enabled the account {escape_unprintable(account.user_id)}.\n")


async def _remove(database: Database, *, given: argparse.Namespace) -> None:
    """Deletes the account and what this service stores of the user, who is signed out everywhere before."""
    account = await _find(database, given.name)
    await accounts.disable_account(database, account.user_id)
    await asyncio.sleep(data.KNOWN_SECONDS)
    await forget.delete_user(database, user=account.user_id)
    async with database.owner_transaction() as tx:
        await events.send_event(tx, "account_removed", name=account.name)
    sys.stdout.write(f"{account.user_id}\n")  # with which the other services delete what they store


async def _setup(database: Database, *, given: argparse.Namespace) -> None:
    """Prints an address at which the first account can be made; the code in its fragment is sent to no server."""
    if await accounts.list_accounts(database):
        if given.if_first:
            return
        sys.exit("There is already an account, so this opens nothing. ./todo user add NAME makes others.")
    settings: AddressSettings = read_or_stop(read_settings, AddressSettings)
    async with database.owner_transaction() as tx:
        code = await codes.send_code(tx, "setup", seconds=_SETUP_SECONDS)
    sys.stdout.write(f"{settings.address}/#setup={code}\n")


async def _log(database: Database, *, given: argparse.Namespace) -> None:
    user_id = NO_USER
    if given.name is not None:
        account = await accounts.find_account_by_name(database, given.name)
        user_id = account.user_id if account else given.name
    rows = [["time (UTC)", "user", "event", "details"]]
    for event in await events.list_events(database, user_id or None):
        details = ", ".join(str(value) for value in event.details.values() if value is not None)
        what = _EVENTS.get(event.kind, event.kind)
        texts = (event.user_id or "-", what, details)
        rows.append([_render_time(event.at), *map(escape_unprintable, texts)])
    sys.stdout.write("\n".join(format_table(rows, left=range(4))) + "\n" if rows[1:] else "Nothing is logged.\n")


_Action = Callable[..., Awaitable[None]]
_ACTIONS: dict[str, tuple[str, _Action]] = {
    "add": ("make an account, with a password that you type", _add),
    "list": ("show all accounts", _list),
    "password": ("set another password, and end all sessions and tokens of the user", _set_password),
    "disable": ("end all sessions of a user, who cannot sign in any more", _disable),
    "enable": ("let a user sign in again", _enable),
    "remove": ("delete an account and the conversations of its user", _remove),
    "setup": ("print an address at which the first account can be made on the page", _setup),
    "log": ("show sign-ins and what else happened to accounts, the newest last", _log),
}


def _parse_name(name: str) -> str:
    user_id = accounts.fold_name(name.strip())
    if user_id is None:
        sys.exit(
            "A name has up to 64 letters and digits, and may have . _ @ and - between them; local is reserved. "
            "Choose another name."
        )
    return user_id


async def _find(database: Database, name: str) -> accounts.Account:
    return await accounts.find_account_by_name(database, name) or _exit_unknown(name)


def _exit_unknown(name: str) -> Any:
    sys.exit(f"There is no account {escape_unprintable(name)}. ./todo user list shows all.")


def _read_password(user_id: str, *, from_stdin: bool) -> str:
    """Returns the hash of a password that is typed twice on the terminal, or is a line of standard input."""
    if from_stdin:
        try:
            password = sys.stdin.buffer.readline(4 * MAX_LENGTH + 2).decode().rstrip("\r\n")
        except UnicodeDecodeError:
            sys.exit("The password on standard input is not UTF-8 text. Nothing was changed.")
    elif sys.stdin.isatty():
        password = getpass("Password (at least 8 characters): ")
        if getpass("Again: ") != password:
            sys.exit("The two passwords differ. Nothing was changed.")
    else:
        sys.exit("There is no terminal to type the password on. Add --stdin to read it from standard input.")
    try:
        check_password(password, user_id=user_id)
    except PasswordRejected as error:
        sys.exit(f"{error} Nothing was changed.")
    return hash_password(password)


def _render_time(time: datetime) -> str:
    return f"{to_utc(time):%Y-%m-%d %H:%M}"
