"""The five tools, in the order in which clients list them."""

from typing import Any

from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from common.database import Transaction
from mcp_server import arguments
from mcp_server.caller import CALLER, TRANSACTION
from mcp_server.errors import UndoAlone
from mcp_server.schemas import ChangedTask, DeletedTask, TaskPage
from mcp_server.tasks import edits
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.fields import TaskPatch
from mcp_server.tasks.lists import pages
from mcp_server.tasks.lists.query import ListQuery
from mcp_server.tasks.results import Result, render_for_model, render_structured
from mcp_server.tasks.undo import undo_batch, undo_last

# Keyword-only, so that `user_id` comes first although it may be left out.


async def add_task(
    *,
    user_id: arguments.UserId = None,
    title: arguments.Title,
    description: arguments.Description = None,
    also: arguments.AlsoTitles = None,
    due: arguments.Due = None,
    priority: arguments.NewPriority = None,
    labels: arguments.Labels = None,
    repeat: arguments.Repeat = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Add a task, or several with the same details."""
    patch = TaskPatch(description=description, due=due, priority=priority, labels=labels, repeat=repeat)
    return _render(await edits.add_tasks(tx, caller, title=title, patch=patch, also=also or ()))


async def list_tasks(
    *,
    user_id: arguments.UserId = None,
    status: arguments.StatusFilter = "all",
    query: arguments.Query = None,
    due: arguments.DueRange = None,
    done: arguments.DoneRange = None,
    label: arguments.Label = None,
    priority: arguments.PriorityFilter = None,
    order: arguments.OrderBy = "created",
    cursor: arguments.Cursor = None,
    limit: arguments.Limit = 50,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """List tasks, a page at a time. Also returns the user's date and time."""
    days = {"due": due, "done": done}
    filters = {"status": status or "all", "query": query, **days, "label": label, "priority": priority}
    list_query = ListQuery.model_validate({**filters, "order": order or "created"})
    return _render(await pages.list_page(tx, caller, list_query, cursor=cursor, limit=limit or 50))


async def complete_task(
    *,
    user_id: arguments.UserId = None,
    task_id: arguments.TaskId,
    also: arguments.AlsoIds = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Complete a task. If it repeats, the next one is added."""
    return _render(await edits.complete_tasks(tx, caller, _list_ids(task_id, also)))


async def update_task(
    *,
    user_id: arguments.UserId = None,
    task_id: arguments.TaskId,
    title: arguments.NewTitle = None,
    description: arguments.NewDescription = None,
    also: arguments.AlsoIds = None,
    due: arguments.NewDue = None,
    priority: arguments.NewPriority = None,
    labels: arguments.NewLabels = None,
    add_labels: arguments.MoreLabels = None,
    remove_labels: arguments.FewerLabels = None,
    repeat: arguments.NewRepeat = None,
    status: arguments.NewStatus = None,
    undo: arguments.Undo = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Change a task. What is not given stays as it is."""
    patch = TaskPatch(title, description, due, priority, labels, add_labels, remove_labels, repeat, status)
    ids = _list_ids(task_id, also)
    if (undo or caller.undo_batch) and patch.values():
        raise UndoAlone
    if caller.undo_batch:
        return _render(await undo_batch(tx, caller, caller.undo_batch))
    return _render(await undo_last(tx, caller, ids) if undo else await edits.update_tasks(tx, caller, ids, patch))


async def delete_task(
    *,
    user_id: arguments.UserId = None,
    task_id: arguments.TaskId,
    also: arguments.AlsoIds = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Delete a task."""
    return _render(await edits.delete_tasks(tx, caller, _list_ids(task_id, also)))


def _list_ids(task_id: int, also: list[int] | None) -> list[int]:
    return [*dict.fromkeys([task_id, *(also or ())])]


def _render(result: Result) -> ToolResult:
    return ToolResult(content=render_for_model(result), structured_content=render_structured(result))


def _create_annotations(*, reads: bool = False, destroys: bool = False, idempotent: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


def _create_tool(function: Any, title: str, result: type[BaseModel], annotations: ToolAnnotations) -> Tool:
    schema = result.model_json_schema(mode="serialization")
    tool = Tool.from_function(function, title=title, output_schema=schema, annotations=annotations)
    properties: dict[str, Any] = tool.parameters["properties"]
    published = {name: _publish_argument(tool.name, name, argument) for name, argument in properties.items()}
    # Without additionalProperties, which google-genai's converter rejects: unknown arguments are errors all the same.
    parameters = {"type": "object", "properties": published, "required": tool.parameters.get("required", [])}
    return tool.model_copy(update={"parameters": parameters})


def _publish_argument(tool: str, name: str, argument: dict[str, Any]) -> dict[str, Any]:
    """Returns an argument's schema with the default that means "not given", and without null."""
    kinds = [kind for kind in argument.get("anyOf", ()) if kind != {"type": "null"}]
    if not kinds:
        return argument
    [kind] = kinds
    default = argument.get("default")
    if default is None:
        default = arguments.NOT_GIVEN.get(f"{tool}.{name}", arguments.NOT_GIVEN.get(name))
    if "enum" in kind and default not in kind["enum"]:
        kind = kind | {"enum": [*kind["enum"], default]}
    return kind | {"description": argument["description"], "default": default}


_TOOLS = (
    _create_tool(add_task, "Add a task", ChangedTask, _create_annotations(idempotent=False)),
    _create_tool(list_tasks, "List tasks", TaskPage, _create_annotations(reads=True)),
    _create_tool(complete_task, "Complete a task", ChangedTask, _create_annotations()),
    _create_tool(update_task, "Update a task", ChangedTask, _create_annotations(destroys=True, idempotent=False)),
    _create_tool(delete_task, "Delete a task", DeletedTask, _create_annotations(destroys=True)),
)


def create_tools(*, with_user_id: bool) -> tuple[Tool, ...]:
    return _TOOLS if with_user_id else tuple(map(_remove_user_id, _TOOLS))


def _remove_user_id(tool: Tool) -> Tool:
    properties = {name: argument for name, argument in tool.parameters["properties"].items() if name != "user_id"}
    return tool.model_copy(update={"parameters": tool.parameters | {"properties": properties}})
