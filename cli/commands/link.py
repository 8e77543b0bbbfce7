"""`./todo link`: the address that signs in a phone, with its QR code."""

import argparse
import io
import json
import sys
import tempfile
from pathlib import Path

from cli import terminal
from cli.arguments import Commands, UsageError, add_command, user
from cli.errors import CliError
from cli.services import running, running_settings, service_command

_SECONDS = 30


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "link",
        run,
        "use your tasks on a phone",
        "Prints an address, and on a terminal its QR code, that signs in a phone. It works once, within ten minutes, "
        "and replaces the one before. Without sign-in, ./todo up must be running: it then also listens in the local "
        "network, for linked devices alone. The page lists them under Devices, and ends them.",
    )
    parser.add_argument("--user", type=user, metavar="NAME", help="with AUTH_MODE=password: whose tasks")


def run(arguments: argparse.Namespace) -> int:
    directory = arguments.data_dir
    settings = running_settings.load(directory).variables
    has_accounts = settings.get("AUTH_MODE", "none") != "none"
    if has_accounts is not (arguments.user is not None):
        raise UsageError("link needs --user NAME" if has_accounts else "link needs no --user: AUTH_MODE is none")
    if has_accounts:
        with tempfile.TemporaryFile() as output:
            options = "link", f"--user={arguments.user}"
            service_command.run_with_database(directory, "backend", *options, variables=settings, stdout=output)
            output.seek(0)
            address = output.read().decode().strip()
    else:
        address = _ask_backend(directory)
    _show(address)
    return 0


def _ask_backend(directory: Path) -> str:
    import http.client
    from urllib.parse import urlsplit

    page = (running.read_state(directory) or {}).get("page")
    if page is None:
        raise CliError("./todo up is not running. Start it, and try again.")
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(page).port, timeout=_SECONDS)
    try:
        connection.request("POST", "/links")
        answer = json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException):
        raise CliError("./todo up does not answer. Try again when ./todo status shows that it is ready.") from None
    finally:
        connection.close()
    if "error" in answer:
        raise CliError(answer["error"])
    return answer["address"]


def _show(address: str) -> None:
    if sys.stdout.isatty():
        import segno

        drawn = io.StringIO()
        segno.make_qr(address, error="l").terminal(drawn, compact=True)
        terminal.say("Scan this with the camera of your phone, or open the address there, within ten minutes:\n")
        terminal.write(drawn.getvalue() + "\n")
    terminal.say(address)
    if address.startswith("http:"):
        terminal.notice("This address has no https: docs/phone.md says what does not work on the phone then.")
