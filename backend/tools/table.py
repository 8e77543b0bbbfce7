"""What is known of each tool: whether it only reads, and how its calls are shown."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Shown:
    """The lines name values of the call's arguments while it runs, of its result when it is done; None shows nothing.

    A tool that only `reads`, as its annotations say, has a page of tasks as its result. `card` says on a card what
    became of the task. One that `redraws` changes a task that widgets may show as it was before.
    """

    running: str | None = None
    done: str | None = None
    reads: bool = False
    card: str | None = None
    redraws: bool = False


TOOLS: Mapping[str, Shown] = {
    "add_task": Shown("Adding “{title}”…", "Added “{title}”", card="Added"),
    "list_tasks": Shown("Looking at your list…", "Looked at your list", reads=True),
    "complete_task": Shown("Completing task {task_id}…", "Completed “{title}”", redraws=True),
    "update_task": Shown("Changing task {task_id}…", "Changed “{title}”", card="Changed", redraws=True),
    "delete_task": Shown("Deleting task {task_id}…", "Deleted “{title}”", redraws=True),
}
READING = frozenset(name for name, shown in TOOLS.items() if shown.reads)
_UNKNOWN = Shown()


def shown(tool: str) -> Shown:
    """The row of a tool; one that is not in the table may change something, and nothing is shown of it."""
    return TOOLS.get(tool, _UNKNOWN)
