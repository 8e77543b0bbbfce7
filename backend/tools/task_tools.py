"""The MCP client of the task tools: adds the user and the idempotency key to each call."""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import httpx2
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Tool
from pydantic import BaseModel, ValidationError

from backend.errors import LimitReached
from backend.ids import new_id
from backend.tools.caller_token import CallerToken, calling_for
from backend.tools.connection import KEY, REJECTION, USER, McpConnection, ToolsUnavailable, read_limit, text_of
from backend.tools.run_context import RunContext
from common.changes import Change
from common.telemetry import traces

ACTOR = "todo/actor"
BATCH = "todo/batch"
"""What the changes of a call are undone with: the run's id for an answer, the key of the call for a click."""
UNDO_BATCH = "todo/undo_batch"
OVERDUE_PART = "todo/overdue_part"
TIME_ZONE = "todo/time_zone"

PAGE_TASKS = 100
PART_TASKS = 100
"""How many overdue tasks the server moves in a call."""
_ANY_TASK: Mapping[str, Any] = {"task_id": 1}  # update_task needs one, and with `UNDO_BATCH` uses none
_READ_SECONDS, _MAX_CONNECTIONS = 5, 50
_CHANGES_SECONDS = 1.5  # how long the end of an answer waits for what it changed
_ANSWER_SECONDS = 12  # the MCP server gives up a statement after ten: one that says nothing for longer has stopped


ReadPath = Literal["batch", "batches", "changes", "counts", "done", "list", "tasks"]


class ChangeCall(Protocol):
    """A call for a change that a user makes by hand; the same change under the same `key` is made once."""

    async def __call__(self, *, user_id: str, key: str, time_zone: str | None) -> dict[str, Any]: ...


class TasksUnavailable(ToolsUnavailable):
    """The task service cannot be reached right now. What was done so far is kept; try again in a moment."""

    code = "tasks_unavailable"


class CallRejected(Exception):
    """The task service has rejected a call with this sentence; `kind` is why."""

    def __init__(self, sentence: str, kind: str = "invalid") -> None:
        super().__init__(sentence)
        self.kind = kind


class _TaskChange(BaseModel):
    task_id: int
    title: str
    change: Change


class _Batch(BaseModel):
    """What a batch has changed; `more` tells that not all is listed."""

    changes: list[_TaskChange]
    more: bool


