"""What an answer has changed in the task list: a fact for each task, and the line that users read of them.

A run's facts are `{"changes": [{"task_id": 7, "title": "Milk", "change": "added"}, ...]}`. They also have the number of
tasks that the answer `named`, if it named more than were changed, and `unread: true` with no changes, if the tool
server could not be asked.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, get_args

Change = Literal["added", "completed", "reopened", "moved", "changed", "deleted", "restored"]

UNREAD = "What was changed could not be read. Look at the task list."


def render_changes(facts: Mapping[str, Any]) -> str:
    """Renders facts as a line such as "Added 2 · Moved 1"; empty if nothing was changed."""
    if facts.get("unread"):
        return UNREAD
    counts = Counter(one["change"] for one in facts["changes"])
    parts = [f"{change.capitalize()} {counts[change]}" for change in get_args(Change) if counts[change]]
    if named := facts.get("named"):
        parts.append(f"Changed: {counts.total()} of the {named} named")
    return " · ".join(parts)
