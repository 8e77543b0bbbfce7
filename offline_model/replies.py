"""Sentences of the offline model, and results of tool calls in words."""

import re
from collections.abc import Sequence

from common.task_words import describe_reminder
from offline_model.conversation import ResultPage, ResultTask, ToolResult
from offline_model.language.words import is_foreign, may_be_task

ABOUT = 'I am the offline model and follow simple rules. Say "help" to see what I can do.'
NO_REMINDER = (
    'Say what I shall remind you of and when, for example "remind me to call mum tomorrow at 9" or "remind me an hour '
    'before dentist".'
)
NOTIFICATIONS_OFF = "To be reminded, switch on Notifications in the menu."
AGENT_WORK = '"write a shopping list for pancakes to shopping.md" or "count the words of notes.txt"'
USE_A_MODEL = "give this server a `CEREBRAS_API_KEY`, or an `LLM_PROVIDER` and its key, and restart it."
NEEDS_MODEL = (
    f"An agent needs a real model for this task, so I did nothing. To use one, {USE_A_MODEL} Without one, an agent can "
    f"only do tasks such as {AGENT_WORK}."
)
HELP = f"""I am the offline model. I follow simple rules and know only your tasks. You can say, for example:

- add buy milk and call mum
- add milk, eggs and bread to shopping
- add dentist tomorrow at 3pm / water the plants every Monday / move dentist to Friday / what's due today?
- move everything due today to tomorrow / snooze dentist by a week / skip the plants this week
- no, I meant Wednesday / mark them done / complete the first two
- add dentist tomorrow at 3pm, remind me an hour before / remind me a day before dentist / no reminder for dentist
- make dentist high priority / tag gym with health / stop repeating the plants
- what is on my list? / what's overdue? / show my work tasks / find milk / what did I do last week? / more
- the milk is done / I finished all the shopping / the milk is not done yet
- rename milk to oat milk / describe milk as two litres
- every Friday at 16:00 summarise what I did / every morning tell me what is open
- do task 3: for {AGENT_WORK}
- delete the milk task / delete all done tasks / undo / bring back the milk

I can't talk about anything else.

To talk to an AI model, {USE_A_MODEL}"""
GREETING = 'Hello! I am the offline model and keep your to-do list. Say "add buy milk", or "help" to see what I can do.'
NOT_DONE = "Not done."
ENGLISH_ONLY = "I understand English only."
TOO_LONG = "Your message is too long for me, so I did nothing. Keep it below {limit:,} characters."
WELCOME = "You are welcome."
BYE = "Goodbye."
ANSWER_IT = "Please choose one by its number, or say no."
NO_QUESTION = 'There is nothing to confirm. Tell me what to do, or say "help".'
NO_VERB = 'What should I do with it? Say, for example, "complete milk" or "delete milk".'
FIRST_TIME = "I don't know when you last did it, so it is due today. The next date counts from the day you complete it."
NOT_UNDERSTOOD = "I did not understand {words} as a date, so I left it in the title."
NOT_CLEAR = '"{words}" is not clear: {reason} I added nothing. Please say it again.'
OTHER_CLOCK = "I only know the time in your own time zone, so I did nothing. Say the time as your own clock shows it."
NO_BULK = 'I can\'t do that to your whole list. Name the tasks, or a group such as "everything due today".'
NO_SUBJECT = "Which task do you mean? Say words from its title."
NO_TITLE = 'What shall I add? Say, for example, "add buy milk".'
NO_VALUE = (
    'Say which task you mean and what it should become, for example "rename milk to oat milk", "move dentist to '
    'Friday", "make dentist high priority" or "tag gym with health".'
)
NO_CORRECTION = 'I changed nothing. Say, for example, "no, I meant Wednesday" or "rename milk to oat milk".'
NO_SORTING = 'I can\'t sort your list. Say "what is due this week?" or "what should I do first?" instead.'
INCOMPLETE = (NO_TITLE, NO_SUBJECT, NO_VALUE)
"""The answers to requests that the next message may complete."""
SAY_YES = 'Say "yes" to delete what is shown.'
SAY_YES_TO_COMPLETE = 'Shall I complete this task? Say "yes" to complete it.'
ONE_AT_A_TIME = 'An agent can work on one task at a time. Say "do task 3", with the number of the task.'
TOO_MANY = "That is too much at once, so I did not do it. Name up to {limit} tasks in one message."
NO_MEMBERS = 'I found no open task for "{group}".'
CANCEL = 'Say "delete" and the title to delete a task, or "add cancel …" to add a task about cancelling something.'
LEFT_ALONE = "I changed nothing."
# A list item, because the page shows no task card below an answer whose list names no task.
MISSING = 'I found no {kind} that matches "{phrase}". To see every task, say:\n\n- show all'
NOT_WITH_TOOLS = "I can't do that here, because the tool {tool} is not available."
STOPPED = "I stopped after {steps} steps, the most that I take for one message. Tell me what is still to do."
ADDED = "Added {tasks}."
CHANGED = "Changed {tasks}."
COMPLETED = "Completed {tasks}."
REOPENED = "Reopened {tasks}."
DELETED = "Deleted {tasks}."
RESTORED = "Restored {tasks}."
REMOVED = "Removed {tasks} again."
REVERTED = "Undid the last change to {tasks}."
ALREADY_DONE = "Already done: {tasks}."
STILL_OPEN = "Still open: {tasks}."
NOTHING_TO_UNDO = "There is no change left to undo in this conversation."
NOTHING_DELETED = "There is nothing to restore. You have deleted nothing in the last 30 days."
MORE = '; say "more" for the rest.'
NO_MORE = 'There is nothing more to show. Say "show all" to see every task.'

