"""What the offline model says."""

from collections.abc import Iterable, Sequence
from typing import Any

from offline_model.rules.conversation import Result

REAL_MODEL = "For a real model set `CEREBRAS_API_KEY`, or `LLM_PROVIDER` and that provider's key, and start again."
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
NO_NEW_VALUE = 'Say what it is to become, for example "rename 3 to buy oat milk".'
TOO_MANY = "That is more than I do at once: name at most {limit} tasks in one message. I have left that undone."
NONE_DELETED = "So I deleted none of them."
LEFT_ALONE = "All right, I leave everything as it is."
NOT_ALL_READ = 'I read only the first {count} tasks and found none that matches "{phrase}". Say its number instead.'
NOT_WITH_TOOLS = "I cannot do that here: the tool {tool} was not offered to me."
STOPPED = "I stop here: that took {steps} steps with tools, which is as many as I take for one message."


def not_understood(request: str) -> str:
    hint = f' If "{request}" is a task, say "add {request}".' if 0 < len(request.split()) <= 6 else ""
    return (
        f"I did not understand that.{hint} I am the offline model and only keep tasks, by simple rules: say"
        f' "help" for what I know. {REAL_MODEL}'
    )


def missing(phrase: str, among: str = "task") -> str:
    return f'I found no {among} that matches "{phrase}". Say "show all" to see every task.'


def task_line(task: dict[str, Any]) -> str:
    done = " (done)" if task.get("status") == "completed" else ""
    description = _description(task)
    return f"- **{task['id']}** {one_line(task['title'])}{done}" + (f": {description}" if description else "")


def task_lines(tasks: Iterable[dict[str, Any]]) -> str:
    return "\n".join(task_line(task) for task in tasks)


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
    more = "" if whole else "\n\nThere are more, which I have not read."
    return f"{counted(len(tasks), kind)}:\n\n{task_lines(tasks)}{more}"


def counted(number: int, kind: str = "") -> str:
    return f"{number} {kind}task{'' if number == 1 else 's'}"


def changes(results: Sequence[Result]) -> str:
    """What the calls changed and what failed, from their results alone."""
    done = [result for result in results if not result.error]
    parts = []
    for tool, verb in (("add_task", "Added"), ("complete_task", "Completed"), ("delete_task", "Deleted")):
        tasks = [result.value for result in done if result.tool == tool]
        if len(tasks) == 1:
            description = _description(tasks[0]) if tool == "add_task" else ""
            parts.append(f"{verb} {named(tasks[0])}{': ' + description if description else '.'}")
        elif tasks:
            parts.append(f"{verb} {counted(len(tasks))}:\n\n" + "\n".join(_plain_line(task) for task in tasks))
    parts += [_updated(result.value) for result in done if result.tool == "update_task"]
    parts += dict.fromkeys(f"That did not work: {one_line(result.error)}" for result in results if result.error)
    return "\n\n".join(parts)


def _updated(task: dict[str, Any]) -> str:
    description = _description(task)
    return f"Changed {named(task)}{': ' + description if description else '.'}"


def _plain_line(task: dict[str, Any]) -> str:
    return f"- **{task['id']}** {one_line(task['title'])}"


def _description(task: dict[str, Any]) -> str:
    return one_line(str(task.get("description") or ""), limit=120)


def one_line(text: str, *, limit: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
