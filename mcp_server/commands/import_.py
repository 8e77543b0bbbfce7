import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from uuid import uuid4
from zoneinfo import ZoneInfo

from common import data_commands
from common.commands import EXIT_INCOMPLETE
from common.environment import read_settings
from common.tokens import is_user_id
from common.tool_server.errors import CallError, to_printable
from mcp_server.imports import formats, importer
from mcp_server.imports.file_tasks import FileUnread, UnreadLine
from mcp_server.imports.importer import Report
from mcp_server.settings import ImportSettings
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.quota import TaskQuota

_PROGRESS_SECONDS = 0.5
_MAX_COLUMNS = 30  # that are listed as not imported


def run(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="import", description="Adds the tasks of a file on standard input.")
    parser.add_argument("--user", required=True, help="the `sub` of the user's tokens; `local` with AUTH_MODE=none")
    parser.add_argument("--format", choices=[*formats.FORMATS], help="recognised from the file if left out")
    parser.add_argument("--name", default="", help="the file's name")
    parser.add_argument("--undo", action="store_true", help="remove what the last import added, and read no file")
    options = parser.parse_args(arguments)
    if not is_user_id(options.user):
        sys.exit("No user can have this name. Give the `sub` of the user's tokens.")
    try:
        if options.undo:
            sys.stdout.write(f"{_undo(options.user)}\n")
            return
        report = _import(options)
    except (CallError, FileUnread) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped before the end. Import the file again to add the rest.")
    text = "\n".join(_render_report(report, options.user))
    sys.stdout.buffer.write(f"{text}\n".encode(sys.stdout.encoding, "replace"))
    sys.exit(EXIT_INCOMPLETE if report.unread or report.over_limit else 0)


def _import(options: argparse.Namespace) -> Report:
    text = formats.decode(formats.read_bytes(sys.stdin.buffer))
    read_file = partial(formats.parse, text, options.format or formats.detect_format(text, options.name))
    return data_commands.run(
        lambda database: importer.import_tasks(database, _create_caller(options.user), read_file, progress=_Progress())
    )


def _undo(user: str) -> str:
    count = data_commands.run(lambda database: importer.undo_last(database, _create_caller(user)))
    if not count:
        sys.exit(f"There is no import of {user} to undo.")
    return f"Undid the last import: {count:,} {_pluralize(count, 'task')} removed."


def _create_caller(user: str) -> Caller:
    settings = read_settings(ImportSettings)
    return Caller(
        user_id=user,
        actor=importer.ACTOR,
        batch=f"import {uuid4()}",
        quota=TaskQuota(tasks=settings.limit_tasks),
        usual_zone=ZoneInfo(settings.time_zone),
        clock=settings.create_clock(),
    )


class _Progress:
    def __init__(self) -> None:
        self._printed_at = time.monotonic()

    def __call__(self, report: Report) -> None:
        if time.monotonic() - self._printed_at >= _PROGRESS_SECONDS:
            self._printed_at = time.monotonic()
            with suppress(OSError):
                sys.stderr.write(f"{report.added + report.existing:,} tasks …\n")
                sys.stderr.flush()


def _render_report(report: Report, user: str) -> Iterator[str]:
    unread = len(report.unread) + report.unlisted
    if report.added + report.existing + report.over_limit + unread + report.lost.total() == 0:
        yield "There is nothing to import in this file."
        return
    existing = (
        f", {report.existing:,} {'was' if report.existing == 1 else 'were'} there already" if report.existing else ""
    )
    yield f"Added {report.added:,} {_pluralize(report.added, 'task')}{existing}."
    if report.over_limit:
        tasks = "task was" if report.over_limit == 1 else "tasks were"
        yield (
            f"{report.over_limit:,} {tasks} not added, because {user} has as many as LIMIT_TASKS allows. Delete some "
            "tasks or raise the limit, then import the file again."
        )
    if report.lost:
        yield f"Left out, because it cannot be imported: {_render_lost(report.lost)}."
    if unread:
        kind = report.unread[0].location.split()[0].removesuffix("s")
        yield f"{unread:,} {_pluralize(unread, kind)} could not be read. Correct this, then import the file again:"
        yield from (f"{problem.location}: {problem.why}" for problem in sorted(report.unread, key=_get_line_number))
    if report.unlisted:
        yield f"… and {report.unlisted:,} more"


def _render_lost(lost: Counter[str]) -> str:
    names = sorted(lost)
    listed = [f"{to_printable(name)} ({_render_times(lost[name])})" for name in names[:_MAX_COLUMNS]]
    more = len(names) - len(listed)
    return ", ".join([*listed, f"and {more:,} more columns"] if more else listed)


def _render_times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _get_line_number(unread: UnreadLine) -> int:
    return int(unread.location.split()[1])


def _pluralize(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"
