import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial

from backend.accounts.accounts import find_account_by_name
from backend.accounts.sessions import AccountDisabled
from backend.accounts.tokens import (
    DEFAULT_DAYS,
    MAX_NAME_LENGTH,
    PersonalTokens,
    TooManyTokens,
    is_token_name,
)
from common import data_commands
from common.commands import parse_token_days
from common.database import Database
from common.environment import read_or_stop, read_settings
from common.scopes import TASKS, TOKEN_SCOPES
from common.settings import SignInSettings, TokenSettings
from common.tokens import MODE, is_user_id, make_token

_DAY_SECONDS = 86_400


class _Settings(TokenSettings, SignInSettings):
    pass


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="token", description="Makes a personal access token and prints it.")
    parser.add_argument("--user", type=_parse_user, required=True, help="whose: the user's name, or `sub` with jwt")
    parser.add_argument("--name", type=_parse_name, default="./todo token", help="what it is for (%(default)s)")
    parser.add_argument("--scope", action="append", choices=TOKEN_SCOPES, help=f"what it allows ({TASKS})")
    parser.add_argument("--days", type=parse_token_days, default=DEFAULT_DAYS, help="how long (%(default)s)")
    given = parser.parse_args(arguments)
    settings: _Settings = read_or_stop(read_settings, _Settings)
    if settings.mcp_token_secret is None:
        sys.exit(
            "MCP_TOKEN_SECRET is not set. ./todo up creates one at its first start; create others with "
            "`openssl rand -hex 32`. With AUTH_MODE=none no token is needed."
        )
    secret = settings.mcp_token_secret.get_secret_value()
    if not settings.signs_in:  # it has no session, and opens the MCP server only
        expires = int(time.time()) + given.days * _DAY_SECONDS
        sys.stdout.write(
            make_token(secret, given.user, audience=settings.mcp_url, expires=expires, **{MODE: "none"}) + "\n"
        )
        return
    scopes = [*dict.fromkeys(given.scope or [TASKS])]
    work = partial(_make, settings=settings, secret=secret, given=given, scopes=scopes)
    data_commands.run(work, or_service=True)  # as in a container of the backend


async def _make(
    database: Database, *, settings: _Settings, secret: str, given: argparse.Namespace, scopes: Sequence[str]
) -> None:
    user = given.user
    if settings.auth_mode != "jwt":
        user = await _find_user(database, given.user)
    tokens = PersonalTokens(
        database,
        secret=secret,
        mcp_url=settings.mcp_url,
        mode=settings.auth_mode,
        needs_account=settings.has_accounts,
    )
    try:
        made = await tokens.make(user, name=given.name, scopes=scopes, days=given.days)
    except (TooManyTokens, AccountDisabled) as error:
        sys.exit(str(error))
    sys.stdout.write(f"{made.token}\n")


async def _find_user(database: Database, name: str) -> str:
    account = await find_account_by_name(database, name)
    if account is None:
        sys.exit(f"There is no account {name}: check the name.")
    if account.disabled_at is not None:
        sys.exit(f"The account {name} is disabled, so it gets no token.")
    return account.user_id


def _parse_user(text: str) -> str:
    if not is_user_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid user name")
    return text


def _parse_name(text: str) -> str:
    if not is_token_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a visible text of 1 to {MAX_NAME_LENGTH} characters")
    return text
