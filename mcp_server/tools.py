"""The five tools, in the order in which clients list them."""

import asyncio
from typing import Any, get_type_hints

from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from common.database import Transaction
from mcp_server import arguments
from mcp_server.arguments import Argument, list_arguments
from mcp_server.caller import CALLER, LIST_TRANSACTION, TRANSACTION
from mcp_server.errors import UndoAlone
from mcp_server.schemas import ChangedTask, DeletedTask, TaskPage
from mcp_server.tasks import edits, fields
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
    title: fields.AddTitle,
    description: fields.AddDescription = None,
    also: arguments.AlsoTitles = None,
    due: fields.AddDue = None,
    priority: fields.AddPriority = None,
    labels: fields.AddLabels = None,
    repeat: fields.AddRepeat = None,
    remind: fields.AddRemind = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Add a task, or several with the same details."""
    patch = TaskPatch(description=description, due=due, priority=priority, labels=labels, repeat=repeat, remind=remind)
    return await _render(await edits.add_tasks(tx, caller, title=title, patch=patch, also=also or ()))


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
    tx: Transaction = LIST_TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """List tasks, a page at a time. Also returns the user's date and time."""
    days = {"due": due, "done": done}
    filters = {"status": status or "all", "query": query, **days, "label": label, "priority": priority}
    list_query = ListQuery.model_validate({**filters, "order": order or "created"})
    return await _render(await pages.list_page(tx, caller, list_query, cursor=cursor, limit=limit or 50))


async def complete_task(
    *,
    user_id: arguments.UserId = None,
    task_id: arguments.TaskId,
    also: arguments.AlsoIds = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Complete a task. If it repeats, the next one is added."""
    return await _render(await edits.complete_tasks(tx, caller, _list_ids(task_id, also)))


async def update_task(
    *,
    user_id: arguments.UserId = None,
    task_id: arguments.TaskId,
    title: fields.UpdateTitle = None,
    description: fields.UpdateDescription = None,
    also: arguments.AlsoIds = None,
    due: fields.UpdateDue = None,
    priority: fields.UpdatePriority = None,
    labels: fields.UpdateLabels = None,
    add_labels: fields.MoreLabels = None,
    remove_labels: fields.FewerLabels = None,
    repeat: fields.UpdateRepeat = None,
    remind: fields.UpdateRemind = None,
    status: fields.UpdateStatus = None,
    undo: arguments.Undo = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Change a task. What is not given stays as it is."""
    patch = TaskPatch(
        title=title,
        description=description,
        due=due,
        priority=priority,
        labels=labels,
        add_labels=add_labels,
        remove_labels=remove_labels,
        repeat=repeat,
        remind=remind,
        status=status,
    )
    ids = _list_ids(task_id, also)
    if (undo or caller.undo_batch or caller.overdue_part) and patch:
        raise UndoAlone
    if caller.undo_batch:
        return await _render(await undo_batch(tx, caller, caller.undo_batch))
    if caller.overdue_part:
        return await _render(await edits.move_overdue(tx, caller, caller.overdue_part))
    return await _render(await undo_last(tx, caller, ids) if undo else await edits.update_tasks(tx, caller, ids, patch))


async def delete_task(
    *,
    user_id: arguments.UserId = None,
    task_id: arguments.TaskId,
    also: arguments.AlsoIds = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Delete a task."""
    return await _render(await edits.delete_tasks(tx, caller, _list_ids(task_id, also)))


def _list_ids(task_id: int, also: list[int] | None) -> list[int]:
    return [*dict.fromkeys([task_id, *(also or ())])]


async def _render(result: Result) -> ToolResult:
    """Renders a result, which may have 100 tasks of 12 kB; others are served before each step that reads all of it."""
    await asyncio.sleep(0)
    structured = render_structured(result)
    await asyncio.sleep(0)
    content = render_for_model(result)
    await asyncio.sleep(0)
    return ToolResult(content=content, structured_content=structured)


def _create_annotations(*, reads: bool = False, destroys: bool = False, idempotent: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


def _create_tool(function: Any, title: str, result: type[BaseModel], annotations: ToolAnnotations) -> Tool:
    schema = result.model_json_schema(mode="serialization")
    tool = Tool.from_function(function, title=title, output_schema=schema, annotations=annotations)
    return tool.model_copy(update={"parameters": publish_parameters(function, tool.parameters)})


def publish_parameters(function: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a tool's arguments as all known clients accept it."""
    given = _list_arguments(function)
    properties = {name: _publish_argument(argument, given[name]) for name, argument in schema["properties"].items()}
    # Without additionalProperties, which google-genai's converter rejects: unknown arguments are errors all the same.
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}


def _publish_argument(schema: dict[str, Any], argument: Argument) -> dict[str, Any]:
    """Returns an argument's schema with the default that means "not given", and without null.

    Clients that must send every argument (OpenAI's strict mode) send this default. It is not null, because some clients
    reject `anyOf` and null in a schema, and never an empty text beside an `enum`, which Gemini rejects.
    """
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if not kinds:
        return schema
    [kind] = kinds
    default = schema.get("default")
    if default is None:
        default = argument.not_given if "enum" in kind else _NOT_GIVEN[kind["type"]]
    if "enum" in kind and default not in kind["enum"]:
        kind = kind | {"enum": [*kind["enum"], default]}
    return kind | {"description": schema["description"], "default": default}


def _list_arguments(function: Any) -> dict[str, Argument]:
    return list_arguments(get_type_hints(function, include_extras=True))


_NOT_GIVEN = {"string": "", "array": [], "boolean": False}
_FUNCTIONS = (add_task, list_tasks, complete_task, update_task, delete_task)
RULES = {
    f"{function.__name__}.{name}": argument.rule
    for function in _FUNCTIONS
    for name, argument in _list_arguments(function).items()
}
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
