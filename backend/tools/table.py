"""One row for each tool: what its calls do, whether they need approval, and how they are shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.tools import schedule_arguments
from backend.tools.connectors.names import server_of


@dataclass(frozen=True)
class CallTexts:
    """Templates of the texts that users read about a call.

    `asked` (an approval card) and `running` have the values of its arguments, `done` those of its result; `{which}` is
    a task. Templates for several tasks have their `{count}`. A card shows `label` beside a task, and `heading` above
    several. A `final` change has no Undo. An approval card ends with the `limits` of what the tool can reach.
    """

    asked: str
    running: str
    done: str
    asked_several: str = ""
    running_several: str = ""
    done_several: str = ""
    label: str = ""
    heading: str = ""
    final: bool = False
    limits: str = ""


_FOLDER = "It can write files and run programs in its own folder, without internet access."


@dataclass(frozen=True)
class ToolRow:
    """What the backend knows of a tool. Calls of a tool without `words` are not shown.

    A tool that `reads` returns a page of tasks, or files. One that `redraws` changes tasks which cards may show
    already, and one that `deletes` removes them. Calls need approval if APPROVALS has the word `asked_with`, which
    tools have that start an `agent` or belong to another MCP server. A tool that `runs_programs` always needs it where
    nothing confines programs. One that `changes_files` needs it until the user has approved one, in a conversation that
    works in a directory of the user's. One that `asks_always` needs it whatever APPROVALS says, if its arguments are
    possible; runs of schedules do not have it. `describe` returns what its card shows in place of its arguments.
    `instead` has the words for calls whose argument has a certain value.
    """

    words: CallTexts | None = None
    reads: bool = False
    redraws: bool = False
    deletes: bool = False
    instead: Mapping[tuple[str, Any], CallTexts] = field(default_factory=dict[tuple[str, Any], CallTexts])
    agent: str | None = None
    asked_with: str | None = None
    runs_programs: bool = False
    changes_files: bool = False
    asks_always: bool = False
    is_possible: Callable[[Mapping[str, Any]], bool] | None = None
    describe: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None

    @property
    def can_change(self) -> bool:
        """Whether a call can change tasks, files or what another server holds; what agents change, their calls do."""
        return not self.reads and self.agent is None


def _change(do: str, doing: str, did: str, *, which: str = "task {task_id}") -> CallTexts:
    return CallTexts(
        f"{do} {{which}}",
        f"{doing} {which}…",
        f"{did} “{{title}}”",
        f"{do} {{count}} tasks",
        f"{doing} {{count}} tasks…",
        f"{did} {{count}} tasks",
        label=did,
        heading=f"{{count}} tasks {did.lower()}",
    )


def _agent(name: str) -> ToolRow:
    words = CallTexts(f"Let the {name} do this", f"The {name} is working…", f"The {name} is done", limits=_FOLDER)
    return ToolRow(words, agent=name, asked_with="agents")


def _work(asked: str, *, reads: bool = False, runs_programs: bool = False) -> ToolRow:
    return ToolRow(CallTexts(asked, "", ""), reads=reads, runs_programs=runs_programs, changes_files=not reads)


_COMPLETED = _change("Complete", "Completing", "Completed")
_UNDONE = CallTexts(
    "Undo the last change to {which}",
    "Undoing the last change to task {task_id}…",
    "Undid the last change to “{title}”",
    "Undo the last changes to {count} tasks",
    "Undoing the last changes to {count} tasks…",
    "Undid the last changes to {count} tasks",
    label="Undone",
    heading="Changes to {count} tasks undone",
    final=True,
)
_BY_ARGUMENT = {
    ("undo", True): _UNDONE,
    ("status", "pending"): _change("Reopen", "Reopening", "Reopened"),
    ("status", "completed"): _COMPLETED,
}

_SCHEDULE = CallTexts(
    "Do this again and again",
    "Making a schedule…",
    "Scheduled {when}",
    limits="Each time is an answer that uses your model. You are asked before what needs your approval.",
)

TOOLS: Mapping[str, ToolRow] = {
    "add_task": ToolRow(_change("Add", "Adding", "Added", which="“{title}”")),
    "list_tasks": ToolRow(CallTexts("Look at your list", "Looking at your list…", "Looked at your list"), reads=True),
    "complete_task": ToolRow(_COMPLETED, redraws=True),
    "update_task": ToolRow(_change("Change", "Changing", "Changed"), redraws=True, instead=_BY_ARGUMENT),
    "delete_task": ToolRow(_change("Delete", "Deleting", "Deleted"), redraws=True, deletes=True),
    "add_schedule": ToolRow(
        _SCHEDULE,
        asks_always=True,
        is_possible=schedule_arguments.is_possible,
        describe=schedule_arguments.describe,
    ),
    "do_with_coder": _agent("coder"),
    "do_with_researcher": _agent("researcher"),
}
OF_AGENTS: Mapping[str, ToolRow] = {
    "list_files": _work("List files", reads=True),
    "read_file": _work("Read {path}", reads=True),
    "write_file": _work("Write {path}"),
    "edit_file": _work("Change {path}"),
    "search_files": _work("Search files", reads=True, runs_programs=True),
    "run_command": _work("Run a command", runs_programs=True),
    "run_python": _work("Run Python", runs_programs=True),
    "commit": _work("Save a version of the files", runs_programs=True),
}
"""Tools that only sub-agents have; their calls are shown by `cards.agent_steps`."""
_NO = (None, False, "false", "", "null")
READING = frozenset(name for name, shown in TOOLS.items() if shown.reads)
CHANGING_TASKS = frozenset(name for name, row in TOOLS.items() if row.can_change)
_UNKNOWN = ToolRow()
_OF_ANOTHER_SERVER = ToolRow(asked_with="connectors")


def find_tool(tool: str) -> ToolRow:
    known = TOOLS.get(tool) or OF_AGENTS.get(tool)
    return known or (_UNKNOWN if server_of(tool) is None else _OF_ANOTHER_SERVER)


def find_texts(tool: str, arguments: Mapping[str, Any]) -> CallTexts | None:
    row, given = find_tool(tool), normalize_arguments(tool, arguments)
    return next((words for (name, value), words in row.instead.items() if given.get(name) == value), row.words)


def normalize_arguments(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments as the task tools read them: `undo` may be text, and is left out if false."""
    given = dict(arguments)
    if tool == "update_task" and "undo" in given:
        undo = given.pop("undo")
        if undo not in _NO:
            given["undo"] = True if undo in (True, "true") else undo
    return given


class LineValues(dict[str, str]):
    """Values of a template; one that is missing is rendered as “…”."""

    def __missing__(self, name: str) -> str:
        return "…"


def find_start_tool(agent: str) -> str:
    return next(tool for tool, row in TOOLS.items() if row.agent == agent)
