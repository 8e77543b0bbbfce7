"""What a run has changed in the task list, which is read from the tool server when it ends or waits."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence

from backend.cards.approvals import find_named_tasks
from backend.cards.current_tasks import get_changed_tasks, page_of, tasks_of
from backend.conversations.records import Entry, ToolCall
from backend.ids import new_id
from backend.tools.approval_policy import arguments_of
from backend.tools.table import CHANGING_TASKS
from backend.tools.task_tools import TaskTools
from common.named import count_named


def may_have_changed_tasks(calls: Iterable[ToolCall], unconfirmed: Collection[str]) -> bool:
    """Whether a call that can change tasks has succeeded, or is `unconfirmed` or unknown: it may have been made."""
    return any(
        call.tool in CHANGING_TASKS and (call.state in ("done", "unknown") or call.id in unconfirmed) for call in calls
    )


async def read_changes(tools: TaskTools, user_id: str, top_run_id: str) -> Entry:
    """Reads what a tree of runs has changed so far: its batch."""
    return Entry(top_run_id, new_id("chg"), "changes", details=await tools.read_changes(top_run_id, user_id=user_id))


async def add_named(changes: Entry, calls: Sequence[ToolCall], answer: str) -> None:
    """Adds how many tasks an answer names as changed to what its run has changed, if those are more.

    What a call has left as it was counts too: an answer may say that it is so.
    """
    facts = changes.details
    if not facts or facts.get("unread") or not answer:
        return
    titles = {task.id: task.title for call in calls for task in tasks_of(call)}
    reached = {task.id: task.title for call in calls for task in get_changed_tasks(call)}
    changed = {change["task_id"]: change["title"] for change in facts["changes"]}
    named = await asyncio.to_thread(  # which lets others run between two expressions
        count_named,
        answer,
        changed=[*changed.values(), *reached.values()],
        failed=[title for call in calls for title in _list_titles_of_failed(call, titles)],
        most=len({*changed, *reached}),
        has_read=any(page_of(call) is not None for call in calls),
    )
    if named is not None:
        facts["named"] = named


def _list_titles_of_failed(call: ToolCall, titles: dict[int, str]) -> Iterator[str]:
    if call.tool not in CHANGING_TASKS or call.state == "done":
        return
    arguments = arguments_of(call.arguments) or {}
    also = arguments.get("also")
    for title in (arguments.get("title"), *(also if isinstance(also, list) else ())):
        if isinstance(title, str):
            yield title
    yield from (titles[id] for id in find_named_tasks(call.arguments) if id in titles)
