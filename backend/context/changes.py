"""Tells the model what the user did by hand since it was asked the last time."""

import json
from collections.abc import Mapping
from typing import Any

_MOST_TASKS = 10  # of one change
_CHANGES = {
    "completed": "The person ticked task {tasks}: it is completed.",
    "reopened": "The person unticked task {tasks}: it is open again.",
    "undone": "The person undid what was done to these tasks, which are as they were before: {tasks}.",
}


def render_change(details: Mapping[str, Any]) -> str:
    """A sentence about a change by hand, for the model."""
    tasks = details["tasks"]
    named = "; ".join(f"{task['id']}, {json.dumps(task['title'], ensure_ascii=False)}" for task in tasks[:_MOST_TASKS])
    more = f"; and {len(tasks) - _MOST_TASKS} more" if len(tasks) > _MOST_TASKS else ""
    return _CHANGES[details["change"]].format(tasks=named + more)
