"""What the offline model says."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from offline_model.rules.conversation import TOOLS, Result
from offline_model.rules.words import is_foreign, may_be_task

REAL_MODEL = "For a real model set `CEREBRAS_API_KEY`, or `LLM_PROVIDER` and that provider's key, and start again."
ABOUT = f'I am the offline model and only keep tasks, by simple rules: say "help" for what I know. {REAL_MODEL}'
HELP = f"""I am the offline model: I follow simple rules and keep your tasks. You can say, for example:

- add buy milk and call mum
- add buy milk with description two litres
- what is on my list? / what have I done? / show all
- the milk is done / complete 3
- rename milk to oat milk / describe milk as two litres
- delete the milk task / remove 4

{REAL_MODEL}"""
GREETING = (
    'Hello! I am the offline model, which keeps your tasks by simple rules. Say "add buy milk", or "help" for more.'
)
I_AM = (
    "I am the offline model: a program that follows simple rules, neither a person nor a language model."
    ' Say "help" for what I know.'
)
NO_MEMORY = 'I cannot say what I did before: I know only what your list holds now. Say "show all" to see it.'
TOO_LONG = "That is more than I can read: keep a message below {limit:,} characters. I have done nothing."
WELCOME = "You are welcome."
BYE = "Goodbye."
NO_QUESTION = 'There is nothing to confirm. Tell me what to do, or say "help".'
NO_VERB = 'What shall I do with it? Say, for example, "complete 3" or "delete 3".'
NO_TIMES = (
    "I cannot do that: tasks have no due dates, priorities or repeats, and I cannot remind you at a time."
    f" I am the offline model and keep only titles and descriptions. {REAL_MODEL}"
)
TIME_IS_TEXT = "I keep the time only as words of the task and cannot remind you at it."
NO_UNDO = "I cannot undo or reopen anything: there is no tool for it. You can add the task again."
NO_BULK = (
    "I complete or delete only tasks that you name, not all of them at once."
    ' Say their numbers, for example "complete 1, 2 and 3".'
)
NO_SUBJECT = "Which task? Say its number, or words of its title."
NO_TITLE = 'What shall I add? Say, for example, "add buy milk".'
NO_NEW_VALUE = 'Say which task you mean and what it is to become, for example "rename 3 to buy oat milk".'
TOO_MANY = "That is more than I do at once: name at most {limit} tasks in one message. I have left that undone."
NONE_DELETED = "So I deleted none of them."
LEFT_ALONE = "All right, I leave everything as it is."
NOT_ALL_READ = 'I read only the first {count} tasks and found none that matches "{phrase}". Say its number instead.'
NOT_WITH_TOOLS = "I cannot do that here: the tool {tool} was not offered to me."
STOPPED = "I stop here: that took {steps} steps with tools, which is as many as I take for one message."


_TO_LIST = re.compile(r"(?:call|use|look up the numbers with) list_tasks\b(?: with(?:out)? (?:that )?\w+)?")
_ARGUMENTS = {", as list_tasks shows it": "", "task_id": "what I took for a number"}
_CLAUSE = re.compile(r"(?<=[:;.]) ")
_TOOL_WORD = re.compile(rf"\b(?:{'|'.join(TOOLS)}|[a-z]+_id|_meta|cursor|idempotency|limit)\b")


def not_understood(request: str) -> str:
    if is_foreign(request):
        return "I know English only."
    is_short = len(request.split()) <= 6
    hint = f' If "{request}" is a task, say "add {request}".' if is_short and may_be_task(request) else ""
    return f"I did not understand that.{hint} {ABOUT}"


def shortened(answer: str) -> str:
    """Without what an earlier answer has told about this model."""
    return answer.replace(ABOUT, 'Say "help" for what I know.').replace(f" {REAL_MODEL}", "")


def missing(phrase: str, among: str = "task") -> str:
    return f'I found no {among} that matches "{phrase}". Say "show all" to see every task.'


def task_line(task: dict[str, Any], *, state: bool = False, limit: int = 120) -> str:
    done = " (done)" if task.get("status") == "completed" else " (open)" if state else ""
    description = _description(task, limit)
    return f"- **{task['id']}** {one_line(task['title'])}{done}" + (f": {description}" if description else "")


def named(task: dict[str, Any]) -> str:
    return f'"{one_line(task["title"])}" (number {task["id"]})'


def listing(status: str, tasks: Sequence[dict[str, Any]], *, whole: bool) -> str:
    if not tasks:
        return {
            "pending": "Nothing is left to do: you have no open tasks.",
            "completed": "You have not completed any task yet.",
            "all": "Your list is empty.",
        }[status]
    kind = {"pending": "open ", "completed": "completed ", "all": ""}[status]
    # The tasks themselves are shown as the tool's result, with boxes to tick.
    return f"{counted(len(tasks), kind)}." if whole else f"The first {counted(len(tasks), kind)}; there are more."


def found(phrase: str, tasks: Sequence[dict[str, Any]], *, among: int | None) -> str:
    """With the state of each; `among` is how many tasks were read, if that was not all of them."""
    where = "" if among is None else f" among the first {among} tasks"
    lines = "\n".join(task_line(task, state=True, limit=4000) for task in tasks)
    return f'{counted(len(tasks))} for "{one_line(phrase)}"{where}:\n\n{lines}'


def already(tasks: Iterable[dict[str, Any]]) -> str:
    return f"Already done: {', '.join(map(named, tasks))}."


def counted(number: int, kind: str = "") -> str:
    return f"{number} {kind}task{'' if number == 1 else 's'}"


def changes(results: Sequence[Result]) -> str:
    """What the calls changed and what failed, from their results alone."""
    done = [result for result in results if not result.error]
    parts = []
    for tool, verb in (("add_task", "Added"), ("complete_task", "Completed"), ("delete_task", "Deleted")):
        tasks = sorted((result.value for result in done if result.tool == tool), key=lambda task: task["id"])
        if len(tasks) == 1:
            description = _description(tasks[0]) if tool == "add_task" else ""
            parts.append(f"{verb} {named(tasks[0])}{': ' + description if description else '.'}")
        elif tasks:
            parts.append(f"{verb} {counted(len(tasks))}:\n\n" + "\n".join(_plain_line(task) for task in tasks))
    parts += [_updated(result.value) for result in done if result.tool == "update_task"]
    parts += dict.fromkeys(f"That did not work: {in_words(result.error)}" for result in results if result.error)
    return "\n\n".join(parts)


def _updated(task: dict[str, Any]) -> str:
    description = _description(task)
    return f"Changed {named(task)}{': ' + description if description else '.'}"


def _plain_line(task: dict[str, Any]) -> str:
    return f"- **{task['id']}** {one_line(task['title'])}"


def _description(task: dict[str, Any], limit: int = 120) -> str:
    return one_line(str(task.get("description") or ""), limit=limit)


def in_words(error: str) -> str:
    """A tool's error without the names of tools and arguments, which are no words of a person."""
    line = _TO_LIST.sub('say "show all"', one_line(error))
    for name, words in _ARGUMENTS.items():
        line = line.replace(name, words)
    kept = [clause for clause in _CLAUSE.split(line) if clause and not _TOOL_WORD.search(clause)]
    told = " ".join(kept).rstrip(" ,:;")
    return f"{told[:1].upper()}{told[1:]}{'' if told[-1:] in '.!?' else '.'}" if told else "It was refused."


def one_line(text: str, *, limit: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
