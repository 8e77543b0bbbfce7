"""How results are told: in the sentences of this model, with the tasks named or counted."""

import re
from calendar import month_abbr
from collections.abc import Sequence
from typing import Protocol

from offline_model.conversation import Result, Task
from offline_model.rules.language.words import is_foreign, may_be_task
from offline_model.rules.sentences import ABOUT, MORE, NOT_DONE, NOTHING_TODAY

FOUND_SHOWN = 50
NAMED = 10
"""So many tasks are named in an answer, others only counted."""


class Tasks(Protocol):
    """What is told of a list: its tasks, how many there are on all pages, and whether there are more."""

    items: Sequence[Task]
    cursor: str | None
    total: int
    now: str


_IN_WORDS = (
    (re.compile(r"(?:call|use|look up the numbers with) list_tasks\b[^:;.]*"), 'say "show all"'),
    (re.compile(r"\bCall list_tasks\b[^:;.]*"), 'Say "show all"'),
    (re.compile(" from list_tasks"), ""),
    (re.compile("task_id"), "the number"),
)
_TOOLS_DAY = re.compile(r"(\w{3}) (\d{4})-(0\d|1[0-2])-(\d\d)( \d\d:\d\d)?", re.ASCII)
_CLAUSE = re.compile(r"(?<=[:;.]) ")
_TOOL_WORD = re.compile(r"\b(?:[a-z]+_tasks?|[a-z]+_id|_meta|cursor|idempotency|limit)\b")


def not_understood(request: str) -> str:
    if is_foreign(request):
        return "I understand English only."
    is_short = len(request.split()) <= 6
    hint = f' If "{request}" is a task, say "add {request}".' if is_short and may_be_task(request) else ""
    return f"I did not understand that.{hint} {ABOUT}"


def listing(tasks: Tasks, kind: str, where: str = "", *, before: bool = False) -> str:
    """How many; the tasks themselves are shown as the tool's result, with boxes to tick."""
    number = len(tasks.items)
    if tasks.cursor and not before:
        counted = f"The first {number} of {_counted(max(tasks.total, number), kind)}"
    else:
        counted = f"{'The next ' if before else ''}{_counted(number, kind)}"
    return f"{counted}{where}{MORE if tasks.cursor else '.'}"


def due(tasks: Tasks, when: str) -> str:
    """As `listing`, of tasks with a date: `when` is "overdue" or "due today"."""
    number = max(tasks.total, len(tasks.items))
    return f"{_counted(number)} {'is' if number == 1 else 'are'} {when}." if number else f"Nothing is {when}."


def today(tasks: Tasks) -> str:
    """Of what is due up to today."""
    late = sum(_is_overdue(task, tasks.now) for task in tasks.items)
    counted = f"Today: {_counted(max(tasks.total, len(tasks.items)))}"
    return f"{counted}{f', {late} overdue' if late else ''}." if tasks.items else NOTHING_TODAY


def _is_overdue(task: Task, now: str) -> bool:
    """By the words of the tools, "Fri 2026-11-27 15:00" or without the time."""
    day, _, clock = (task.due or "")[4:].partition(" ")
    today, _, time = now[4:].partition(" ")
    return bool(day) and (day < today or (day == today and "" < clock < time))


def done(tasks: Tasks, when: str) -> str:
    """Of what was completed on these days."""
    number = max(tasks.total, len(tasks.items))
    return f"You completed {_counted(number) if number else 'no task'} {when}."


def first(tasks: Tasks) -> str:
    """Of the tasks that come first."""
    task = tasks.items[0]
    priority = f"{task.priority} priority" if task.priority else ""
    why = ", ".join(filter(None, [priority, _due(task, tasks.now).removeprefix(", ")]))
    others = " The next ones are listed below it." if len(tasks.items) > 1 else ""
    return f'Start with "{one_line(task.title)}"{f" ({why})" if why else ""}.{others}'


def asked(tasks: Tasks, kind: str) -> str:
    """How many would be deleted."""
    number = len(tasks.items)
    more = f", the first of {tasks.total}" if tasks.cursor else ""
    return f"There {'is' if number == 1 else 'are'} {_counted(number, kind)}{more}."


def span(days: str, now: str) -> str:
    """Of a range in the tools' words, if it tells more than what was said."""
    return f" ({' to '.join(_short(day, now) for day in days.split('..'))})" if days[:1].isupper() else ""


