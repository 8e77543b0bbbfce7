"""What a run has changed in the task list, which is read from the tool server when it ends or waits."""

from collections.abc import Collection, Iterable

from backend.conversations.records import Entry, ToolCall
from backend.ids import new_id
from backend.tools.table import CHANGING_TASKS
from backend.tools.task_tools import TaskTools


def may_have_changed_tasks(calls: Iterable[ToolCall], unconfirmed: Collection[str]) -> bool:
    """Whether a call that can change tasks has succeeded, or is `unconfirmed` or unknown: it may have been made."""
    return any(
        call.tool in CHANGING_TASKS and (call.state in ("done", "unknown") or call.id in unconfirmed) for call in calls
    )


async def read_changes(tools: TaskTools, user_id: str, top_run_id: str) -> Entry:
    """Reads what a tree of runs has changed so far: its batch."""
    return Entry(top_run_id, new_id("chg"), "changes", details=await tools.read_changes(top_run_id, user_id=user_id))
