"""What is stored of people."""

import argparse
from pathlib import Path

from cli.arguments import values
from cli.arguments.command import Commands, Parser, add, add_data_dir
from service.commands import days


def add_all(commands: Commands) -> None:
    calendar, usage = _add_calendar(commands), _add_usage(commands)
    export, import_ = _add_export(commands), _add_import(commands)
    forget = add(
        commands,
        "forget",
        "delete everything that is stored of a person",
        "Stops a person's turns, then deletes tasks, changes, conversations, files and usage for good.",
    )
    forget.add_argument("--yes", action="store_true", help="do not ask")
    for parser in (calendar, export, import_, forget):
        whose = "the `sub` of the person's tokens; local with AUTH_MODE=none"
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
        "make an address at which a calendar program reads a person's dated tasks",
        "Prints a new address at which a calendar program reads a person's dated tasks. It replaces the older one, and "
        "is not shown again.",
    )
    calendar.add_argument("--revoke", action="store_true", help="let the address that there is open nothing any more")
    without = "of the page (BACKEND_PORT, else 8000), without BACKEND_URL"
    calendar.add_argument("--port", type=values.port, help=without)
    return calendar


def _add_usage(commands: Commands) -> Parser:
    usage = add(
        commands,
        "usage",
        "show what the model was used for, by day, person and model",
        "Prints turns, requests to the model and tokens by day (UTC), person and model.",
    )
    usage.add_argument("--days", type=days, default=30, help="today and the days before it (%(default)s)")
    usage.add_argument("--user", type=values.name, metavar="NAME", help="of this person only")
    usage.add_argument("--json", action="store_true", help="as a JSON array instead of a table")
    return usage


def _add_export(commands: Commands) -> Parser:
    export = add(
        commands,
        "export",
        "write everything that is stored of a person as JSON",
        "Writes a person's tasks, their changes, and the conversations as one JSON document, and with --files the "
        "files of the conversations as a tar archive.",
    )
    export.add_argument(
        "--format",
        choices=("json", "jsonl"),
        default="json",
        help="jsonl: the conversations alone, a line for each event",
    )
    export.add_argument("--thread", type=values.name, metavar="ID", help="with jsonl, this conversation alone")
    export.add_argument("--output", type=Path, metavar="FILE", help="write it to this new file, readable by you only")
    export.add_argument("--files", type=Path, metavar="FILE.tar", help="write the conversations' files to it, likewise")
    return export


def _add_import(commands: Commands) -> Parser:
    import_ = add(
        commands,
        "import",
        "add the tasks of a file: Todoist's CSV, a todo.txt, or an export",
        "Adds the tasks of a file to a person's list, each once however often it is imported. Lines that cannot be "
        "read are listed with the reason; the status is then 1, and 0 when everything was read.",
    )
    import_.add_argument("file", type=Path, metavar="FILE", help="Todoist's CSV, a todo.txt, or an export of ours")
    import_.add_argument("--format", choices=values.IMPORTED, help="without it, what the file looks like")
    return import_
