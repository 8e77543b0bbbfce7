"""What the offline model says."""

import re
from collections.abc import Sequence

from offline_model.conversation import Result, Task
from offline_model.rules.language.words import is_foreign, may_be_task

REAL_MODEL = "For a real model set `CEREBRAS_API_KEY`, or `LLM_PROVIDER` and that provider's key, and start again."
ABOUT = f'I am the offline model and only keep tasks, by simple rules: say "help" for what I know. {REAL_MODEL}'
CANNOT = {
    "reminders": f'I cannot remind you at a time: say "add call mum on Friday" to keep a date. {REAL_MODEL}',
    "view of deleted tasks": 'I cannot look for what was deleted: "undo" takes back what I changed last.',
}
"""What is said in the place of what a task may have one day; the help names each."""
HELP = f"""I am the offline model: I follow simple rules and keep your tasks. You can say, for example:

- add buy milk and call mum
- add milk, eggs and bread to shopping
- add dentist tomorrow at 3pm / water the plants every Monday / move dentist to Friday / what's due today?
- make dentist high priority / tag gym with health / undo
- what is on my list? / show my work tasks / find milk / more
- the milk is done
- rename milk to oat milk / describe milk as two litres
- delete the milk task

I have no {" and no ".join(CANNOT)}, and cannot talk about anything else.

{REAL_MODEL}"""
GREETING = 'Hello! I am the offline model: simple rules that keep your tasks. Say "add buy milk", or "help" for more.'
I_AM = 'I am the offline model: simple rules, neither a person nor a language model. Say "help" for what I know.'
NO_MEMORY = 'I cannot say what I did before: I know only what your list holds now. Say "show all" to see it.'
TOO_LONG = "That is more than I can read: keep a message below {limit:,} characters. I have done nothing."
WELCOME = "You are welcome."
BYE = "Goodbye."
NO_QUESTION = 'There is nothing to confirm. Tell me what to do, or say "help".'
NO_VERB = 'What shall I do with it? Say, for example, "complete milk" or "delete milk".'
ONE_LIST = "I keep one list only, so the name of that list stands in the description."
TIME_IS_TEXT = "I cannot remind you, and did not understand the time: it stands in the words of the task."
NOTHING_RINGS = "Nothing rings at that time: it stands in the list as the date of the task."
CALENDAR_RINGS = (
    "Nothing here rings, but a calendar program that reads your calendar does, for what has a clock time; a phone "
    "needs an address that it can reach."
)
NO_BULK = 'I complete or delete only tasks that you name. Say, for example, "complete milk and bread".'
NO_SUBJECT = "Which task? Say words of its title."
NO_TITLE = 'What shall I add? Say, for example, "add buy milk".'
NO_NEW_VALUE = 'Say which task you mean and what it is to become, for example "rename milk to oat milk".'
NO_NEW_DATE = 'Which task, and to which day? Say, for example, "move dentist to Friday" or "snooze dentist by a week".'
NO_PRIORITY = 'Say which task and how much it matters, for example "make dentist high priority".'
NO_LABEL = 'Say which label, for example "tag gym with health".'
ASK_DELETE_DONE = 'There are {count} done tasks. To delete them, say "really delete all done tasks".'
TOO_MANY = "That is more than I do at once: name at most {limit} tasks in one message. I have left that undone."
NONE_DELETED = "So I deleted none of them."
LEFT_ALONE = "All right, I leave everything as it is."
# Listed as tasks are: no box is shown below an answer whose list names none.
MISSING = 'I found no {among} that matches "{phrase}". To see every task, say:\n\n- show all'
NOT_ALL_READ = 'I read only the first {count} tasks: none matches "{phrase}". To see all, say:\n\n- show all\n- more'
NOT_WITH_TOOLS = "I cannot do that here: the tool {tool} was not offered to me."
STOPPED = "I stop here: that took {steps} steps with tools, which is as many as I take for one message."
ADDED = "Added {count}."
LISTED = f"{ADDED}\n\n{ONE_LIST}"
NOTED = f"{ADDED}\n\n{TIME_IS_TEXT}"
CHANGED = "Changed {tasks}."
COMPLETED = "Completed {tasks}."
REOPENED = "Opened {tasks} again."
DELETED = "Deleted {tasks}."
DELETED_DONE = "Deleted {count}."
BY_TOOL = {"add_task": ADDED, "update_task": CHANGED, "complete_task": COMPLETED, "delete_task": DELETED}
UNDONE = {
    "add_task": "Took {tasks} off the list again.",
    "update_task": "Changed {tasks} back.",
    "complete_task": "Took that back: {tasks}.",
    "delete_task": "Brought {tasks} back.",
}
NOTHING_TO_UNDO = "There is nothing to take back: I have changed nothing in this conversation."
MORE = '; say "more" for the rest.'
NO_MORE = 'There is nothing more to show. Say "show all" to see every task.'
_KINDS = {
    "pending": ("open ", "Nothing is left to do: you have no open tasks."),
    "completed": ("completed ", "You have not completed any task yet."),
}
FOUND_SHOWN = 50
_IN_WORDS = (
    (re.compile(r"(?:call|use|look up the numbers with) list_tasks\b[^:;.]*"), 'say "show all"'),
    (re.compile(", as list_tasks shows it"), ""),
    (re.compile("task_id"), "what I took for a number"),
)
_CLAUSE = re.compile(r"(?<=[:;.]) ")
_TOOL_WORD = re.compile(r"\b(?:[a-z]+_tasks?|[a-z]+_id|_meta|cursor|idempotency|limit)\b")


