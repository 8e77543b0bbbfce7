"""A file as it would be stored, on Sunday 2026-11-22 at 10:30 in Berlin."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from mcp_server.imports import reading
from mcp_server.imports.checked import stored
from mcp_server.imports.found import Unread
from mcp_server.imports.reading import Format
from mcp_server.tasks.task import Stored
from mcp_server.tasks.zones import Now
from service.tool_server.refusals import Refusal

NOW = Now(datetime(2026, 11, 22, 9, 30, tzinfo=UTC), ZoneInfo("Europe/Berlin"))


def tasks_and_problems(text: str, format: Format) -> tuple[list[Stored], dict[str, str]]:
    """The tasks in their order, and by place why the others are none."""
    tasks: list[Stored] = []
    problems: dict[str, str] = {}
    for found in reading.parse(text, format, NOW):
        if isinstance(found, Unread):
            problems[found.place] = found.why
            continue
        try:
            tasks.append(stored(found, NOW))
        except Refusal as error:
            problems[found.place] = str(error)
    return tasks, problems


def told(task: Stored) -> dict[str, Any]:
    """What a task says beside its title."""
    fields = task.told() | dict.fromkeys(("created_at", "updated_at", "id", "title", "series"))
    fields["completed_at"] = task.completed_at and task.completed_at.isoformat()
    return {name: value for name, value in fields.items() if value not in (None, "", (), "pending")}
