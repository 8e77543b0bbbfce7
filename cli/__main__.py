import argparse
import os
import sys
from collections.abc import Callable, Mapping

from cli import terminal
from cli.arguments import asked
from cli.errors import CliError


def main() -> int:
    """With the packages of the interpreter that runs it; `./todo` sees to it that they are there: `cli.entry`."""
    given, rest = asked.parse()
    try:
        return _test(given, rest) if given.command == "test" else _RUN[given.command](given)
    except CliError as error:
        terminal.error(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


# Each command is imported only when it runs, so that none waits for the others' imports.


def _up(given: argparse.Namespace) -> int:
    from cli.commands import up

    up.run(
        port=given.port,
        mcp_port=given.mcp_port,
        workspace_port=given.workspace_port,
        directory=given.data_dir.resolve(),
        verbose=given.verbose,
    )
    return 0


def _status(given: argparse.Namespace) -> int:
    from cli.commands import status

    return status.run(given.data_dir.resolve())


def _logs(given: argparse.Namespace) -> int:
    from cli.commands import logs

    return logs.run(given.data_dir.resolve(), service=given.service, follow=given.follow)


def _down(given: argparse.Namespace) -> int:
    from cli.commands import down

    return down.run(given.data_dir.resolve())


def _token(given: argparse.Namespace) -> int:
    from cli.commands import token

    return token.run(user=given.user, days=given.days, mcp_port=given.mcp_port, directory=given.data_dir.resolve())


def _models(given: argparse.Namespace) -> int:
    from cli.commands import models

    return models.run(check=given.check)


def _chat(given: argparse.Namespace) -> int:
    from cli.chat.options import Options
    from cli.commands import chat

    options = Options(
        directory=given.data_dir.resolve(),
        execute=given.execute,
        as_json=given.json,
        approve_all=given.yes,
        thread=given.thread,
        model=given.model,
        temperature=given.temp,
        debug=given.debug,
        url=given.url,
        token=os.environ.get("TODO_TOKEN") or None,
    )
    return chat.run(options)


def _mcp(given: argparse.Namespace) -> int:
    from cli.commands import mcp

    return mcp.run(given.action, server=given.server, tools=given.tools, directory=given.data_dir.resolve())


def _migrate(given: argparse.Namespace) -> int:
    from cli.commands.data import migrate

    return migrate.run(given.data_dir.resolve())


def _calendar(given: argparse.Namespace) -> int:
    from cli.commands.data import calendar

    return calendar.run(user=given.user, revoke=given.revoke, port=given.port, directory=given.data_dir.resolve())


def _usage(given: argparse.Namespace) -> int:
    from cli.commands.data import usage

    return usage.run(days=given.days, user=given.user, as_json=given.json, directory=given.data_dir.resolve())


def _export(given: argparse.Namespace) -> int:
    from cli.commands.data import person

    directory, output = given.data_dir.resolve(), given.output and given.output.resolve()
    if given.format == "jsonl":
        return person.log(user=given.user, thread=given.thread, output=output, directory=directory)
    return person.export(
        user=given.user, output=output, files=given.files and given.files.resolve(), directory=directory
    )


def _import(given: argparse.Namespace) -> int:
    from cli.commands.data import import_

    return import_.run(file=given.file, user=given.user, format=given.format, directory=given.data_dir.resolve())


def _forget(given: argparse.Namespace) -> int:
    from cli.commands.data import person

    return person.forget(user=given.user, yes=given.yes, directory=given.data_dir.resolve())


def _audit(_: argparse.Namespace) -> int:
    from cli.commands.development import audit

    return audit.run()


def _bench(given: argparse.Namespace) -> int:
    from cli.commands.development import bench

    load = (given.seconds or bench.LOAD_SECONDS) if given.load else None
    soak = given.soak * 60 if given.soak else None
    options = bench.Options("full" if given.full else "short", load, soak)
    return bench.run(options, json_file=given.json)


def _eval(given: argparse.Namespace) -> int:
    from cli.commands.development import eval

    return eval.run(
        options=eval.Options(given.quick, given.only, given.repeat, given.limit_rpm),
        prices={"in": given.price_in, "out": given.price_out},
        json_file=given.json,
        resume=given.resume,
        compare=given.compare,
    )


def _test(given: argparse.Namespace, rest: list[str]) -> int:
    from cli.commands.development import test

    return test.run(test.Scope(given.scope), rest)


_RUN: Mapping[str, Callable[[argparse.Namespace], int]] = {
    **{"up": _up, "status": _status, "logs": _logs, "down": _down, "token": _token},
    **{"models": _models, "chat": _chat, "mcp": _mcp},
    **{"migrate": _migrate, "calendar": _calendar, "usage": _usage},
    **{"export": _export, "import": _import, "forget": _forget},
    **{"audit": _audit, "bench": _bench, "eval": _eval},
}

if __name__ == "__main__":
    sys.exit(main())
