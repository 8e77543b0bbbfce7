"""Renders calls of sub-agents as steps for the user: a line while a call runs and when it is done, and details."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from backend.tools.approval_policy import arguments_of
from backend.tools.connectors.names import for_people
from backend.tools.table import LineValues
from common.text import remove_invisible

Json = dict[str, Any]
_LINE = 160  # characters
_OUTPUT = 2_000  # characters: of a longer output the end is shown
_DIFF = 8  # lines
_LINKS = 20  # files of a command
_TICKS = re.compile("`+")


@dataclass(frozen=True)
class Called:
    """A call, and where its person opens files; `details` are there once it has answered."""

    given: Mapping[str, Any]
    folder_url: str
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _StepTexts:
    running: str
    done: str
    icon: str
    failed: str | None = None
    below: Callable[[Called], str] = lambda called: ""


def _output(called: Called) -> str:
    found = called.details or {}
    code, seconds = found.get("exit_code"), found.get("seconds")
    head = "Exit code unknown" if code is None else f"Exit code {code}"
    head += ", stopped at the time limit" if found.get("timed_out") else ""
    head += f", {seconds:.1f} s" if isinstance(seconds, int | float) else ""
    wrote = "\n".join(str(found[name]).rstrip("\n") for name in ("stdout", "stderr") if found.get(name))
    cut = "…" + wrote[-_OUTPUT:] if len(wrote) > _OUTPUT else wrote
    links = [_link(called, str(file["path"]), file["bytes"]) for file in found.get("files", ())[:_LINKS]]
    return "\n\n".join([head, *links, *([_fenced(cut)] if cut else [])])


def _ran(called: Called) -> str:
    code = str(called.given.get("code") or called.given.get("command") or "")
    shown = _fenced(code[:_OUTPUT]) + "\n\n" if "\n" in code or len(code) > _LINE else ""
    return shown + (_output(called) if called.details is not None else "")


def _link(called: Called, path: str, size: Any) -> str:
    sized = f" ({size:,} bytes)" if isinstance(size, int) else ""
    label = re.sub(r"([\\\[\]*_`<>])", r"\\\1", " ".join(remove_invisible(path).split()))
    return f"[Open {label}]({called.folder_url}/{quote(_normalize_path(path))}){sized}"


def _file(called: Called) -> str:
    found, path = called.details or {}, str(called.given.get("path") or "")
    if not found.get("ok", True) or called.details is None:
        return ""
    link = _link(called, path, found.get("bytes"))
    lines = [line for line in str(found.get("diff") or "").splitlines() if not line.startswith(("---", "+++", "@@"))]
    changed = [line[:_LINE] for line in lines if line.startswith(("+", "-"))]
    if not changed or found.get("created"):
        return link
    more = f"\n… {len(changed) - _DIFF} more lines" if len(changed) > _DIFF else ""
    return f"{link}\n\n{_fenced(chr(10).join(changed[:_DIFF]) + more)}"


_TOOLS: Mapping[str, _StepTexts] = {
    "list_files": _StepTexts("Listing files…", "Listed the files", "document"),
    "read_file": _StepTexts("Reading {path}…", "Read {path}", "document"),
    "search_files": _StepTexts("Searching for {pattern}…", "Searched for {pattern}", "search"),
    "write_file": _StepTexts("Writing {path}…", "Wrote {path}", "document", below=_file),
    "edit_file": _StepTexts("Changing {path}…", "Changed {path}", "document", below=_file),
    "run_command": _StepTexts("Running {command}…", "Ran {command}", "square-code", below=_ran),
    "run_python": _StepTexts("Running Python…", "Ran Python", "square-code", below=_ran),
    "commit": _StepTexts("Saving a version…", "Saved a version: {message}", "check"),
    "list_tasks": _StepTexts("Looking at the list…", "Looked at the list", "search"),
}
_ADDING = _StepTexts("Adding to {path}…", "Added to {path}", "document", below=_file)
_WRITING = frozenset({"write_file", "edit_file"})
STOPPED = "stopped"
"""Why a call that had begun was not carried out to its end."""


def written_files(tool: str, details: Json | None) -> dict[str, int | None]:
    found = details or {}
    if tool in _WRITING:
        return (
            {_normalize_path(str(found["path"])): found.get("bytes")}
            if found.get("ok", True) and "path" in found
            else {}
        )
    return {str(file["path"]): file["bytes"] for file in found.get("files", ())}


def _normalize_path(path: str) -> str:
    return "/".join(name for name in path.split("/") if name not in ("", "."))


def render_running(tool: str, arguments: str, folder_url: str) -> Json:
    called = Called(arguments_of(arguments) or {}, folder_url)
    row = _row(tool, called)
    return _step(row.running, called, row, state="running")


def render_done(tool: str, arguments: str, folder_url: str, *, text: str, details: Json | None) -> Json:
    called = Called(arguments_of(arguments) or {}, folder_url, details or {})
    row = _row(tool, called)
    if not (details or {}).get("ok", True):
        title = row.failed or f"{row.running.removesuffix('…')} failed"
        return _step(title, called, row, state="failed") | {"content": _fenced(text[:_OUTPUT])}
    return _step(row.done, called, row, state="done")


def render_unfinished(tool: str, arguments: str, folder_url: str, *, why: str) -> Json:
    """Renders a call that was not made, or not to its end, as a step; `why` ends its line."""
    called = Called(arguments_of(arguments) or {}, folder_url)
    row = _row(tool, called)
    return _step(f"{row.running.removesuffix('…')}: {why}", called, row, state="failed")


def render_text(text: str) -> Json:
    return {"title": "", "content": text, "icon": None, "state": "none"}


def _step(template: str, called: Called, row: _StepTexts, *, state: str) -> Json:
    values = LineValues({name: _line(value) for name, value in called.given.items()})
    icon = "info" if state == "failed" else row.icon
    return {"title": template.format_map(values), "content": row.below(called), "icon": icon, "state": state}


def _row(tool: str, called: Called) -> _StepTexts:
    if tool == "write_file" and called.given.get("append") is True:
        return _ADDING
    return _TOOLS.get(tool) or _unknown(tool)


def _unknown(tool: str) -> _StepTexts:
    name = for_people(tool).replace("{", "").replace("}", "")
    return _StepTexts(f"Using {name}…", f"Used {name}", "agent", failed=f"Could not use {name}")


def _line(value: Any) -> str:
    text = " ".join(remove_invisible(value if isinstance(value, str) else json.dumps(value)).split())
    return text if len(text) <= _LINE else text[:_LINE] + "…"


def _fenced(text: str) -> str:
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{ticks}\n{text}\n{ticks}"
