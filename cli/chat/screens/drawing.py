"""What a conversation tells beside its texts, as lines of a terminal: values of the doors in, text out."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from cli.chat.screens.text import Style, cells, one_line, padded, wrapped
from common.repeats import describe_repeat

Json = Mapping[str, Any]
WIDE = 60
"""From so many columns on, a task is one line."""
_DONE, _OPEN, _GONE = "✓", "·", "✗"
_DUE = re.compile(r"(?:\w{3} )?(\d{4}-\d\d-\d\d)( \d\d:\d\d)?", re.ASCII)
_REJECTED = "The person refused this call"  # begins what the model reads in place of the output of a rejected call
_DUE_CELLS, _MORE_CELLS = 21, 24  # at most
_PRINTED_LINES = 8  # at most, of what a command has printed


def call_line(style: Style, tool: str, arguments: str, output: str, width: int) -> str:
    """A call that has returned: what was wanted of which tool, and what became of it."""
    result = _object(output)
    name = tool.replace("_", " ")
    wanted = f"{name} {_result(result)}" if result is not None else f"{name} {_given(arguments)}"
    mark = style.good("✓") if result is not None else style.bad("✗")
    first = f"{mark} {style.dim(one_line(wanted, width - 2))}"
    return f"{first}\n{output_line(style, output, width)}" if result is None and output.strip() else first


def is_agent(tool: str) -> bool:
    """Whether the tool has an agent work, whose steps can be looked at."""
    return tool.startswith("do_with_")


def begun_line(style: Style, tool: str, arguments: str, width: int) -> str:
    """A call that has an agent work: its steps stand below."""
    return f"{style.marked('●')} {style.dim(one_line(calling(tool, arguments), width - 2))}"


def output_line(style: Style, output: str, width: int) -> str:
    """What came of a call that is shown already."""
    return f"  {style.dim(one_line(_for_user(output), width - 2))}"


def _for_user(output: str) -> str:
    """What a call returned, without the text that a model reads where its call was rejected."""
    return "Not done." if output.startswith(_REJECTED) else output


def calling(tool: str, arguments: str) -> str:
    """A call that is under way."""
    return f"{tool.replace('_', ' ')} {_given(arguments)}"


def listed(output: str) -> Sequence[Json] | None:
    """The tasks in a tool's result, where it is a list of them: an agent may answer anything."""
    found = _object(output)
    tasks = found.get("tasks") if found is not None else None
    return tasks if isinstance(tasks, list) and all(map(_is_task, tasks)) else None


def rest_of(output: str, arguments: str, *, shown: int) -> int:
    """How many tasks of a list there are beside those that are shown; on a later page, of that page alone."""
    result, given = _object(output) or {}, _object(arguments) or {}
    total = None if given.get("cursor") else result.get("total")
    count = len(result.get("tasks", ()))
    return max(count, total if isinstance(total, int) else 0) - shown


def task_lines(style: Style, tasks: Sequence[Json], width: int) -> list[str]:
    """Tasks as a table; on a narrow terminal what is told of one stands below it."""
    number = max((len(str(task["id"])) for task in tasks), default=1)
    due_cells = min(max((cells(_when(task)) for task in tasks), default=0), _DUE_CELLS)
    more_cells = min(max((cells(_more(task)) for task in tasks), default=0), _MORE_CELLS)
    lines: list[str] = []
    for task in tasks:
        begins = f"{_mark(style, task)} {style.dim(str(task['id']).rjust(number))} "
        room = width - number - 3
        due, more = _when(task), _more(task)
        if width < WIDE:
            lines.append(begins + one_line(task["title"], room))
            if below := " · ".join(filter(None, (due, more))):
                lines.append(" " * (number + 3) + style.dim(one_line(below, room)))
            continue
        title = padded(task["title"], room - due_cells - more_cells - 4)
        told = f"{padded(due, due_cells)}  {one_line(more, more_cells)}".rstrip()
        lines.append(f"{begins}{title}  {style.dim(told)}".rstrip())
    return lines


def copied_line(style: Style, task: str, width: int) -> str:
    """A task as it is copied from a list of the page's."""
    box, _, title = task.partition("] ")
    return f"{style.good(_DONE) if box.endswith('x') else _OPEN} {one_line(title, width - 2)}"


def asked_lines(style: Style, text: str, width: int) -> list[str]:
    """What a person is asked to consent to: all of it."""
    return [style.bold("The assistant asks:"), *(f"  {line}" for line in wrapped(text, width - 2) if line)]


