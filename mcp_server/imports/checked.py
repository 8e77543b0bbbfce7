"""A task of a file as it is stored, held to what the tools hold their arguments to, in their sentences."""

from typing import Any

from pydantic import BaseModel, ValidationError

from common.clock import to_utc
from common.tool_server.refusals import ArgumentsInvalid
from mcp_server import arguments as given
from mcp_server.imports.found import Found
from mcp_server.tasks.fields import Wanted, with_fields
from mcp_server.tasks.task import StoredTask
from mcp_server.tasks.zones import Now


class _Arguments(BaseModel):
    title: given.Title
    description: given.Description = None
    due: given.Due = None
    priority: given.NewPriority = None
    labels: given.Labels = None
    repeat: given.Repeat = None


def stored(found: Found, now: Now) -> StoredTask:
    """The task, still without an id of its own; raises the `Refusal` that `add_task` would answer with."""
    checked = _checked(found)
    wanted = Wanted(
        description=checked.description,
        due=checked.due,
        priority=checked.priority,
        labels=checked.labels,
        repeat=checked.repeat,
    )
    task = with_fields(StoredTask.new(checked.title, now.instant), wanted, now)
    moments: dict[str, Any] = {"created_at": to_utc(found.created_at or found.completed_at or now.instant)}
    moments["updated_at"] = to_utc(found.updated_at or now.instant)
    if found.completed:
        moments |= {"status": "completed", "completed_at": to_utc(found.completed_at or now.instant)}
    return task.model_copy(update=moments)


def _checked(found: Found) -> _Arguments:
    try:
        return _Arguments.model_validate({name: getattr(found, name) for name in _Arguments.model_fields})
    except ValidationError as error:
        names = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors(include_input=False))
        problems = "; ".join(f"{name} must be {given.RULES[name]}" for name in names)
        raise ArgumentsInvalid(problems=problems) from None
