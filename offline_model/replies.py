"""Sentences of the offline model, and results of tool calls in words."""

import re
from calendar import month_abbr
from collections.abc import Sequence

from offline_model.conversation import ResultPage, ResultTask, ToolResult
from offline_model.language.words import is_foreign, may_be_task

ABOUT = 'I am the offline model and follow simple rules. Say "help" to see what I can do.'
NO_REMINDERS = 'I can\'t send reminders yet. Say "add call mum on Friday" to add a task with a date.'
HELP = """I am the offline model. I follow simple rules and know only your tasks. You can say, for example:

- add buy milk and call mum
- add milk, eggs and bread to shopping
- add dentist tomorrow at 3pm / water the plants every Monday / move dentist to Friday / what's due today?
- move everything due today to tomorrow / snooze dentist by a week / skip the plants this week
- no, I meant Wednesday / mark them done / complete the first two
- make dentist high priority / tag gym with health / stop repeating the plants
- what is on my list? / what's overdue? / show my work tasks / find milk / what did I do last week? / more
- the milk is done / I finished all the shopping / the milk is not done yet
- rename milk to oat milk / describe milk as two litres
- do task 3: for "write a shopping list for pancakes to shopping.md" or "count the words of notes.txt"
- delete the milk task / delete all done tasks / undo / bring back the milk

I can't send reminders yet, and I can't talk about anything else.

To talk to an AI model, set `CEREBRAS_API_KEY`, or `LLM_PROVIDER` and the key of that provider, and restart."""
GREETING = 'Hello! I am the offline model and keep your to-do list. Say "add buy milk", or "help" to see what I can do.'
NOT_DONE = "Not done."
I_AM = 'I am the offline model: simple rules, not a person and not an AI. Say "help" to see what I can do.'
NO_MEMORY = 'I don\'t remember what I did before. I only know your list as it is now. Say "show all" to see it.'
ENGLISH_ONLY = "I understand English only."
TOO_LONG = "Your message is too long for me, so I did nothing. Keep it below {limit:,} characters."
WELCOME = "You are welcome."
BYE = "Goodbye."
ANSWER_IT = "Please choose one by its number, or say no."
NO_QUESTION = 'There is nothing to confirm. Tell me what to do, or say "help".'
NO_VERB = 'What should I do with it? Say, for example, "complete milk" or "delete milk".'
FIRST_TIME = "I don't know when you last did it, so it is due today. The next date counts from the day you complete it."
NOT_UNDERSTOOD = "I did not understand {words} as a date, so I left it in the title."
OTHER_WEEKDAY = '"{words}" does not exist: {reason} I added nothing. Say which day you mean.'
OTHER_CLOCK = "I only know the time in your own time zone, so I did nothing. Say the time as your own clock shows it."
NO_REMINDER = "I can't send reminders yet."
DATE_ONLY = "I can't send reminders yet; the due date is on your list."
NO_BULK = 'I can\'t do that to your whole list. Name the tasks, or a group such as "everything due today".'
NO_SUBJECT = "Which task do you mean? Say words from its title."
NO_TITLE = 'What shall I add? Say, for example, "add buy milk".'
NO_NEW_VALUE = 'Say which task you mean and what it should become, for example "rename milk to oat milk".'
NO_NEW_DATE = 'Which task, and to which day? Say, for example, "move dentist to Friday" or "snooze dentist by a week".'
NO_PRIORITY = 'Say which task and which priority, for example "make dentist high priority".'
NO_SORTING = 'I can\'t sort your list. Say "what is due this week?" or "what should I do first?" instead.'
NO_LABEL = 'Say which label, for example "tag gym with health".'
INCOMPLETE = (NO_TITLE, NO_SUBJECT, NO_NEW_DATE)
"""The answers to requests that the next message may complete."""
SAY_YES = 'Say "yes" to delete what is shown.'
SAY_YES_TO_COMPLETE = 'Shall I complete task {id}? Say "yes" to complete it.'
ONE_AT_A_TIME = 'An agent can work on one task at a time. Say "do task 3", with the number of the task.'
TOO_MANY = "That is too much at once, so I did not do it. Name up to {limit} tasks in one message."
NO_MEMBERS = 'I found no open task for "{group}".'
NONE_CHANGED = "I changed nothing."
CANCEL = 'Say "delete" and the title to delete a task, or "add cancel …" to add a task about cancelling something.'
LEFT_ALONE = "All right, I changed nothing."
# A list item, because the page shows no task card below an answer whose list names no task.
MISSING = 'I found no {kind} that matches "{phrase}". To see every task, say:\n\n- show all'
NOT_WITH_TOOLS = "I can't do that here, because the tool {tool} is not available."
STOPPED = "I stopped after {steps} steps, the most that I take for one message. Tell me what is still to do."
ADDED = "Added {count}."
REMINDED = "Added a reminder."  # not shown: marks intents whose reply says that there are no reminders
CHANGED = "Changed {count}."
RENAMED = "Renamed to {tasks}."
PRIORITY = "Changed {count} to {value} priority."
HIGH = PRIORITY.replace("{value}", "high")
TAGGED = 'Added the label "{value}" to {count}.'
UNTAGGED = 'Removed the label "{value}" from {count}.'
COMPLETED = "Completed {tasks}."
REOPENED = "Reopened {tasks}."
DELETED = "Deleted {tasks}."
DELETED_ALL = "Deleted {count}."
RESTORED = "Restored {tasks}."
REVERTED = "Undid the last change to {tasks}."
UNDONE = {
    "add_task": "Removed {tasks} again.",
    "update_task": "Undid the change to {tasks}.",
    "complete_task": "Reopened {tasks}.",
    "delete_task": RESTORED,
}
NOTHING_TO_UNDO = "There is nothing to undo. I have changed nothing in this conversation."
NOTHING_DELETED = "There is nothing to restore. You have deleted nothing in the last 30 days."
MORE = '; say "more" for the rest.'
NO_MORE = 'There is nothing more to show. Say "show all" to see every task.'

