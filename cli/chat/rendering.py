"""Renders what the APIs return for a terminal, with rich."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from cli.terminal import clean
from common.repeats import describe_repeat

Json = Mapping[str, Any]
NARROW = 60
"""On fewer columns, a task takes two lines."""
_MARKS = {"completed": ("✓", "green"), "deleted": ("✗", "red"), "pending": ("·", "")}
_DUE = re.compile(r"(?:\w{3} )?(\d{4}-\d\d-\d\d)( \d\d:\d\d)?", re.ASCII)
_REJECTED = "The person refused this call"  # begins what the model reads in place of the output of a rejected call
_DUE_CELLS, _MORE_CELLS = 21, 24  # at most
_PRINTED_LINES = 8  # at most, of what a command has printed


def render_marked(mark: str, text: str, *, style: str = "", mark_style: str = "") -> RenderableType:
    grid = Table.grid()
    grid.add_row(Text(f"{mark} ", mark_style), Text(text, style))
    return grid


def cut_line(*parts: str | tuple[str, str]) -> Text:
    """Cuts a text at the end of the line; a part is a text, or a text and its style."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        text, style = part if isinstance(part, tuple) else (part, "")
        line.append(re.sub(r"[^\S ]+|(?<=\S)\s+", " ", clean(text)), style)
    return line


def render_call(tool: str, arguments: str, output: str) -> RenderableType:
    result = _parse_object(output)
    name = tool.replace("_", " ")
    if result is not None:
        return cut_line(("✓ ", "green"), (f"{name} {_describe_result(result)}", "dim"))
    call = cut_line(("✗ ", "red"), (describe_call(tool, arguments), "dim"))
    return Group(call, render_output(output)) if output.strip() else call


def render_output(output: str) -> RenderableType:
    return cut_line("  ", (_choose_output(output), "dim"))


def describe_call(tool: str, arguments: str) -> str:
    values = {name: _shorten(value) for name, value in (_parse_object(arguments) or {}).items() if value is not None}
    described = values.values() if len(values) == 1 else (f"{name}: {value}" for name, value in values.items())
    return f"{tool.replace('_', ' ')} {', '.join(described)}"


def get_agent(tool: str) -> str | None:
    return tool.removeprefix("do_with_") if tool.startswith("do_with_") else None


def render_agent_start(tool: str, arguments: str) -> RenderableType:
    assignment = str((_parse_object(arguments) or {}).get("task", ""))
    started = cut_line(("● ", "cyan"), (describe_call(tool, arguments), "dim"))
    return Group(started, render_agent_line(get_agent(tool) or "", assignment))


def render_agent_line(agent: str, text: str) -> RenderableType:
    return cut_line((f"  └ {agent}: {text}", "dim"))


def render_agent_output(output: str, details: Json | None, *, is_error: bool) -> RenderableType:
    """The last lines that an agent's command has printed, or why a call failed; nothing for other tools."""
    if is_error:
        return cut_line("    ", ("✗ ", "red"), (_choose_output(output), "dim"))
    printed = [str((details or {}).get(name) or "") for name in ("stdout", "stderr")]
    lines = [line for text in printed for line in text.splitlines()]
    hidden = len(lines) - _PRINTED_LINES
    above = [f"{hidden:,} more lines above"] if hidden > 0 else []
    return Group(*(cut_line(("    " + line, "dim")) for line in (*above, *lines[-_PRINTED_LINES:])))


def render_step(step: Json) -> RenderableType:
    agent, content, details = step["agent"], step["content"], step.get("details") or {}
    match step["kind"]:
        case "task":
            return render_agent_line(agent, content.get("task", ""))
        case "step":
            calls = (describe_call(call["name"], call["arguments"]) for call in content.get("calls", ()))
            return Group(*(render_agent_line(agent, call) for call in calls))
        case "end":
            return render_agent_line(agent, content.get("outcome", "ended"))
        case _:
            return render_agent_output(content.get("output", ""), details, is_error=details.get("ok") is False)


def parse_tasks(output: str) -> Sequence[Json] | None:
    """The tasks in a tool's result; None if it is no list of tasks, because an agent may answer anything."""
    result = _parse_object(output)
    tasks = result.get("tasks") if result is not None else None
    return tasks if isinstance(tasks, list) and all(map(_is_task, tasks)) else None


