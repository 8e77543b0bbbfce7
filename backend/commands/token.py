import argparse
import sys
import time

from common.commands import parse_days
from common.environment import read_or_stop, read_settings
from common.settings import TokenSettings
from common.tokens import is_user_id, make_token

_DAY_SECONDS = 86_400


def run(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="token", description="Prints a token for the MCP server, for local use.")
    parser.add_argument(
        "--user", type=_parse_user, required=True, help="whose tasks: the `sub` of that person's own tokens"
    )
    parser.add_argument("--days", type=parse_days, default=1, help="how long it is valid (%(default)s)")
    given = parser.parse_args(arguments)
    settings: TokenSettings = read_or_stop(read_settings, TokenSettings)
    if settings.mcp_token_secret is None:
        sys.exit(
            "MCP_TOKEN_SECRET is not set. ./todo up creates one at its first start; create others with "
            "`openssl rand -hex 32`. With AUTH_MODE=none no token is needed."
        )
    expires = int(time.time()) + given.days * _DAY_SECONDS
    token = make_token(
        settings.mcp_token_secret.get_secret_value(), given.user, audience=settings.mcp_url, expires=expires
    )
    sys.stdout.write(token + "\n")


def _parse_user(text: str) -> str:
    if not is_user_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid user name")
    return text