_MOST_FOUND = 50
_MOST_NAMED = 10  # others are only counted
_TOOLS_DAY = re.compile(r"(\w{3}) (\d{4})-(0\d|1[0-2])-(\d\d)( \d\d:\d\d)?", re.ASCII)
_CLAUSE = re.compile(r"(?<=[:;.]) ")
_TOOL_WORD = re.compile(r"\b(?:[a-z]+_tasks?|[a-z]+_id|_meta|cursor|idempotency|limit)\b")


def explain_unknown(request: str) -> str:
    if is_foreign(request):
        return ENGLISH_ONLY
    is_short = len(request.split()) <= 6
    hint = f' If "{request}" is a task, say "add {request}".' if is_short and may_be_task(request) else ""
    return f"I did not understand that.{hint} {ABOUT}"


def count_tasks(page: ResultPage, kind: str, where: str = "", *, is_next: bool = False) -> str:
    """Tasks are only counted, because a card shows them."""
    number = len(page.tasks)
    if not number:
        return f"You have no {kind}tasks{where}."
    if page.next_cursor and not is_next:
        counted = f"The first {number} of {_render_count(max(page.total, number), kind)}"
    else:
        counted = f"{'The next ' if is_next else ''}{_render_count(number, kind)}"
    return f"{counted}{where}{MORE if page.next_cursor else '.'}"


def suggest_first(page: ResultPage) -> str:
    task = page.tasks[0]
    priority = f"{task.priority} priority" if task.priority else ""
    why = ", ".join(filter(None, [priority, _render_due(task, page.now)]))
    others = " The next ones are listed below it." if len(page.tasks) > 1 else ""
    return f'Start with "{join_lines(task.title)}"{f" ({why})" if why else ""}.{others}'


def render_range(days: str, now: str) -> str:
    return f" ({' to '.join(filter(None, (_shorten_day(day, now) for day in days.split('..'))))})"


def list_found(phrase: str, tasks: Sequence[ResultTask], now: str) -> str:
    lines = []
    for task in tasks[:_MOST_FOUND]:
        state = ", ".join(filter(None, ["done" if task.status == "completed" else "open", _render_due(task, now)]))
        description = f": {join_lines(task.description, limit=1000)}" if task.description else ""
        lines.append(f"- {join_lines(task.title)} ({state}){description}")
    if len(tasks) > _MOST_FOUND:
        lines.append(f"- and {len(tasks) - _MOST_FOUND} more")
    return f'{_render_count(len(tasks))} for "{join_lines(phrase)}":\n\n' + "\n".join(lines)