def count_more(output: str, arguments: str, *, shown: int) -> int:
    """How many tasks a list has besides those that are shown; of a later page, how many that page has."""
    result, given = _parse_object(output) or {}, _parse_object(arguments) or {}
    total = None if given.get("cursor") else result.get("total")
    count = len(result.get("tasks", ()))
    return max(count, total if isinstance(total, int) else 0) - shown


def render_tasks(tasks: Sequence[Json], width: int) -> RenderableType:
    cut: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"}
    columns = [Column(), Column(justify="right", style="dim", no_wrap=True), Column(ratio=1, **cut)]
    details = [(render_due(task), _describe_more(task)) for task in tasks]
    if width >= NARROW and any(map(any, details)):
        columns += [Column(style="dim", min_width=1, max_width=most, **cut) for most in (_DUE_CELLS, _MORE_CELLS)]
    grid = Table.grid(*columns, padding=(0, 1, 0, 0), expand=True)
    for task, (due, more) in zip(tasks, details, strict=True):
        status = "deleted" if task.get("deleted") else str(task.get("status"))
        mark, title = Text(*_MARKS.get(status, _MARKS["pending"])), cut_line(task["title"])
        if len(columns) > 3:
            grid.add_row(mark, str(task["id"]), title, cut_line(due), cut_line(more))
        else:
            below = " · ".join(filter(None, (due, more)))
            grid.add_row(mark, str(task["id"]), Group(title, *([cut_line((below, "dim"))] if below else [])))
    return grid


def render_copied_task(line: str) -> RenderableType:
    box, _, title = line.partition("] ")
    return cut_line(_MARKS["completed" if box.endswith("x") else "pending"], f" {title}")


def render_question(text: str) -> RenderableType:
    shown = "\n".join(line for line in clean(text).splitlines() if line.strip())
    return Group(Text("The assistant asks:", "bold"), Padding(Text(shown), (0, 0, 0, 2)))


def render_chats(chats: Sequence[Json], current: str | None) -> RenderableType:
    grid = Table.grid(
        Column(style="cyan"),
        Column(justify="right", style="dim"),
        Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        Column(style="dim", no_wrap=True),
        padding=(0, 1, 0, 0),
        expand=True,
    )
    for number, chat in enumerate(chats, 1):
        is_current = current is not None and current in (chat["id"], chat["name"])
        title, day = cut_line(chat["title"] or "Untitled"), str(chat["created_at"])[:10]
        grid.add_row("●" if is_current else " ", f"{number:2}", title, day)
    return grid


def describe_usage(usage: Json | None, seconds: float) -> str:
    used = usage or {}
    tokens = used.get("input_tokens", 0), used.get("output_tokens", 0)
    counts = (*zip(tokens, ("in", "out"), strict=True), (used.get("reasoning_tokens", 0), "thinking"))
    return " · ".join([*(f"{n:,} {name}" for n, name in (*counts, (sum(tokens), "total"))), f"{seconds:.1f} s"])


def render_due(task: Json) -> str:
    """ "Fri 27 Nov 15:00", with the year if it is another one; tools write the day of the week before the date."""
    due, time = str(task.get("due") or ""), str(task.get("time") or "")
    with suppress(ValueError):
        found = _DUE.fullmatch(due)
        day = date.fromisoformat(found[1] if found else due)
        year = f" {day.year}" if day.year != date.today().year else ""
        due = f"{day:%a} {day.day} {day:%b}{year}{(found and found[2]) or ''}"
    return " ".join(filter(None, (due, time)))


def _describe_more(task: Json) -> str:
    labels = " ".join(f"#{label}" for label in task.get("labels") or ())
    repeat = describe_repeat(task["repeat"]) if task.get("repeat") else None
    return " ".join(filter(None, (task.get("priority"), labels, repeat)))


def _describe_result(result: Json) -> str:
    if isinstance(result.get("tasks"), list):
        return f"{len(result['tasks'])} of {result.get('total', len(result['tasks']))}"
    if "title" not in result:
        return ""
    others = len(also) if isinstance(also := result.get("also"), list) else 0
    due = f" · {render_due(result)}" if result.get("due") else ""
    return f"{result.get('id', '')} {result['title']}{due}{f' and {others} more' if others else ''}"


def _choose_output(output: str) -> str:
    return "Not done." if output.startswith(_REJECTED) else output.strip()


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_task(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("id")) is not int or not isinstance(value.get("title"), str):
        return False
    texts = (value.get(name) for name in ("due", "time", "priority", "repeat"))
    labels = value.get("labels") or []
    return all(text is None or isinstance(text, str) for text in texts) and (
        isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    )


def _shorten(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
