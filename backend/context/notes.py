"""Renders notes for the model: what users changed by hand, and what answers of other branches have done."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from backend.conversations.records import Entry, ToolCall
from backend.tools.table import READING

_MOST_TASKS = 10  # of one change
_CHANGES = {
    "completed": "The person ticked task {tasks}: it is completed.",
    "reopened": "The person unticked task {tasks}: it is open again.",
    "undone": "The person undid what was done to these tasks, which are as they were before: {tasks}.",
}
_REASONS = {
    "retry": "The person asked for their last message to be answered again. An attempt that is not shown any more had",
    "edit": "The person changed this message. What followed it before is not shown any more, but the tasks are as that "
    "left them: it had",
    "branch": "The person looks at another version of this conversation. The tasks are the same in all of them. "
    "Versions that are not shown had",
}
_CALLS = 50
_CHARS = 200  # of a call, and of its outcome


def render_change(details: Mapping[str, Any]) -> str:
    tasks = details["tasks"]
    named = "; ".join(f"{task['id']}, {json.dumps(task['title'], ensure_ascii=False)}" for task in tasks[:_MOST_TASKS])
    more = f"; and {len(tasks) - _MOST_TASKS} more" if len(tasks) > _MOST_TASKS else ""
    return _CHANGES[details["change"]].format(tasks=named + more)


def render_branch_note(
    entry: Entry, noted_calls: Mapping[tuple[str, str], ToolCall], output_of: Callable[[ToolCall], str]
) -> str | None:
    """Renders what other branches have done, for the model: the task list has no branches.

    None if no call has changed anything. The same call of several attempts was made once, and is listed once.
    """
    details = entry.details or {}
    made: dict[str, ToolCall] = {}
    for named in details.get("calls", ()):
        call = noted_calls.get((named["run_id"], named["id"]))
        if call is not None and call.tool not in READING:
            known = made.get(call.idempotency_key)
            if known is None or call.output is not None:
                made[call.idempotency_key] = call
    if not made:
        return None
    lines = [
        f"- {_clip(f'{call.tool}({call.arguments})')} → {_clip(output_of(call))}"
        for call in list(made.values())[-_CALLS:]
    ]
    listed = "\n".join(lines)
    return f"{_REASONS[details['reason']]} made these calls already:\n{listed}\nDo not repeat what has been done: " + (
        "check what is there."
    )


def _clip(text: str) -> str:
    return text if len(text) <= _CHARS else text[:_CHARS] + "…"
