"""Renders calls of sub-agents as steps for the user: a line while a call runs and when it is done, and details."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from backend.cards.widget import Json
from backend.conversations.records import ToolCall
from backend.tools.approval_policy import arguments_of
from backend.tools.connectors.names import get_display_name
from backend.tools.table import LineValues
from common.text import remove_invisible

_MAX_LINE_LENGTH = 160  # characters
_MAX_READ = 2_000  # characters, of which some cannot be seen
_MAX_OUTPUT_LENGTH = 2_000  # characters: of a longer output the end is shown
_MAX_DIFF_LINES = 8
_MAX_LINKS = 20  # to files of a command
_TICKS = re.compile("`+")


@dataclass(frozen=True)
class _StepTexts:
    """`below` renders what is shown below the line, of the call's arguments, its details once it has answered, and the
    address of the folder.
    """

    running: str
    done: str
    icon: str
    failed: str | None = None
    below: Callable[[Json, Json | None, str], str] = lambda given, details, folder_url: ""


def _render_output(found: Json, folder_url: str) -> str:
    code, seconds = found.get("exit_code"), found.get("seconds")
    head = "Exit code unknown" if code is None else f"Exit code {code}"
    head += ", stopped at the time limit" if found.get("timed_out") else ""
    head += f", {seconds:.1f} s" if isinstance(seconds, int | float) else ""
    wrote = "\n".join(str(found[name]).rstrip("\n") for name in ("stdout", "stderr") if found.get(name))
    cut = "…" + wrote[-_MAX_OUTPUT_LENGTH:] if len(wrote) > _MAX_OUTPUT_LENGTH else wrote
    links = [_render_link(folder_url, str(file["path"]), file["bytes"]) for file in found.get("files", ())[:_MAX_LINKS]]
    return "\n\n".join([head, *links, *([_fence(cut)] if cut else [])])


def _render_program(given: Json, details: Json | None, folder_url: str) -> str:
    code = str(given.get("code") or given.get("command") or "")
    shown = _fence(code[:_MAX_OUTPUT_LENGTH]) + "\n\n" if "\n" in code or len(code) > _MAX_LINE_LENGTH else ""
    return shown + (_render_output(details, folder_url) if details is not None else "")


def _render_link(folder_url: str, path: str, size: Any) -> str:
    sized = f" ({size:,} bytes)" if isinstance(size, int) else ""
    label = re.sub(r"([\\\[\]*_`<>])", r"\\\1", " ".join(remove_invisible(path).split()))
    return f"[Open {label}]({folder_url}/{quote(_normalize_path(path))}){sized}"


def _render_file(given: Json, details: Json | None, folder_url: str) -> str:
    if details is None or not details.get("ok", True):
        return ""
    link = _render_link(folder_url, str(given.get("path") or ""), details.get("bytes"))
    lines = str(details.get("diff") or "").split("\n")[2:]  # without the names of the two versions
    changed = [line[:_MAX_LINE_LENGTH] for line in lines if line.startswith(("+", "-"))]
    shown = [*map(str, details.get("notes") or ()), *changed[:_MAX_DIFF_LINES]]
    if not shown or details.get("created"):
        return link
    more = [f"… {len(changed) - _MAX_DIFF_LINES} more lines"] if len(changed) > _MAX_DIFF_LINES else []
    return f"{link}\n\n{_fence(chr(10).join([*shown, *more]))}"


_TOOLS: Mapping[str, _StepTexts] = {
    "list_files": _StepTexts("Listing files…", "Listed the files", "document"),
    "read_file": _StepTexts("Reading {path}…", "Read {path}", "document"),
    "search_files": _StepTexts("Searching for {pattern}…", "Searched for {pattern}", "search"),
    "write_file": _StepTexts("Writing {path}…", "Wrote {path}", "document", below=_render_file),
    "edit_file": _StepTexts("Changing {path}…", "Changed {path}", "document", below=_render_file),
    "run_command": _StepTexts("Running {command}…", "Ran {command}", "square-code", below=_render_program),
    "run_python": _StepTexts("Running Python…", "Ran Python", "square-code", below=_render_program),
    "commit": _StepTexts("Saving a version…", "Saved a version: {message}", "check"),
    "list_tasks": _StepTexts("Looking at the list…", "Looked at the list", "search"),
}
_ADDING = _StepTexts("Adding to {path}…", "Added to {path}", "document", below=_render_file)
_WRITING = frozenset({"write_file", "edit_file"})
_WHY_UNFINISHED = {"rejected": "refused", "unknown": "stopped"}


def list_written_files(tool: str, details: Json | None) -> dict[str, int | None]:
    found = details or {}
    if tool not in _WRITING:
        return {str(file["path"]): file["bytes"] for file in found.get("files", ())}
    is_written = found.get("ok", True) and "path" in found
    return {_normalize_path(str(found["path"])): found.get("bytes")} if is_written else {}


def _normalize_path(path: str) -> str:
    return "/".join(name for name in path.split("/") if name not in ("", "."))


def render_step(call: ToolCall, folder_url: str = "") -> Json:
    given, details, state = arguments_of(call.arguments) or {}, None, "failed"
    texts = _find_texts(call.tool, given)
    doing = texts.running.removesuffix("…")
    match call.state:
        case "requested" | "awaiting_approval" | "approved":
            title, state = texts.running, "none"
        case "running":
            title, state = texts.running, "running"
        case "done" | "failed":
            details = call.details or {}
            if details.get("ok", call.state == "done" or call.details is not None):
                title, state = texts.done, "done"
            else:
                title = texts.failed or f"{doing} failed"
        case _:
            why = _WHY_UNFINISHED.get(call.state, "not made")
            title = f"{doing}: {'cannot be shown whole' if call.reason == 'not_shown' else why}"
    if details is not None and state == "failed":
        below = _fence((call.output or "")[:_MAX_OUTPUT_LENGTH])
    else:
        below = texts.below(given, details, folder_url)
    return {
        "title": title.format_map(
            LineValues({name: _line(value) for name, value in given.items() if f"{{{name}}}" in title})
        ),
        "content": below,
        "icon": "info" if state == "failed" else texts.icon,
        "state": state,
    }


def _find_texts(tool: str, given: Mapping[str, Any]) -> _StepTexts:
    if tool == "write_file" and given.get("append") is True:
        return _ADDING
    name = get_display_name(tool).replace("{", "").replace("}", "")
    return _TOOLS.get(tool) or _StepTexts(f"Using {name}…", f"Used {name}", "agent", failed=f"Could not use {name}")


def _line(value: Any) -> str:
    """Renders the beginning of a value, which may have hundreds of thousands of characters."""
    written = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(remove_invisible(written[:_MAX_READ]).split())
    return text if len(text) <= _MAX_LINE_LENGTH else text[:_MAX_LINE_LENGTH] + "…"


def _fence(text: str) -> str:
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{ticks}\n{text}\n{ticks}"
