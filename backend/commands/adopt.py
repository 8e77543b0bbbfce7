import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial

from backend.accounts.accounts import LOCAL_USER, find_account_by_name
from backend.accounts.adoption import Adoption, AdoptionRejected, StillRunning, adopt
from backend.commands.forget import stop_runs
from common import data_commands
from common.database import Database
from common.environment import read_or_stop, read_settings
from common.settings import SignInSettings
from common.text import join_words
from common.tokens import is_user_id

_NAMES = {"tasks": "task", "conversations": "conversation", "runs": "answer"}


def run(arguments: Sequence[str]) -> None:
    """Prints for `python -m workspace adopt` whose files are to be moved to whom, and of which conversations."""
    parser = argparse.ArgumentParser(prog="adopt", description="Gives all that is stored of a user to another one.")
    parser.add_argument("old", metavar="OLD", help="whose data: `local` of AUTH_MODE=none, or another user")
    parser.add_argument("new", metavar="NEW", help="the user who gets it")
    given = parser.parse_args(arguments)
    settings: SignInSettings = read_or_stop(read_settings, SignInSettings)
    data_commands.run(partial(_adopt, old=given.old, new=given.new, has_accounts=settings.auth_mode != "jwt"))


async def _adopt(database: Database, *, old: str, new: str, has_accounts: bool) -> None:
    old, new = await _find_id(database, old), await _find_id(database, new)
    if problem := _find_problem(old, new):
        sys.exit(problem)
    try:
        adoption = await _stop_and_adopt(database, old, new, has_accounts=has_accounts)
    except AdoptionRejected as rejection:
        sys.exit(str(rejection))
    if adoption is None:
        raise data_commands.NothingStored(old)
    json.dump({"old": old, "new": new, "conversations": adoption.conversations}, sys.stdout)
    sys.stdout.write("\n")
    sys.stderr.write(f"{_describe(adoption, old, new)}\n")


async def _stop_and_adopt(database: Database, old: str, new: str, *, has_accounts: bool) -> Adoption | None:
    """Stops running answers only if nothing else is in the way."""
    try:
        return await adopt(database, old, new, needs_account=has_accounts)
    except StillRunning:
        await stop_runs(database, old)
        return await adopt(database, old, new, needs_account=has_accounts)


async def _find_id(database: Database, name: str) -> str:
    """Returns the user id of the account of this name; else what is given, which is an id without an account."""
    account = await find_account_by_name(database, name)
    return account.user_id if account else name


def _find_problem(old: str, new: str) -> str | None:
    if new.casefold() == LOCAL_USER:
        return f"Nobody may be called {LOCAL_USER}: it is the user of AUTH_MODE=none. Choose another account."
    if old == new:
        return f"{old} cannot adopt the data of {old}. Name two different users."
    return None if is_user_id(new) else f"{new!r} is not a valid user name."


def _describe(adoption: Adoption, old: str, new: str) -> str:
    if not adoption.rows:
        return (
            f"{new} adopted the data of {old} before; only files that were left then are moved now. What {old} has "
            f"stored since then stays with {old}."
        )
    counts = {one: adoption.rows.get(table, 0) for table, one in _NAMES.items()}
    parts = [f"{number:,} {one}{'' if number == 1 else 's'}" for one, number in counts.items()]
    return f"{new} has adopted the data of {old}: {join_words(parts)}. {old} is signed out everywhere."
