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
CORRECTION = "Correction: nothing had been changed. Please ignore the text above."
"""What a reader gets below a text that was withdrawn, where the text cannot be taken back."""
_NAMES: dict[Change, str] = {"changed": "Edited"}


def render_changes(facts: Mapping[str, Any]) -> str:
    """Renders facts as a line such as "Added 2 · Moved 1"; empty if nothing was changed, and no more was named."""
    if facts.get("unread"):
        return UNREAD
    counts = Counter(one["change"] for one in facts.get("changes", ()))  # older servers have no facts
    if (named := facts.get("named")) and not counts:
        return "Nothing was changed"
    parts = [f"{_NAMES.get(one, one.capitalize())} {counts[one]}" for one in get_args(Change) if counts[one]]
    if named:
        parts.append(f"Changed: {counts.total()} of the {named} named")
    return " · ".join(parts)