def found(phrase: str, tasks: Sequence[Task], now: str) -> str:
    """With the state of each."""
    lines = [
        f"- {one_line(task.title)} ({'done' if task.status == 'completed' else 'open'}{_due(task, now)})"
        + (f": {one_line(task.description, limit=1000)}" if task.description else "")
        for task in tasks[:FOUND_SHOWN]
    ]
    if len(tasks) > FOUND_SHOWN:
        lines.append(f"- and {len(tasks) - FOUND_SHOWN} more")
    return f'{_counted(len(tasks))} for "{one_line(phrase)}":\n\n' + "\n".join(lines)


def already(tasks: Sequence[Task], state: str = "Already done") -> str:
    return f"{state}: {_named(tasks)}." if tasks else ""


def told(answer: str, results: Sequence[Result], *, value: str = "") -> str:
    """What became of the calls of a wish, from their results alone: its answer, and what failed.

    In the answer {tasks} are named, {count} names them where it matters which they were, and {value} is what was given.
    """
    done = [task for result in results for task in result.page.tasks]
    failed = [result for result in results if result.error or result.page.not_found]
    # Added tasks are shown on cards: they are named where it matters which of them were added.
    dated = any("due" in result.arguments or "repeat" in result.arguments for result in results)
    now = next((result.page.now for result in results if result.page.now), "")
    names = _named(done, now, with_dates=dated)
    is_named = len(done) == 1 or failed or (dated and len(done) <= NAMED)
    said = [answer.format(tasks=names, count=names if is_named else _counted(len(done)), value=value)] if done else []
    return "\n\n".join([*said, *dict.fromkeys(map(_failure, failed))])


def is_rejected(error: str) -> bool:
    """Whether the call was not made because the user rejected it, in the backend's words for models."""
    return error.startswith("The person refused this call")


def _failure(result: Result) -> str:
    if is_rejected(result.error):
        return NOT_DONE
    if not result.error:
        numbers = result.page.not_found
        what = f"tasks {_joined([str(number) for number in numbers])}" if len(numbers) > 1 else f"task {numbers[0]}"
        return f'That did not work: There {"are" if len(numbers) > 1 else "is"} no {what} on your list: say "show all".'
    given = result.arguments
    titles = [given.get("title"), *given.get("also", [])] if result.tool == "add_task" else []
    names = [f'"{one_line(title, limit=80)}"' for title in titles if isinstance(title, str)]
    return f"{f'I could not add {_joined(names)}' if names else 'That did not work'}: {in_words(result.error)}"


def _named(tasks: Sequence[Task], now: str = "", *, with_dates: bool = False) -> str:
    """At most so many of them, in the order of their numbers."""
    in_order = sorted(tasks, key=lambda task: task.id)
    names = [f'"{one_line(task.title)}"{_date(task, now, with_dates=with_dates)}' for task in in_order[:NAMED]]
    return _joined([*names, *([f"{len(tasks) - NAMED} more"] if len(tasks) > NAMED else [])])


def _joined(names: Sequence[str]) -> str:
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _date(task: Task, now: str, *, with_dates: bool) -> str:
    """When it is due; of a task that repeats and was completed, when it comes again."""
    if task.next:
        return f" (next {_short(task.next.due, now)})"
    repeats = ", repeats" if task.repeat else ""
    return f" ({_due(task, now).removeprefix(', ')}{repeats})" if with_dates and task.due else ""


def _due(task: Task, now: str) -> str:
    return f", due {_short(task.due, now)}" if task.due else ""


def _short(day: str, now: str) -> str:
    """ "Fri 27 Nov 15:00" of the tools' "Fri 2026-11-27 15:00"; with the year, if it is another one."""
    parts = _TOOLS_DAY.fullmatch(one_line(day))
    if parts is None:
        return one_line(day)
    weekday, year, month, number, clock = parts.groups()
    is_other_year = _TOOLS_DAY.fullmatch(now) is None or now[4:8] != year
    return f"{weekday} {int(number)} {month_abbr[int(month)]}{f' {year}' if is_other_year else ''}{clock or ''}"


def _counted(number: int, kind: str = "") -> str:
    return f"{number} {kind}task{'' if number == 1 else 's'}"


def in_words(error: str) -> str:
    """A tool's error without the names of tools and arguments, which are no words of a person."""
    line = one_line(error)
    for tools_words, words in _IN_WORDS:
        line = tools_words.sub(words, line)
    kept = [clause for clause in _CLAUSE.split(line) if clause and not _TOOL_WORD.search(clause)]
    told = " ".join(kept).rstrip(" ,:;")
    return f"{told[:1].upper()}{told[1:]}{'' if told[-1:] in '.!?' else '.'}" if told else "It was refused."


def one_line(text: str, *, limit: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
