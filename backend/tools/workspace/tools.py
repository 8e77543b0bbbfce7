"""The tools of the agents: files and commands in a folder of the conversation's, kept by the workspace service."""

import asyncio
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Literal

import httpx2
from agents.mcp import MCPToolMetaContext
from mcp.types import CallToolResult, TextContent

from backend.errors import BackendError
from backend.tools.caller_token import CallerToken, calling_for
from backend.tools.connection import McpConnection, ToolsUnavailable
from backend.tools.task_tools import KEY, USER
from common.tls import tls_context

logger = logging.getLogger(__name__)

FOLDER = "todo/folder"
DIRECTORY = "todo/directory"  # which is sent in the token
_NOTES, _NOTES_BYTES = ("AGENTS.md", "AGENT.md"), 65_536
_CONFINED = ("bubblewrap", "landlock", "sandbox-exec")
_UNCONFINED = "none"
_ANSWER_SECONDS = 630  # a command may run for 600
_LOOK_SECONDS = 1.5
_REMOVE_SECONDS = httpx2.Timeout(10, connect=_LOOK_SECONDS)
_TOO_MUCH, DISK_FULL = 413, 507
_FIRST_SECONDS = 10  # while the service may still be starting beside this one
_FIRST_AGAIN_SECONDS = 0.2
_AGAIN_SECONDS = (2, 30)  # between two looks: until the service is there, and then
_MISSES = 2  # in a row, after which it is taken to be gone: one alone may be a moment of much work

Mode = Literal["auto", "on", "off"]


class WorkspaceUnavailable(ToolsUnavailable):
    """The agents' workspace cannot be reached right now. What was done so far is kept; try again in a moment."""

    code = "workspace_unavailable"


class NoRoom(BackendError):
    """There is not enough space for these files. Remove some of them."""

    code, status = "no_room", 507


