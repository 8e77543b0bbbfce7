"""The line that users read of what an answer has changed."""

from typing import Any

import pytest

from common.changes import UNREAD, render_changes


def facts(*changes: str, **more: Any) -> dict[str, Any]:
    return {"changes": [{"task_id": 1, "title": "milk", "change": change} for change in changes], **more}


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (facts(), ""),
        (facts("moved", "added", "added"), "Added 2 · Moved 1"),
        (facts("changed", "completed"), "Completed 1 · Edited 1"),
        (facts("added", named=3), "Added 1 · Changed: 1 of the 3 named"),
        (facts(named=3), "Nothing was changed"),
        (facts(unread=True), UNREAD),
        ({"status": "COMPLETED"}, ""),
    ],
)
def test_line(of: dict[str, Any], line: str) -> None:
    assert render_changes(of) == line
