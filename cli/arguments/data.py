"""What is stored of people."""

import argparse
from pathlib import Path

from cli.arguments import values
from cli.arguments.command import Commands, Parser, add, add_data_dir
from common.commands import parse_days


def add_all(commands: Commands) -> None:
    calendar, usage = _add_calendar(commands), _add_usage(commands)
    export, import_ = _add_export(commands), _add_import(commands)
    forget = add(
        commands,
        "forget",
        "delete all stored data of a user",
        "Stops a user's running answers, then deletes their tasks, changes, conversations, files and usage for good.",
    )
    forget.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for parser in (calendar, export, import_, forget):
        whose = "the `sub` in the user's tokens; local with AUTH_MODE=none"
        parser.add_argument("--user", type=values.name, required=True, metavar="NAME", help=whose)
    add_data_dir(calendar, usage, export, import_, forget)


def check(given: argparse.Namespace) -> str | None:
    """What of an export's arguments does not go together."""
    if given.command != "export":
        return None
    if given.format == "json" and given.thread:
        return "export --thread needs --format jsonl"
    return "export --files needs --format json" if given.format == "jsonl" and given.files else None


def _add_calendar(commands: Commands) -> Parser:
    calendar = add(
        commands,
        "calendar",
        "make a calendar address for a user's tasks that have a date",
        "Prints a new address at which calendar programs can read a user's tasks that have a date. Older addresses "
        "stop working. It is not shown again.",
    )
    calendar.add_argument("--revoke", action="store_true", help="make the current address stop working")
    without = "port of the page, if no BACKEND_URL is set (that of the running ./todo up, else BACKEND_PORT, else 8000)"
    calendar.add_argument("--port", type=values.port, help=without)
    return calendar


def _add_usage(commands: Commands) -> Parser:
    usage = add(
        commands,
        "usage",
        "show what the model was used for, by day, user and model",
        "Prints answers, requests to the model and tokens by day (UTC), user and model.",
    )
    usage.add_argument("--days", type=parse_days, default=30, help="how many days, including today (%(default)s)")
    usage.add_argument("--user", type=values.name, metavar="NAME", help="only this user")
    usage.add_argument("--json", action="store_true", help="print a JSON array instead of a table")
    return usage


def _add_export(commands: Commands) -> Parser:
    export = add(
        commands,
        "export",
        "write all stored data of a user as JSON",
        "Writes a user's tasks, the changes of tasks and the conversations as one JSON document. With --files it also "
        "writes the files of the conversations as a tar archive.",
    )
    export.add_argument(
        "--format",
        choices=("json", "jsonl"),
        default="json",
        help="jsonl: only the conversations, one line for each event",
    )
    export.add_argument("--thread", type=values.name, metavar="ID", help="with jsonl: only this conversation")
    export.add_argument("--output", type=Path, metavar="FILE", help="write to this new file, which only you can read")
    export.add_argument(
        "--files", type=Path, metavar="FILE.tar", help="also write the conversations' files to this new archive"
    )
    return export


def _add_import(commands: Commands) -> Parser:
    import_ = add(
        commands,
        "import",
        "add the tasks of a file: a Todoist CSV, a todo.txt, or an export",
        "Adds the tasks of a file to a user's list. Importing the same file again adds nothing twice. Lines that "
        "cannot be read are listed with the reason, and the exit status is then 1.",
    )
    import_.add_argument(
        "file", type=Path, metavar="FILE", help="a Todoist CSV, a todo.txt, or a file from ./todo export"
    )
    import_.add_argument(
        "--format", choices=values.IMPORTED, help="the format of the file (default: recognised from its content)"
    )
    return import_