def step_lines(style: Style, step: Json, width: int) -> list[str]:
    """A step of an agent's work, below the call that started it."""
    who, content = step["agent"], step["content"]
    if step["kind"] == "output" and (step.get("details") or {}).get("ok") is False:
        return [f"    {style.bad('✗')} {style.dim(one_line(_for_user(content.get('output', '')), width - 6))}"]
    match step["kind"]:
        case "task":
            told = [f"{who}: {content.get('task', '')}"]
        case "step":
            told = [f"{who}: {calling(call['name'], call['arguments'])}" for call in content.get("calls", ())]
        case "end":
            told = [f"{who}: {content.get('outcome', 'ended')}"]
        case _:
            return _printed_lines(style, step.get("details") or {}, width)
    return [style.dim(f"  └ {one_line(line, width - 4)}") for line in told]


def _printed_lines(style: Style, details: Json, width: int) -> list[str]:
    """Renders the last lines that a command has printed; none for other tools."""
    lines = [line for name in ("stdout", "stderr") for line in str(details.get(name) or "").splitlines()]
    shown = lines[-_PRINTED_LINES:]
    hidden = [f"    {len(lines) - len(shown):,} more lines above"] if len(lines) > len(shown) else []
    return [style.dim(line) for line in (*hidden, *(f"    {one_line(line, width - 4)}" for line in shown))]


def usage_line(usage: Json | None, seconds: float) -> str:
    """Tokens in and out, those of thinking, all of them, and how long it took."""
    used = usage or {}
    tokens = used.get("input_tokens", 0), used.get("output_tokens", 0)
    counted = (
        (tokens[0], "in"),
        (tokens[1], "out"),
        (used.get("reasoning_tokens", 0), "thinking"),
        (sum(tokens), "total"),
    )
    return " · ".join([*(f"{number:,} {name}" for number, name in counted), f"{seconds:.1f} s"])


def thread_line(style: Style, number: int, thread: Json, width: int, *, current: bool) -> str:
    mark = style.marked("●") if current else " "
    title = padded(thread.get("title") or "Untitled", width - 17)
    return f"{mark} {style.dim(str(number).rjust(2))} {title} {style.dim(str(thread.get('created_at', ''))[:10])}"


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_task(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("id")) is not int or not isinstance(value.get("title"), str):
        return False
    texts = (value.get(name) for name in ("due", "time", "priority", "repeat"))
    labels = value.get("labels")
    return all(text is None or isinstance(text, str) for text in texts) and (
        labels is None or (isinstance(labels, list) and all(isinstance(label, str) for label in labels))
    )


def _given(arguments: str) -> str:
    """The arguments of a call in short."""
    given = {name: _short(value) for name, value in (_object(arguments) or {}).items() if value is not None}
    return ", ".join(given.values() if len(given) == 1 else (f"{name}: {value}" for name, value in given.items()))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _result(result: Json) -> str:
    if isinstance(result.get("tasks"), list):
        return f"{len(result['tasks'])} of {result.get('total', len(result['tasks']))}"
    if "title" not in result:
        return ""
    others = len(also) if isinstance(also := result.get("also"), list) else 0
    due = f" · {_when(result)}" if result.get("due") else ""
    return f"{result.get('id', '')} {result['title']}{due}{f' and {others} more' if others else ''}"


def _mark(style: Style, task: Json) -> str:
    status = "deleted" if task.get("deleted") else task.get("status")
    return {"completed": style.good(_DONE), "deleted": style.bad(_GONE)}.get(str(status), _OPEN)


def _when(task: Json) -> str:
    """ "Fri 27 Nov 15:00", with the year if it is another one; tools write the day of the week before the date."""
    due, time = str(task.get("due") or ""), str(task.get("time") or "")
    with suppress(ValueError):
        found = _DUE.fullmatch(due)
        day = date.fromisoformat(found[1] if found else due)
        year = f" {day.year}" if day.year != date.today().year else ""
        due = f"{day:%a} {day.day} {day:%b}{year}{(found and found[2]) or ''}"
    return " ".join(filter(None, (due, time)))


def _more(task: Json) -> str:
    labels = " ".join(f"#{label}" for label in task.get("labels") or ())
    repeat = describe_repeat(task["repeat"]) if task.get("repeat") else None
    return " ".join(filter(None, (task.get("priority"), labels, repeat)))
