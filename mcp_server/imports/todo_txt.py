"""todo.txt: a task in each line, with `due:` and `rec:` as most of its programs write them."""

import io
import re
from datetime import date, datetime, time

from common.tool_server.errors import to_printable
from mcp_server.imports.file_tasks import FileTask, PartUnread, Read, Unread, without_labels
from mcp_server.tasks.dates import FIRST_YEAR, LAST_DAY
from mcp_server.tasks.zones import Now

_LONGEST = 10_000  # characters of a line: twice as many as a title with all its labels and dates can have
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


def parse(text: str, now: Now) -> Read:
    """The tasks of a file; days without a time count as noon, where the user is."""
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        place = f"line {number}"
        if len(line) > _LONGEST:
            yield Unread(place, f"The line is longer than {_LONGEST:,} characters. Split it into several tasks.")
        elif line.strip():
            try:
                yield _task(place, " ".join(line.split()), now)
            except PartUnread as problem:
                yield Unread(place, str(problem))


def _task(place: str, line: str, now: Now) -> FileTask:
    parts = _LINE.fullmatch(line)
    assert parts is not None, "every line is at least a text"
    words = parts["text"].split()
    given = {key: value for key, _, value in (word.partition(":") for word in words) if key in _KEYS and value}
    kept = [word for word in words if not (word.partition(":")[0] in given and word.partition(":")[2])]
    title, labels = without_labels(kept, "+@")
    done = parts["done"] is not None
    created, completed = (parts["second"], parts["first"]) if done else (parts["first"], None)
    return FileTask(
        place,
        ("todo.txt", created and created.strip(), *(word for word in words if not word.startswith("pri:"))),
        title,
        due=given.get("due"),
        priority=_PRIORITIES.get(parts["priority"] or parts["after"] or given.get("pri", "")),
        labels=labels,
        # What follows a completed task is a line of its own.
        repeat=_rule(given["rec"]) if "rec" in given and not done else None,
        completed=done,
        created_at=_noon(created, now),
        completed_at=_noon(completed, now),
    )


def _rule(text: str) -> str:
    """`rec:1w` counts from completion, `rec:+1w` from the due date."""
    found = _REPEAT.fullmatch(text)
    if found is None or (found["unit"] == "b" and found["interval"] != "1"):
        raise PartUnread(
            f"rec:{to_printable(text)} cannot be read. Write a number and d, w, m or y (rec:2w), or rec:1b."
        )
    if found["unit"] == "b":
        return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
    return f"FREQ={_UNITS[found['unit']]};INTERVAL={found['interval']}{'' if found['strict'] else ';FROM=DONE'}"


def _noon(text: str | None, now: Now) -> datetime | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise PartUnread(f"{text.strip()} is not in the calendar. Write a day that exists.") from None
    if not FIRST_YEAR <= day.year < LAST_DAY.year:
        raise PartUnread(f"{day} is not within the years {FIRST_YEAR} to {LAST_DAY.year - 1}. Write a day within them.")
    return datetime.combine(day, time(12), now.zone)
