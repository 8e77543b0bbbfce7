import argparse
import sys

from cli import arguments, terminal
from cli.errors import CliError


def main() -> int:
    """With the packages of the interpreter that runs it; `./todo` sees to it that they are there: `cli.entry`."""
    given, rest = arguments.parse()
    try:
        return _run(given, rest)
    except CliError as error:
        terminal.error(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _run(given: argparse.Namespace, rest: list[str]) -> int:
    """Each command is imported only when it runs, so that none waits for the others' imports."""
    match given.command:
        case "up":
            from cli.commands import up

            up.run(
                port=given.port,
                mcp_port=given.mcp_port,
                workspace_port=given.workspace_port,
                directory=given.data_dir.resolve(),
                verbose=given.verbose,
            )
            return 0
        case "token":
            from cli.commands import token

            return token.run(
                user=given.user,
                days=given.days,
                mcp_port=given.mcp_port,
                directory=given.data_dir.resolve(),
            )
        case "status":
            from cli.commands import status

            return status.run(given.data_dir.resolve())
        case "logs":
            from cli.commands import logs

            return logs.run(given.data_dir.resolve(), service=given.service, follow=given.follow)
        case "mcp":
            from cli.commands import mcp

            return mcp.run(
                given.action,
                server=given.server,
                tools=given.tools,
                directory=given.data_dir.resolve(),
            )
        case "audit":
            from cli.commands.development import audit

            return audit.run()
        case "bench":
            from cli.commands.development import bench

            return bench.run(scale="full" if given.full else "short", json_file=given.json, against=given.against)
        case "test":
            from cli.commands.development import test

            return test.run(everything=given.all, pytest_arguments=rest)
        case _:
            return _on_data(given)


def _on_data(given: argparse.Namespace) -> int:
    directory = given.data_dir.resolve()
    match given.command:
        case "migrate":
            from cli.commands.data import migrate

            return migrate.run(directory)
        case "calendar":
            from cli.commands.data import calendar

            return calendar.run(
                user=given.user,
                revoke=given.revoke,
                port=given.port,
                directory=directory,
            )
        case "usage":
            from cli.commands.data import usage

            return usage.run(
                days=given.days,
                user=given.user,
                as_json=given.json,
                directory=directory,
            )
        case "export":
            from cli.commands.data import person

            output = given.output and given.output.resolve()
            files = given.files and given.files.resolve()
            return person.export(user=given.user, output=output, files=files, directory=directory)
        case "import":
            from cli.commands.data import import_

            return import_.run(
                file=given.file,
                user=given.user,
                format=given.format,
                directory=directory,
            )
        case _:
            from cli.commands.data import person

            return person.forget(user=given.user, yes=given.yes, directory=directory)


if __name__ == "__main__":
    sys.exit(main())