_MAX_FOUND = 50
_MAX_NAMED = 10  # others are only counted
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
    why = ", ".join(filter(None, [priority, _render_due(task)]))
    others = " The next ones are listed below it." if len(page.tasks) > 1 else ""
    return f'Start with "{join_lines(task.title)}"{f" ({why})" if why else ""}.{others}'


def list_found(phrase: str, tasks: Sequence[ResultTask]) -> str:
    lines: list[str] = []
    for task in tasks:
        state = ", ".join(filter(None, ["done" if task.status == "completed" else "open", _render_due(task)]))
        description = f": {join_lines(task.description, limit=1000)}" if task.description else ""
        lines.append(f"- {join_lines(task.title)} ({state}){description}")
    return f'{_render_count(len(tasks))} for "{join_lines(phrase)}":\n\n{shorten_list(lines, _MAX_FOUND)}'


def shorten_list(lines: Sequence[str], max_lines: int) -> str:
    more = [f"- and {len(lines) - max_lines} more"] if len(lines) > max_lines else []
    return "\n".join([*lines[:max_lines], *more])


def report(answer: str, results: Sequence[ToolResult]) -> str:
    failed = [result for result in results if result.error or result.page.not_found]
    done = name_tasks(answer, [task for result in results for task in result.page.tasks])
    return "\n\n".join([*([done] if done else []), *dict.fromkeys(map(_render_failure, failed))])


def name_tasks(answer: str, tasks: Sequence[ResultTask]) -> str:
    """Replaces {tasks} in an answer; without tasks there is none."""
    names = [f'"{join_lines(task.title)}"{_render_date(task)}' for task in sorted(tasks, key=lambda task: task.id)]
    more = [f"{len(names) - _MAX_NAMED} more"] if len(names) > _MAX_NAMED else []
    return answer.format(tasks=_join_names([*names[:_MAX_NAMED], *more])) if tasks else ""


def is_rejected(error: str) -> bool:
    """The backend describes a rejected call to models in these words."""
    return error.startswith("The person refused this call")


def _render_failure(result: ToolResult) -> str:
    if is_rejected(result.error):
        return NOT_DONE
    if not result.error:
        return MISSING.format(kind="task", phrase=_join_names([str(number) for number in result.page.not_found]))
    titles = [result.arguments.get("title"), *result.arguments.get("also", [])] if result.tool == "add_task" else []
    names = [f'"{join_lines(title, limit=80)}"' for title in titles if isinstance(title, str)]
    return f"{f'I could not add {_join_names(names)}' if names else 'That did not work'}: {shorten_error(result.error)}"


def _join_names(names: Sequence[str]) -> str:
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _render_date(task: ResultTask) -> str:
    """Renders the due date, or of a completed task that repeats, the next one."""
    if task.next_due:
        return f" (next {task.next_due})"
    reminder = "" if task.remind is None else f", {describe_reminder(task.remind)}"
    return f" ({_render_due(task)}{', repeats' if task.repeat else ''}{reminder})" if task.due else ""


def _render_due(task: ResultTask) -> str:
    return f"due {task.due}" if task.due else ""


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
