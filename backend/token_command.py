import argparse
import sys
import time

from backend.settings import TokenSettings
from tokens import is_user_id, is_weak, make_token

DAY = 86_400
MOST_DAYS = 36_500


def run(arguments: list[str]) -> None:
    """`python -m backend token --user NAME`: print a token for the MCP server, for local use."""
    parser = argparse.ArgumentParser(prog="token", description="Prints a token for the MCP server, for local use.")
    parser.add_argument("--user", type=_user, required=True, help="whose tasks: the `sub` of that person's own tokens")
    parser.add_argument("--days", type=_days, default=1, help="how long it is valid (%(default)s)")
    given = parser.parse_args(arguments)
    settings = TokenSettings()
    if settings.mcp_token_secret is None:
        sys.exit(
            "MCP_TOKEN_SECRET is not set. AUTH_MODE=jwt needs it: make one with `openssl rand -hex 32`. "
            "With AUTH_MODE=none no token is needed."
        )
    if is_weak(secret := settings.mcp_token_secret.get_secret_value()):
        sys.exit("MCP_TOKEN_SECRET is too weak: make one with `openssl rand -hex 32`.")
    expires = int(time.time()) + given.days * DAY
    token = make_token(secret, given.user, audience=settings.mcp_url, expires=expires)
    sys.stdout.write(token + "\n")


def _user(text: str) -> str:
    if not is_user_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is nobody's name")
    return text


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST_DAYS):
        raise argparse.ArgumentTypeError(f"{text} is no number of days from 1 to {MOST_DAYS}")
    return int(text)
