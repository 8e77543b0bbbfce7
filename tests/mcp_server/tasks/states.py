"""What is stored of tasks, to be compared."""

from typing import Any


def but_updated(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of tasks as they are comparable after an undo: in the order of their numbers, without when they changed."""
    return sorted(
        ({name: value for name, value in task.items() if name != "updated_at"} for task in tasks),
        key=lambda task: (task["user_id"], task["id"]),
    )