class TaskTools(McpConnection):
    """The five task tools as the agent sees them: without `user_id`, which is added to each call from its run."""

    unavailable = TasksUnavailable

    def __init__(self, url: str, token: CallerToken | None, *, resend_seconds: float) -> None:
        super().__init__(
            "tasks",
            url,
            resend_seconds=resend_seconds,
            answer_seconds=_ANSWER_SECONDS,
            auth=token,
            http_timeout=httpx2.Timeout(_READ_SECONDS, connect=1),
            http_connections=_MAX_CONNECTIONS,
            idempotent_calls=True,  # they only read, or have an idempotency key
        )
        self._signed = token is not None

    def render_meta(self, run: RunContext) -> dict[str, Any]:
        return {BATCH: run.batch, ACTOR: "assistant", **_add_time_zone(run.time_zone)}

    def adapt_tool(self, tool: Tool) -> Tool:
        schema = dict(tool.input_schema)
        schema["properties"] = {name: spec for name, spec in schema.get("properties", {}).items() if name != "user_id"}
        schema["required"] = [name for name in schema.get("required", []) if name != "user_id"]
        return tool.model_copy(update={"input_schema": schema})

    async def problem(self) -> str | None:
        try:
            async with asyncio.timeout(1.5):
                await self.refresh()
        except (TimeoutError, ToolsUnavailable):
            shown = httpx2.URL(self.url).copy_with(userinfo=b"", query=None, fragment=None)
            return (
                f"The MCP server does not answer at {shown}: check that it runs, MCP_INTERNAL_URL, and that both "
                "services have the same MCP_URL and MCP_TOKEN_SECRET."
            )
        return None

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        meta = dict(meta or {})
        return await super().call_tool(tool_name, {**(arguments or {}), "user_id": meta[USER]}, meta)

    async def change(
        self, tool: str, arguments: Mapping[str, Any], *, user_id: str, key: str, time_zone: str | None = None
    ) -> dict[str, Any]:
        """Calls a tool for a change that a user makes by hand; returns its result.

        It is a batch of its own, named as its key. Raises `TasksUnavailable`, and `CallRejected` with the tool's
        sentence.
        """
        meta = {KEY: key, BATCH: key}
        return await self._call(tool, arguments, meta, user_id=user_id, time_zone=time_zone)

    async def undo_batch(self, batch: str, *, user_id: str, key: str, time_zone: str | None = None) -> dict[str, Any]:
        """Undoes a batch by hand; returns the tasks that it had changed, and raises as `change` does."""
        self._require_signature()
        meta = {KEY: key, BATCH: key, UNDO_BATCH: batch}
        return await self._call("update_task", _ANY_TASK, meta, user_id=user_id, time_zone=time_zone)

    async def move_overdue(self, part: int, *, user_id: str, key: str, time_zone: str | None) -> dict[str, Any]:
        """Moves `PART_TASKS` overdue tasks at most to today, in the batch `key`; raises as `undo_batch` does."""
        self._require_signature()
        meta = {KEY: f"{key}-{part}" if part else key, BATCH: key, OVERDUE_PART: str(part)}
        return await self._call("update_task", _ANY_TASK, meta, user_id=user_id, time_zone=time_zone)

    def _require_signature(self) -> None:
        if not self._signed:
            raise CallRejected(
                "This needs a signed call: give both services the same MCP_TOKEN_SECRET, and start again."
            )

    async def list_tasks(
        self,
        *,
        user_id: str,
        time_zone: str | None = None,
        cursor: str | None = None,
        limit: int = PAGE_TASKS,
        **filters: str,
    ) -> dict[str, Any]:
        """Lists a page of tasks outside of a run; raises `TasksUnavailable`, and `CallRejected` with the tool's
        sentence. `filters` are the tool's other arguments; without them all tasks are listed,
        whatever their state.
        """
        arguments = {"limit": limit, **({"cursor": cursor} if cursor else {}), **filters}
        return await self._call("list_tasks", arguments, {}, user_id=user_id, time_zone=time_zone)

    async def _call(
        self, tool: str, arguments: Mapping[str, Any], meta: dict[str, Any], *, user_id: str, time_zone: str | None
    ) -> dict[str, Any]:
        meta = {USER: user_id, ACTOR: "person", **_add_time_zone(time_zone), **meta}
        try:
            result = await self.call_tool(tool, dict(arguments), meta)
        except MCPError as error:
            raise TasksUnavailable from error
        if result.is_error or result.structured_content is None:
            raise CallRejected(text_of(result), (result.meta or {}).get(REJECTION, "invalid"))
        return result.structured_content

    async def read_changes(self, batch: str, *, user_id: str) -> dict[str, Any]:
        """Reads what a batch has changed, as `common.changes` describes it; asks once, and never raises."""
        unread = {"changes": [], "unread": True}
        if not self._signed:  # so the server knows no batches
            return unread
        try:
            async with asyncio.timeout(_CHANGES_SECONDS):
                read = _Batch.model_validate(await self.get_json("batch", user_id=user_id, id=batch))
        except (TasksUnavailable, LimitReached, TimeoutError, ValidationError):
            return unread
        return unread if read.more else read.model_dump(include={"changes"})

    async def get_json(self, path: ReadPath, *, user_id: str, **params: str | int) -> dict[str, Any]:
        """Reads from the server's HTTP routes, once, over connections of their own: polling must not delay calls.

        Raises `TasksUnavailable`, and with the server's sentence `LimitReached` and `CallRejected`.
        """
        with calling_for(user_id):
            try:
                response = await self.http.get(path, params=params, headers=traces.headers())
                if response.status_code == 429:
                    raise read_limit(response)
                if response.status_code == 400:
                    raise CallRejected(response.json()["error"])
                return response.raise_for_status().json()
            except (httpx2.HTTPError, ValueError, LookupError) as error:
                raise TasksUnavailable from error


def derive_id(kind: str, key: str | None) -> str:
    """Returns the id of a change by hand; for the same key it is the same, and does not reveal the key.

    It is stored with its user, whose id may change by `./todo user adopt`.
    """
    return f"{kind}_{hashlib.sha256(key.encode()).hexdigest()}" if key else new_id(kind)


def _add_time_zone(time_zone: str | None) -> dict[str, str]:
    return {TIME_ZONE: time_zone} if time_zone else {}
