"""The five tools as clients and their models see them, in the order in which they are listed."""

from typing import Any

from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from common.database import Transaction
from mcp_server import arguments as given
from mcp_server.caller import CALLER, TRANSACTION
from mcp_server.errors import UndoAlone
from mcp_server.schemas import ChangedTask, DeletedTask, TaskPage
from mcp_server.tasks import edits
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.fields import TaskPatch
from mcp_server.tasks.lists import pages
from mcp_server.tasks.lists.query import ListQuery
from mcp_server.tasks.results import Result, lean
from mcp_server.tasks.undo import undo_batch, undo_last

# Keyword-only, so that `user_id` comes first although it may be left out.


async def add_task(
    *,
    user_id: given.UserId = None,
    title: given.Title,
    description: given.Description = None,
    also: given.AlsoTitles = None,
    due: given.Due = None,
    priority: given.NewPriority = None,
    labels: given.Labels = None,
    repeat: given.Repeat = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Add a task, or several with the same details."""
    wanted = TaskPatch(description=description, due=due, priority=priority, labels=labels, repeat=repeat)
    return _render(await edits.add(tx, caller, title=title, wanted=wanted, also=also or ()))


async def list_tasks(
    *,
    user_id: given.UserId = None,
    status: given.StatusFilter = "all",
    query: given.Query = None,
    due: given.DueRange = None,
    done: given.DoneRange = None,
    label: given.Label = None,
    priority: given.PriorityFilter = None,
    order: given.OrderBy = "created",
    cursor: given.Cursor = None,
    limit: given.Limit = 50,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """List tasks, a page at a time. Also returns the user's date and time."""
    days = {"due": due, "done": done}
    wanted = {"status": status or "all", "query": query, **days, "label": label, "priority": priority}
    list_query = ListQuery.model_validate({**wanted, "order": order or "created"})
    return _render(await pages.list_page(tx, caller, list_query, cursor=cursor, limit=limit or 50))


async def complete_task(
    *,
    user_id: given.UserId = None,
    task_id: given.TaskId,
    also: given.AlsoIds = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Complete a task. If it repeats, the next one is added."""
    return _render(await edits.complete(tx, caller, _ids(task_id, also)))


async def update_task(
    *,
    user_id: given.UserId = None,
    task_id: given.TaskId,
    title: given.NewTitle = None,
    description: given.NewDescription = None,
    also: given.AlsoIds = None,
    due: given.NewDue = None,
    priority: given.NewPriority = None,
    labels: given.NewLabels = None,
    add_labels: given.MoreLabels = None,
    remove_labels: given.FewerLabels = None,
    repeat: given.NewRepeat = None,
    status: given.NewStatus = None,
    undo: given.Undo = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Change a task. What is not given stays as it is."""
    wanted = TaskPatch(title, description, due, priority, labels, add_labels, remove_labels, repeat, status)
    ids = _ids(task_id, also)
    if (undo or caller.undo_batch) and wanted.values():
        raise UndoAlone
    if caller.undo_batch:
        return _render(await undo_batch(tx, caller, caller.undo_batch))
    return _render(await undo_last(tx, caller, ids) if undo else await edits.update(tx, caller, ids, wanted))


async def delete_task(
    *,
    user_id: given.UserId = None,
    task_id: given.TaskId,
    also: given.AlsoIds = None,
    tx: Transaction = TRANSACTION,
    caller: Caller = CALLER,
) -> ToolResult:
    """Delete a task."""
    return _render(await edits.delete(tx, caller, _ids(task_id, also)))


def _ids(task_id: int, also: list[int] | None) -> list[int]:
    return [*dict.fromkeys([task_id, *(also or ())])]


def _render(result: Result) -> ToolResult:
    """All of it for programs, and for models without what says nothing."""
    return ToolResult(content=lean(result), structured_content=result)


def _hints(*, reads: bool = False, destroys: bool = False, idempotent: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=idempotent, open_world_hint=False
    )


def _tool(function: Any, title: str, result: type[BaseModel], annotations: ToolAnnotations) -> Tool:
    schema = result.model_json_schema(mode="serialization")
    tool = Tool.from_function(function, title=title, output_schema=schema, annotations=annotations)
    properties: dict[str, Any] = tool.parameters["properties"]
    arguments = {name: _published(tool.name, name, argument) for name, argument in properties.items()}
    # Without additionalProperties, which google-genai's converter rejects: an unknown argument is an error anyway.
    parameters = {"type": "object", "properties": arguments, "required": tool.parameters.get("required", [])}
    return tool.model_copy(update={"parameters": parameters})


def _published(tool: str, name: str, argument: dict[str, Any]) -> dict[str, Any]:
    """An argument's schema with the default that means "not given", and without the null that is accepted for it."""
    kinds = [kind for kind in argument.get("anyOf", ()) if kind != {"type": "null"}]
    if not kinds:
        return argument
    [kind] = kinds
    default = argument.get("default")
    if default is None:
        default = given.NOT_GIVEN.get(f"{tool}.{name}", given.NOT_GIVEN.get(name))
    if "enum" in kind and default not in kind["enum"]:
        kind = kind | {"enum": [*kind["enum"], default]}
    return kind | {"description": argument["description"], "default": default}


_TOOLS = (
    _tool(add_task, "Add a task", ChangedTask, _hints(idempotent=False)),
    _tool(list_tasks, "List tasks", TaskPage, _hints(reads=True)),
    _tool(complete_task, "Complete a task", ChangedTask, _hints()),
    _tool(update_task, "Update a task", ChangedTask, _hints(destroys=True, idempotent=False)),
    _tool(delete_task, "Delete a task", DeletedTask, _hints(destroys=True)),
)


def create_tools(*, with_user_id: bool) -> tuple[Tool, ...]:
    """The five tools; `user_id` is published only where users sign in."""
    return _TOOLS if with_user_id else tuple(map(_without_user_id, _TOOLS))


def _without_user_id(tool: Tool) -> Tool:
    properties = {name: argument for name, argument in tool.parameters["properties"].items() if name != "user_id"}
    return tool.model_copy(update={"parameters": tool.parameters | {"properties": properties}})
