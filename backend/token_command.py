import argparse
import sys
import time

from backend.settings import TokenSettings
from tokens import is_weak, make_token

DAY = 86_400


def run(arguments: list[str]) -> None:
    """`python -m backend token --user NAME`: print a token for the MCP server, for local use."""
    parser = argparse.ArgumentParser(prog="token", description="Prints a token for the MCP server, for local use.")
    parser.add_argument("--user", required=True, help="whose tasks it is for: the `sub` of that person's own tokens")
    parser.add_argument("--days", type=int, default=1, help="how long it is valid (%(default)s)")
    given = parser.parse_args(arguments)
    settings = TokenSettings()
    if settings.mcp_token_secret is None:
        sys.exit("MCP_TOKEN_SECRET is not set, so the MCP server checks no tokens: none is needed with AUTH_MODE=none.")
    if is_weak(secret := settings.mcp_token_secret.get_secret_value()):
        sys.exit("MCP_TOKEN_SECRET is too weak: make one with `openssl rand -hex 32`.")
    expires = int(time.time()) + given.days * DAY
    token = make_token(secret, given.user, audience=settings.mcp_url, expires=expires)
    sys.stdout.write(token + "\n")
