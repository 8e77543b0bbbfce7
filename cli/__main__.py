import argparse
import sys
from pathlib import Path

from cli import data_dir, terminal
from cli.errors import CliError


def main() -> int:
    parser = _parser()
    arguments, rest = parser.parse_known_args()
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    if rest and arguments.command != "test":
        parser.error(f"unrecognized arguments: {' '.join(rest)} (see ./todo {arguments.command} --help)")
    try:
        return _run(arguments, rest)
    except CliError as error:
        terminal.error(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _run(arguments: argparse.Namespace, rest: list[str]) -> int:
    """Each command is imported only when it runs, so that none waits for the others' imports."""
    match arguments.command:
        case "up":
            from cli import up

            up.run(
                port=arguments.port,
                mcp_port=arguments.mcp_port,
                directory=arguments.data_dir.resolve(),
                verbose=arguments.verbose,
            )
            return 0
        case "migrate":
            from cli import migrate

            return migrate.run(arguments.data_dir.resolve())
        case "token":
            from cli import token

            return token.run(user=arguments.user, days=arguments.days, mcp_port=arguments.mcp_port)
        case "usage":
            from cli import usage

            return usage.run(
                days=arguments.days,
                user=arguments.user,
                as_json=arguments.json,
                directory=arguments.data_dir.resolve(),
            )
        case "export":
            from cli import person

            output = arguments.output and arguments.output.resolve()
            return person.export(user=arguments.user, output=output, directory=arguments.data_dir.resolve())
        case "forget":
            from cli import person

            return person.forget(user=arguments.user, yes=arguments.yes, directory=arguments.data_dir.resolve())
        case "bench":
            from cli import bench

            return bench.run(scale="full" if arguments.full else "short", json_file=arguments.json)
        case "audit":
            from cli import audit

            return audit.run()
        case _:
            from cli import test

            return test.run(everything=arguments.all, pytest_arguments=rest)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="todo", description="A to-do assistant you run yourself.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    up = commands.add_parser(
        "up",
        help="run everything on this machine until Ctrl-C",
        description="Runs everything on this machine until Ctrl-C: PostgreSQL (unless DATABASE_URL is set), "
        "migrations, the offline model (when there is no key of another), the MCP server and the backend. "
        "Settings are read from the environment and from .env in the checkout.",
        allow_abbrev=False,
    )
    up.add_argument("--port", type=_port, help="of the page and /chatkit (BACKEND_PORT, else 8000)")
    up.add_argument("--mcp-port", type=_port, help="of the MCP server (MCP_PORT, else 8001)")
    _add_data_dir(up)
    up.add_argument("--verbose", action="store_true", help="show the logs of all parts")

    migrate = commands.add_parser(
        "migrate",
        help="bring the database to the newest schema",
        description="Brings DATABASE_URL, else the database in the data directory, to the newest schema.",
        allow_abbrev=False,
    )
    _add_data_dir(migrate)

    token = commands.add_parser(
        "token",
        help="make a token for the MCP server",
        description="Prints a token with which an MCP client on this machine works on one person's tasks.",
        allow_abbrev=False,
    )
    token.add_argument("--user", required=True, metavar="NAME", help="whose tasks")
    token.add_argument("--days", type=int, default=1, help="how long it is valid (%(default)s)")
    token.add_argument("--mcp-port", type=_port, help="of the MCP server (MCP_URL, else MCP_PORT, else 8001)")

    _add_data_commands(commands)

    bench = commands.add_parser(
        "bench",
        help="measure how fast it is",
        description="Runs everything on a throwaway PostgreSQL and an instant model, beside what it is made of.",
        allow_abbrev=False,
    )
    bench.add_argument("--full", action="store_true", help="longer, for figures that vary less")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")

    commands.add_parser(
        "audit",
        help="look the locked packages up in the lists of known vulnerabilities",
        description="Looks the packages that requirements.lock has for this platform up in a public list of known "
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
    return parser


def _add_data_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    usage = commands.add_parser(
        "usage",
        help="show what the model was used for, by day, person and model",
        description="Prints turns, requests to the model and tokens by day (UTC), person and model.",
        allow_abbrev=False,
    )
    usage.add_argument("--days", type=int, default=30, help="today and the days before it (%(default)s)")
    usage.add_argument("--user", type=_name, metavar="NAME", help="of this person only")
    usage.add_argument("--json", action="store_true", help="as a JSON array instead of a table")

    export = commands.add_parser(
        "export",
        help="write everything that is stored of a person as JSON",
        description="Writes a person's tasks, their changes, and the conversations as one JSON document.",
        allow_abbrev=False,
    )
    export.add_argument("--output", type=Path, metavar="FILE", help="write it there, readable by you only")

    forget = commands.add_parser(
        "forget",
        help="delete everything that is stored of a person",
        description="Stops a person's turns, then deletes tasks, changes, conversations and usage for good.",
        allow_abbrev=False,
    )
    forget.add_argument("--yes", action="store_true", help="do not ask")
    for parser in (export, forget):
        name = "the `sub` of the person's tokens; local with AUTH_MODE=none"
        parser.add_argument("--user", type=_name, required=True, metavar="NAME", help=name)
    for parser in (usage, export, forget):
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


def _name(text: str) -> str:
    if not text or any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise argparse.ArgumentTypeError(f"{text!r} is nobody's name")
    return text


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text} is no port from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