def render_unchanged(tasks: Sequence[ResultTask], state: str) -> str:
    return f"{state}: {_render_titles(tasks)}." if tasks else ""


def report(answer: str, results: Sequence[ToolResult], *, value: str = "") -> str:
    """Renders the results of an intent's calls; {tasks}, {count} and {value} in `answer` are replaced."""
    done = [task for result in results for task in result.page.tasks]
    failed = [result for result in results if result.error or result.page.not_found]
    # Cards show added tasks, which are named only if some failed or have dates.
    is_dated = any("due" in result.arguments or "repeat" in result.arguments for result in results)
    now = next((result.page.now for result in results if result.page.now), "")
    names = _render_titles(done, now, with_dates=is_dated)
    is_named = len(done) == 1 or failed or (is_dated and len(done) <= _MOST_NAMED)
    parts = (
        [answer.format(tasks=names, count=names if is_named else _render_count(len(done)), value=value)] if done else []
    )
    return "\n\n".join([*parts, *dict.fromkeys(map(_render_failure, failed))])


def is_rejected(error: str) -> bool:
    """The backend describes a rejected call to models in these words."""
    return error.startswith("The person refused this call")


def _render_failure(result: ToolResult) -> str:
    if is_rejected(result.error):
        return NOT_DONE
    if not result.error:
        numbers = result.page.not_found
        what = f"tasks {_join_names([str(number) for number in numbers])}" if len(numbers) > 1 else f"task {numbers[0]}"
        return f'That did not work: There {"are" if len(numbers) > 1 else "is"} no {what} on your list: say "show all".'
    titles = [result.arguments.get("title"), *result.arguments.get("also", [])] if result.tool == "add_task" else []
    names = [f'"{join_lines(title, limit=80)}"' for title in titles if isinstance(title, str)]
    return f"{f'I could not add {_join_names(names)}' if names else 'That did not work'}: {shorten_error(result.error)}"


def _render_titles(tasks: Sequence[ResultTask], now: str = "", *, with_dates: bool = False) -> str:
    in_order = sorted(tasks, key=lambda task: task.id)
    names = [
        f'"{join_lines(task.title)}"{_render_date(task, now, with_dates=with_dates)}' for task in in_order[:_MOST_NAMED]
    ]
    return _join_names([*names, *([f"{len(tasks) - _MOST_NAMED} more"] if len(tasks) > _MOST_NAMED else [])])


def _join_names(names: Sequence[str]) -> str:
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _render_date(task: ResultTask, now: str, *, with_dates: bool) -> str:
    """Returns the due date, or of a completed task that repeats, the next one."""
    if task.next:
        return f" (next {_shorten_day(task.next.due, now)})"
    return f" ({_render_due(task, now)}{', repeats' if task.repeat else ''})" if with_dates and task.due else ""


def _render_due(task: ResultTask, now: str) -> str:
    return f"due {_shorten_day(task.due, now)}" if task.due else ""


def _shorten_day(day: str, now: str) -> str:
    """Renders "Fri 2026-11-27 15:00" as "Fri 27 Nov 15:00", with the year if it is not this year."""
    parts = _TOOLS_DAY.fullmatch(join_lines(day))
    if parts is None:
        return join_lines(day)
    weekday, year, month, number, clock = parts.groups()
    is_other_year = _TOOLS_DAY.fullmatch(now) is None or now[4:8] != year
    return f"{weekday} {int(number)} {month_abbr[int(month)]}{f' {year}' if is_other_year else ''}{clock or ''}"


def _render_count(number: int, kind: str = "") -> str:
    return f"{number} {kind}task{'' if number == 1 else 's'}"


def shorten_error(error: str) -> str:
    """Removes clauses that name tools and arguments, which users do not know."""
    clauses = [clause for clause in _CLAUSE.split(join_lines(error)) if clause and not _TOOL_WORD.search(clause)]
    text = " ".join(clauses).rstrip(" ,:;")
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1:] in '.!?' else '.'}" if text else "The tool rejected it."


def join_lines(text: str, *, limit: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
