"""What is stored of tasks, to be compared, and what a cursor holds."""

import json
from base64 import b64decode, urlsafe_b64encode
from typing import Any


def but_updated(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of tasks as they are comparable after an undo: in the order of their numbers, without when they changed."""
    return sorted(
        ({name: value for name, value in task.items() if name != "updated_at"} for task in tasks),
        key=lambda task: (task["user_id"], task["id"]),
    )


def position_of(cursor: str | None) -> dict[str, Any]:
    """What stands in a cursor."""
    assert cursor is not None
    return json.loads(b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_"))


def forged(position: Any) -> str:
    """A cursor of our own."""
    return urlsafe_b64encode(json.dumps(position).encode()).rstrip(b"=").decode()
