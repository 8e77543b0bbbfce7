"""What `./todo` takes, and what it says to who types it wrong. Standard library only, as it answers before packages."""

import argparse
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cli import data_dir, terminal
from service import given
from service.commands import days

USAGE_STATUS = 2
IMPORTED = ("todoist", "todo.txt", "export")
LOGS = (*(part.replace("_", "-") for part in given.PARTS), "postgres")


class Parser(argparse.ArgumentParser):
    """One sentence about what is wrong, which names the help."""

    def error(self, message: str) -> NoReturn:
        terminal.error(f"{message} (see {self.prog.replace('todo', './todo', 1)} --help)")
        sys.exit(USAGE_STATUS)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import tomllib

        terminal.say(tomllib.loads((data_dir.CHECKOUT / "pyproject.toml").read_text())["project"]["version"])
        parser.exit()


def parse(arguments: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """What was asked for, and for `test` what it leaves to pytest; ends the process when that cannot be."""
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    if given.command is None:
        parser.print_help(sys.stderr)
        sys.exit(USAGE_STATUS)
    if given.command == "mcp" and (wrong := _check_mcp(given)):
        parser.error(wrong)
    if rest and given.command != "test":
        terminal.error(f"unrecognized arguments: {' '.join(rest)} (see ./todo {given.command} --help)")
        sys.exit(USAGE_STATUS)
    return given, rest


def _parser() -> Parser:
    parser = Parser(prog="todo", description="A to-do assistant you run yourself.", allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_running(commands)
    _add_mcp(commands)
    _add_data_commands(commands)
    _add_development(commands)
    return parser


def _add_running(commands: "argparse._SubParsersAction[Parser]") -> None:
    up = commands.add_parser(
        "up",
        help="run everything on this machine until Ctrl-C",
        description="Runs everything on this machine until Ctrl-C: PostgreSQL (unless DATABASE_URL is set), "
        "migrations, the offline model (when there is no key of another), the MCP server, the workspace (unless "
        "AGENTS=off) and the backend. "
        "Settings are read from the environment and from .env in the checkout.",
        allow_abbrev=False,
    )
    up.add_argument("--port", type=_port, help="of the page and /chatkit (BACKEND_PORT, else 8000)")
    up.add_argument("--mcp-port", type=_port, help="of the MCP server (MCP_PORT, else 8001)")
    up.add_argument("--workspace-port", type=_port, help="of the workspace (WORKSPACE_PORT, else 8003)")
    _add_data_dir(up)
    up.add_argument("--verbose", action="store_true", help="show the logs of all parts")

    status = commands.add_parser(
        "status",
        help="show what runs",
        description="Shows what ./todo up runs, where, since when and whether it is ready. Status 1 when nothing runs.",
        allow_abbrev=False,
    )
    _add_data_dir(status)

    logs = commands.add_parser(
        "logs",
        help="show the logs of what runs, or ran",
        description="Shows the end of the logs of what ./todo up runs, or ran the last time.",
        allow_abbrev=False,
    )
    logs.add_argument("service", nargs="?", type=_service, help=f"one of {', '.join(LOGS)}; without it all of them")
    logs.add_argument("--follow", action="store_true", help="show what is added, until Ctrl-C")
    _add_data_dir(logs)

    migrate = commands.add_parser(
        "migrate",
        help="bring the database to the newest schema",
        description="Brings the database at MIGRATION_DATABASE_URL, else DATABASE_URL, else the one in the data "
        "directory, to the newest schema.",
        allow_abbrev=False,
    )
    _add_data_dir(migrate)

    token = commands.add_parser(
        "token",
        help="make a token for the MCP server",
        description="Prints a token with which an MCP client on this machine works on one person's tasks.",
        allow_abbrev=False,
    )
    token.add_argument("--user", type=_name, required=True, metavar="NAME", help="whose tasks")
    token.add_argument("--days", type=days, default=1, help="how long it is valid (%(default)s)")
    token.add_argument("--mcp-port", type=_port, help="of the MCP server (MCP_PORT, else 8001)")
    _add_data_dir(token)


def _add_mcp(commands: "argparse._SubParsersAction[Parser]") -> None:
    mcp = commands.add_parser(
        "mcp",
        help="show other MCP servers, and approve their tools for the agents",
        description="Shows the MCP servers of mcp.json and what their tools say of themselves, approves tools, or "
        "tests whether a server answers. Agents are offered a tool that is approved until what it says changes.",
        allow_abbrev=False,
    )
    mcp.add_argument("action", choices=("list", "approve", "test"))
    mcp.add_argument("server", nargs="?", metavar="SERVER", help="which one, to approve or test")
    mcp.add_argument(
        "tools", nargs="*", default=[], metavar="TOOL", help="to approve; without it all that the server has"
    )
    _add_data_dir(mcp)


def _check_mcp(given: argparse.Namespace) -> str | None:
    if given.action == "list":
        return "mcp list takes nothing more" if given.server else None
    if given.server is None:
        return f"mcp {given.action} needs the name of a server: ./todo mcp list shows them"
    return "mcp test takes one server and nothing more" if given.action == "test" and given.tools else None


def _add_development(commands: "argparse._SubParsersAction[Parser]") -> None:
    bench = commands.add_parser(
        "bench",
        help="measure how fast it is",
        description="Runs everything on a throwaway PostgreSQL and an instant model, beside what it is made of.",
        allow_abbrev=False,
    )
    bench.add_argument("--full", action="store_true", help="longer, for figures that vary less")
    bench.add_argument("--against", type=Path, metavar="DIR", help="beside another checkout instead, in turns")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")

    commands.add_parser(
        "audit",
        help="look the locked packages up in the lists of known vulnerabilities",
        description="Looks the packages of the requirements locks for this platform up in a public list of known "
        "vulnerabilities, and those of the tests' npm locks where npm is there. Needs the internet.",
        allow_abbrev=False,
    )

    test = commands.add_parser(
        "test",
        usage="todo test [-h] [--all] [pytest arguments]",
        help="check the code and run the tests",
        description="Checks the code and runs the tests on a throwaway PostgreSQL, or in databases of their own on "
        "the server of DATABASE_URL. Further arguments are pytest's.",
        allow_abbrev=False,
    )
    test.add_argument("--all", action="store_true", help="also pyright and the tests that take long, as CI does")


def _add_data_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    calendar = commands.add_parser(
        "calendar",
        help="make an address at which a calendar program reads a person's dated tasks",
        description="Prints a new address at which a calendar program reads a person's dated tasks. It replaces the "
        "older one, and is not shown again.",
        allow_abbrev=False,
    )
    calendar.add_argument("--revoke", action="store_true", help="let the address that there is open nothing any more")
    calendar.add_argument("--port", type=_port, help="of the page (BACKEND_PORT, else 8000), without BACKEND_URL")

    usage = commands.add_parser(
        "usage",
        help="show what the model was used for, by day, person and model",
        description="Prints turns, requests to the model and tokens by day (UTC), person and model.",
        allow_abbrev=False,
    )
    usage.add_argument("--days", type=days, default=30, help="today and the days before it (%(default)s)")
    usage.add_argument("--user", type=_name, metavar="NAME", help="of this person only")
    usage.add_argument("--json", action="store_true", help="as a JSON array instead of a table")

    export = commands.add_parser(
        "export",
        help="write everything that is stored of a person as JSON",
        description="Writes a person's tasks, their changes, and the conversations as one JSON document, and with "
        "--files the files of the conversations as a tar archive.",
        allow_abbrev=False,
    )
    export.add_argument("--output", type=Path, metavar="FILE", help="write it to this new file, readable by you only")
    export.add_argument("--files", type=Path, metavar="FILE.tar", help="write the conversations' files to it, likewise")

    import_ = commands.add_parser(
        "import",
        help="add the tasks of a file: Todoist's CSV, a todo.txt, or an export",
        description="Adds the tasks of a file to a person's list, each once however often it is imported. Lines that "
        "cannot be read are listed with the reason; the status is then 1, and 0 when everything was read.",
        allow_abbrev=False,
    )
    import_.add_argument("file", type=Path, metavar="FILE", help="Todoist's CSV, a todo.txt, or an export of ours")
    import_.add_argument("--format", choices=IMPORTED, help="without it, what the file looks like")

    forget = commands.add_parser(
        "forget",
        help="delete everything that is stored of a person",
        description="Stops a person's turns, then deletes tasks, changes, conversations, files and usage for good.",
        allow_abbrev=False,
    )
    forget.add_argument("--yes", action="store_true", help="do not ask")
    for parser in (calendar, export, import_, forget):
        name = "the `sub` of the person's tokens; local with AUTH_MODE=none"
        parser.add_argument("--user", type=_name, required=True, metavar="NAME", help=name)
    for parser in (calendar, usage, export, import_, forget):
        _add_data_dir(parser)


def _add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=_directory,
        default=data_dir.default(),
        metavar="DIR",
        help="database and logs (here: %(default)s; .data in the checkout, or a directory of "
        f"{data_dir.ROOT_HOME} for root when others cannot enter the checkout)",
    )


def _directory(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(text)


def _service(text: str) -> str:
    if text not in LOGS:
        raise argparse.ArgumentTypeError(f"there is no service {text}: it is one of {', '.join(LOGS)}")
    return text


def _name(text: str) -> str:
    invisible = ("Cc", "Cs", "Zl", "Zp")  # control characters, line ends, halves of a pair
    if not text.strip() or any(unicodedata.category(character) in invisible for character in text):
        raise argparse.ArgumentTypeError(f"{text!r} is nobody's name")
    return text


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text} is no port from 1 to 65535")
    return int(text)