class WorkspaceTools(McpConnection):
    """The eight tools; whose they are, in which folder they work and the key of each call are added from its turn.

    `may_start` says whether agents can be started now, `runs_commands` whether they can run programs, and
    `is_unconfined` whether nothing confines those, as only a backend has it that is made with `unconfined`: what the
    service said when it was last asked, and nothing works once it does not answer any more.
    """

    unavailable = WorkspaceUnavailable

    def __init__(
        self,
        url: str,
        token: CallerToken,
        *,
        mode: Mode,
        unconfined: bool,
        resend_seconds: float,
        separate_agents: Collection[str] = (),
        has_owner: bool = False,
    ) -> None:
        """The `separate_agents` work in folders of their own, as they have tools of other MCP servers.

        `has_owner` tells that conversations may work in directories of the user who runs the services.
        """
        super().__init__(
            "workspace",
            url,
            resend_seconds=resend_seconds,
            answer_seconds=_ANSWER_SECONDS,
            auth=token,
            meta=_call_meta,
        )
        self._mode = mode
        self._separate_agents = frozenset(separate_agents)
        self.has_owner = has_owner
        self._unconfined = unconfined
        self.confinement: str | None = None
        self._is_there = False
        self._missed = 0  # probes in a row without a response
        self._was_there = False
        self._starting_until = 0.0
        self.http = httpx2.AsyncClient(
            base_url=url.rstrip("/").removesuffix("/mcp"),
            auth=token,
            # As many as there are: of one person's files only a few are under way, and a Stop must not wait for any.
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=30),
            timeout=httpx2.Timeout(60, connect=2),
            trust_env=False,
            verify=tls_context(),
        )

    async def connect(self) -> None:
        await super().connect()
        await self.stack.enter_async_context(self.http)
        self._starting_until = time.monotonic() + _FIRST_SECONDS
        await self.look()
        watching = asyncio.create_task(self._watch())
        self.stack.push_async_callback(_cancel_and_wait, watching)

    @property
    def is_starting(self) -> bool:
        return not self._was_there and time.monotonic() < self._starting_until

    @property
    def is_unconfined(self) -> bool:
        return self._unconfined and self.confinement == _UNCONFINED

    @property
    def runs_commands(self) -> bool:
        return self.confinement in _CONFINED or self.is_unconfined

    @property
    def may_start(self) -> bool:
        return self._is_there and (self._mode == "on" or self.confinement in _CONFINED)

    async def look(self) -> bool:
        """Asks the service what it confines commands with and notes it; returns whether it answers.

        After two misses in a row the service counts as gone.
        """
        try:
            response = await self.http.get("ready", timeout=_LOOK_SECONDS, auth=None)
            found = response.raise_for_status().json()
        except (httpx2.HTTPError, ValueError) as error:
            logger.info("the workspace does not answer: %s", type(error).__name__)
            self._missed += 1
            if self._missed >= _MISSES:
                self._is_there, self.confinement = False, None
            return False
        self.confinement = found.get("confinement") if isinstance(found, dict) else None
        self._is_there, self._was_there, self._missed = True, True, 0
        return True

    async def _watch(self) -> None:
        while True:
            known = self.confinement is not None and not self._missed
            await asyncio.sleep(_FIRST_AGAIN_SECONDS if self.is_starting else _AGAIN_SECONDS[known])
            await self.look()

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        meta = dict(meta or {})
        with calling_for(meta.pop(USER), meta.pop(DIRECTORY, None)):
            return await super().call_tool(tool_name, arguments, meta)

    def folder_of(self, conversation_id: str, agent: str) -> str:
        return folder_apart(conversation_id, agent) if agent in self._separate_agents else conversation_id

    async def stop(self, folder: str, *, user_id: str) -> None:
        """Ends the commands that run in a folder: their calls return with the output so far.

        Errors of HTTP are ignored.
        """
        with calling_for(user_id), suppress(httpx2.HTTPError):
            await self.http.post(f"stop/{folder}", timeout=_LOOK_SECONDS)

    async def give_uploads(self, folder: str, other: str, *, user_id: str) -> None:
        """Copies the files that the user uploaded to a folder, and nobody changed since, to `uploads` in another one.

        Raises `NoRoom` and `WorkspaceUnavailable`.
        """
        with calling_for(user_id):
            try:
                response = await self.http.post(f"uploads/{folder}/{other}")
                if response.status_code in (_TOO_MUCH, DISK_FULL):
                    raise NoRoom(response.json()["error"])
                response.raise_for_status()
            except (httpx2.HTTPError, ValueError, LookupError) as error:
                raise WorkspaceUnavailable from error

    async def read_notes(self, folder: str, directory: str, *, user_id: str) -> tuple[str, str] | None:
        """Reads what the user wants agents to know of a directory: the name of the file and at most 64 KiB of it."""
        with calling_for(user_id, directory):
            for name in _NOTES:
                with suppress(httpx2.HTTPError):
                    async with self.http.stream("GET", f"files/{folder}/{name}") as response:
                        if response.is_success:
                            found = b""
                            async for piece in response.aiter_bytes():
                                found += piece
                                if len(found) > _NOTES_BYTES:
                                    break
                            return name, found[:_NOTES_BYTES].decode(errors="replace")
        return None

    async def remove(self, folder: str, *, user_id: str) -> None:
        """Deletes a folder. An error is only logged: the service deletes folders that are unused for long."""
        with calling_for(user_id):
            try:
                (await self.http.delete(f"files/{folder}", timeout=_REMOVE_SECONDS)).raise_for_status()
            except httpx2.HTTPError as error:
                logger.warning("the folder of a deleted conversation may be left: %s", type(error).__name__)


def folder_apart(conversation_id: str, agent: str) -> str:
    return f"{conversation_id}.{agent}"


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def _call_meta(context: MCPToolMetaContext) -> dict[str, Any]:
    turn = context.run_context.context
    call_id = context.run_context.tool_call_id  # pyright: ignore[reportAttributeAccessIssue] - a ToolContext in calls
    return {USER: turn.user_id, DIRECTORY: turn.directory, FOLDER: turn.folder, KEY: turn.call_keys[call_id]}


async def _cancel_and_wait(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
