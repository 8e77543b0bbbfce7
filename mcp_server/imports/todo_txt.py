"""Reads a todo.txt, which has a task in each line, with `due:` and `rec:` as most programs write them."""

import io
import re
from datetime import date, datetime, time

from common.recurrence import LAST_DAY
from common.tool_server.errors import to_printable
from mcp_server.imports.file_tasks import FileTask, FileTasks, UnreadLine, UnreadPart, split_labels
from mcp_server.tasks.dates import FIRST_YEAR
from mcp_server.tasks.zones import Now

_MAX_LENGTH = 10_000  # characters of a line: twice as many as a valid task can have
_DATE = r"\d{4}-\d\d-\d\d"
_LINE = re.compile(
    rf"(?P<done>x )?(?:\((?P<priority>[A-Z])\) )?(?P<first>{_DATE} )?"
    rf"(?(done)(?:\((?P<after>[A-Z])\) )?(?P<second>{_DATE} )?)(?P<text>.*)",
    re.ASCII,
)
_REPEAT = re.compile(r"(?P<strict>\+?)(?P<interval>[1-9]\d{0,2})(?P<unit>[dbwmy])", re.ASCII)
_UNITS = {"d": "DAILY", "w": "WEEKLY", "m": "MONTHLY", "y": "YEARLY"}
_PRIORITIES = {"A": "high", "B": "medium", "C": "low"}
_KEYS = ("due", "rec", "pri")
_NAMES = ("todo.txt", "done.txt")
# A creation date alone is no sign, as the lines of logs and journals begin with one.
_SIGN = re.compile(
    rf"(?![-*+#>•]\s)(?:x {_DATE} |\([A-Z]\) "
    rf"|(?:.*\s)?(?:(?:due|t):{_DATE}|rec:\S|pri:[A-Z]\b|[+@][^\W\d_][\w/.-]*(?:\s|$)))"
)


def is_todo_txt(text: str, name: str) -> bool:
    """Recognises a todo.txt by its name, or if at least half of its lines have something that only a todo.txt has."""
    if name.lower().endswith(_NAMES):
        return True
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return bool(lines) and 2 * sum(_SIGN.match(line[:_MAX_LENGTH]) is not None for line in lines) >= len(lines)


def parse(text: str, now: Now) -> FileTasks:
    """Reads days without a time as noon in the user's zone."""
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        location = f"line {number}"
        if len(line) > _MAX_LENGTH:
            yield UnreadLine(
                location, f"The line is longer than {_MAX_LENGTH:,} characters. Split it into several tasks."
            )
        elif line.strip():
            try:
                yield _parse_task(location, " ".join(line.split()), now)
            except UnreadPart as problem:
                yield UnreadLine(location, str(problem))


def _parse_task(location: str, line: str, now: Now) -> FileTask:
    parts = _LINE.fullmatch(line)
    assert parts is not None, "the pattern matches every line"
    words = parts["text"].split()
    values = {key: value for key, _, value in (word.partition(":") for word in words) if key in _KEYS and value}
    rest = [word for word in words if not (word.partition(":")[0] in values and word.partition(":")[2])]
    title, labels = split_labels(rest, "+@")
    done = parts["done"] is not None
    repeat = values.get("rec")
    # Completed tasks of some programs have a rule without the date that is needed here.
    is_lost = done and repeat is not None and ("due" not in values or _REPEAT.fullmatch(repeat) is None)
    created, completed = (parts["second"], parts["first"]) if done else (parts["first"], None)
    return FileTask(
        location,
        ("todo.txt", created and created.strip(), *(word for word in words if not word.startswith("pri:"))),
        {
            "title": title,
            "due": values.get("due"),
            "priority": _PRIORITIES.get(parts["priority"] or parts["after"] or values.get("pri", "")),
            "labels": labels,
            "repeat": _parse_rule(repeat) if repeat and not is_lost else None,
        },
        lost=("rec",) if is_lost else (),
        completed=done,
        created_at=_parse_day(created, now),
        completed_at=_parse_day(completed, now),
    )


def _parse_rule(text: str) -> str:
    """`rec:1w` counts from completion, `rec:+1w` from the due date."""
    match = _REPEAT.fullmatch(text)
    if match is None or (match["unit"] == "b" and match["interval"] != "1"):
        raise UnreadPart(
            f"rec:{to_printable(text)} cannot be read. Write a number and d, w, m or y (rec:2w), or rec:1b."
        )
    if match["unit"] == "b":
        return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
    return f"FREQ={_UNITS[match['unit']]};INTERVAL={match['interval']}{'' if match['strict'] else ';FROM=DONE'}"


def _parse_day(text: str | None, now: Now) -> datetime | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise UnreadPart(f"{text.strip()} is not in the calendar. Write a day that exists.") from None
    if not FIRST_YEAR <= day.year < LAST_DAY.year:
        raise UnreadPart(f"{day} is not within the years {FIRST_YEAR} to {LAST_DAY.year - 1}. Write a day within them.")
    return datetime.combine(day, time(12), now.zone)