def not_understood(request: str) -> str:
    if is_foreign(request):
        return "I know English only."
    is_short = len(request.split()) <= 6
    hint = f' If "{request}" is a task, say "add {request}".' if is_short and may_be_task(request) else ""
    return f"I did not understand that.{hint} {ABOUT}"


def shortened(answer: str) -> str:
    """Without what an earlier answer has told about this model."""
    return answer.replace(ABOUT, 'Say "help" for what I know.').replace(f" {REAL_MODEL}", "")


def listing(status: str, tasks: Sequence[Task], *, more: bool, before: bool = False) -> str:
    """How many; the tasks themselves are shown as the tool's result, with boxes to tick."""
    kind, nothing = _KINDS.get(status, ("", "Your list is empty."))
    which = "The next " if before else "The first " if more else ""
    return f"{which}{_counted(len(tasks), kind)}{MORE if more else '.'}" if tasks else nothing


def due(tasks: Sequence[Task], days: str, *, overdue: bool) -> str:
    """As `listing`, of tasks with a date; `days` as they were asked for."""
    when = "overdue" if overdue else f"due {days}".strip()
    return f"{_counted(len(tasks))} {'is' if len(tasks) == 1 else 'are'} {when}." if tasks else f"Nothing is {when}."


def found(phrase: str, tasks: Sequence[Task], *, among: int | None) -> str:
    """With the state of each; `among` is how many tasks were read, if that was not all of them."""
    where = "" if among is None else f" among the first {among} tasks"
    lines = [
        f"- {one_line(task.title)} ({'done' if task.status == 'completed' else 'open'}{_due(task)})"
        + (f": {one_line(task.description, limit=1000)}" if task.description else "")
        for task in tasks[:FOUND_SHOWN]
    ]
    if len(tasks) > FOUND_SHOWN:
        lines.append(f"- and {len(tasks) - FOUND_SHOWN} more")
    return f'{_counted(len(tasks))} for "{one_line(phrase)}"{where}:\n\n' + "\n".join(lines)


def already(tasks: Sequence[Task]) -> str:
    return f"Already done: {_named(tasks)}." if tasks else ""


def told(answer: str, results: Sequence[Result]) -> str:
    """What became of the calls of a wish, from their results alone: its answer, and what failed."""
    done = [task for result in results for task in result.page.tasks]
    failed = [result for result in results if result.error]
    # Added tasks are shown on cards: they are named where it matters which of them were added.
    dated = any("due" in result.arguments or "repeat" in result.arguments for result in results)
    names = _named(done, with_dates=dated)
    count = names if len(done) == 1 or failed or dated else _counted(len(done))
    said = [answer.format(tasks=names, count=count)] if done else []
    return "\n\n".join([*said, *dict.fromkeys(map(_failure, failed))])


def with_date(answer: str) -> str:
    """The answer about tasks of which some got a date."""
    return answer.replace(TIME_IS_TEXT, NOTHING_RINGS)


def _failure(result: Result) -> str:
    title = result.arguments.get("title") if result.tool == "add_task" else None
    what = f'I could not add "{one_line(title, limit=80)}"' if isinstance(title, str) else "That did not work"
    return f"{what}: {in_words(result.error)}"


def _named(tasks: Sequence[Task], *, with_dates: bool = False) -> str:
    in_order = sorted(tasks, key=lambda task: task.id)
    *others, last = [f'"{one_line(task.title)}"{_date(task) if with_dates else ""}' for task in in_order] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _date(task: Task) -> str:
    """As the tool's result shows it: this model does not know what day it is."""
    repeats = ", repeats" if task.repeat else ""
    return f" ({_due(task).removeprefix(', ')}{repeats})" if task.due else ""


def _due(task: Task) -> str:
    return f", due {one_line(task.due)}" if task.due else ""


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
