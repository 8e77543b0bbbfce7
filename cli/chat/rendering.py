"""Renders what the APIs return for a terminal, with rich."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from cli.terminal import clean
from common.task_words import describe_due, read_due, select_fields

Json = Mapping[str, Any]
NARROW = 60
"""On fewer columns, a task takes two lines."""
_MARKS = {"completed": ("✓", "green"), "deleted": ("✗", "red"), "pending": ("·", "")}
_REJECTED = "The person refused this call"  # begins what the model reads in place of the output of a rejected call
_DUE_CELLS, _MORE_CELLS = 21, 24  # at most
_MAX_LINE_CHARS = 2_000  # more than a terminal is wide; of a long text the rest is not even looked at
_PRINTED_LINES = 8  # at most, of what a command has printed


def render_marked(mark: str, text: str, *, style: str = "", mark_style: str = "") -> RenderableType:
    grid = Table.grid()
    grid.add_row(Text(f"{mark} ", mark_style), Text(text, style))
    return grid


def cut_line(*parts: str | tuple[str, str]) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        text, style = part if isinstance(part, tuple) else (part, "")
        line.append(re.sub(r"[^\S ]+|(?<=\S)\s+", " ", clean(text[:_MAX_LINE_CHARS])), style)
    return line


def render_call(arguments: str, result: Json) -> RenderableType:
    """Renders a call with its result, as the run API sends that."""
    tool, output = result["tool_name"], result["tool_output"]
    if not result["is_error"]:
        described = _describe_result(result["details"] or {})
        return cut_line(("✓ ", "green"), (f"{tool.replace('_', ' ')} {described}", "dim"))
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
    """The last lines that an agent's command has printed, notes on a file that was written, or why a call failed."""
    if is_error:
        return cut_line("    ", ("✗ ", "red"), (_choose_output(output), "dim"))
    printed = [str((details or {}).get(name) or "") for name in ("stdout", "stderr")]
    printed += map(str, (details or {}).get("notes") or ())
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


def count_tasks(page: Json, arguments: str) -> int:
    """Returns how many tasks a list has; of a later page, how many that page has."""
    is_later = (_parse_object(arguments) or {}).get("cursor")
    return len(page["tasks"]) if is_later else max(len(page["tasks"]), page["total"])


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
    shown = "\n".join(line for line in clean(text).split("\n") if line)
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
    names = ("input_tokens", "output_tokens", "reasoning_tokens")
    sent, received, thinking = ((usage or {}).get(name, 0) for name in names)
    total = sent + received
    return f"{sent:,} in · {received:,} out · {thinking:,} thinking · {total:,} total · {seconds:.1f} s"


def render_due(task: Json) -> str:
    """Renders the due date of a tool's result or of the HTTP API."""
    match task:
        case {"due": {"date": day, "time": time}} | {"due": str() as day, "time": time}:
            return describe_due(read_due(day, time), date.today())
        case _:
            return ""


def _describe_more(task: Json) -> str:
    return " ".join(text for field, value in select_fields(task) for text in field.write(value))


def _describe_result(result: Json) -> str:
    if "tasks" in result:
        return f"{len(result['tasks'])} of {result['total']}"
    if "title" not in result:
        return ""
    others = len(result.get("also") or ())
    due = f" · {render_due(result)}" if result.get("due") else ""
    return f"{result['id']} {result['title']}{due}{f' and {others} more' if others else ''}"


def _choose_output(output: str) -> str:
    return "Not done." if output.startswith(_REJECTED) else output.strip()


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _shorten(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
