"""The MCP client of the workspace: files and commands in a folder of a conversation."""

import asyncio
import logging
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Literal

import httpx2

from backend.errors import BackendError
from backend.tools.caller_token import CallerToken, calling_for
from backend.tools.connection import DIRECTORY, McpConnection, ToolsUnavailable
from backend.tools.run_context import RunContext

logger = logging.getLogger(__name__)

FOLDER = "todo/folder"
_NOTES, _NOTES_BYTES = ("AGENTS.md", "AGENT.md"), 65_536
_CONFINED = ("bubblewrap", "landlock", "sandbox-exec")
_UNCONFINED = "none"
_ANSWER_SECONDS = 630  # a command may run for 600
_LOOK_SECONDS = 1.5
_TOO_MUCH, DISK_FULL = 413, 507
_FIRST_SECONDS = 10  # while the service may still be starting beside this one
_FIRST_AGAIN_SECONDS = 0.2
_AGAIN_SECONDS = (2, 30)  # between two requests: until the service answers, and then
_MISSES = 2  # in a row until the service counts as gone: a single one may be due to load

Mode = Literal["auto", "on", "off"]


class WorkspaceUnavailable(ToolsUnavailable):
    """The agents' workspace cannot be reached right now. What was done so far is kept; try again in a moment."""

    code = "workspace_unavailable"


class NoRoom(BackendError):
    """There is not enough space for these files. Remove some of them."""

    code, status = "no_room", 507


class WorkspaceTools(McpConnection):
    """The eight tools of agents; the user, the folder and the idempotency key are added to each call from its run.

    Its properties are what the service said when it was last asked; without an answer the tools are not offered.
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
            # Unlimited connections: of one user's files only a few are under way, and a Stop must not wait for any.
            http_timeout=httpx2.Timeout(60, connect=2),
        )
        self._mode = mode
        self._separate_agents = frozenset(separate_agents)
        self.has_owner = has_owner
        self._unconfined = unconfined
        self.confinement: str | None = None
        self._missed = _MISSES  # requests in a row without a response
        self._starting_until = 0.0

    async def connect(self) -> None:
        await super().connect()
        self._starting_until = time.monotonic() + _FIRST_SECONDS
        await self._look(_FIRST_SECONDS)
        self.stack.callback(asyncio.create_task(self._watch()).cancel)

    @property
    def is_starting(self) -> bool:
        return time.monotonic() < self._starting_until

    @property
    def is_unconfined(self) -> bool:
        return self._unconfined and self.confinement == _UNCONFINED

    @property
    def runs_commands(self) -> bool:
        return self.confinement in _CONFINED or self.is_unconfined

    @property
    def may_start(self) -> bool:
        return self._missed < _MISSES and (self._mode == "on" or self.confinement in _CONFINED)

    async def _look(self, seconds: float = _LOOK_SECONDS) -> None:
        """Asks the service what it confines commands with; after two misses it counts as gone."""
        try:
            response = await self.http.get("ready", timeout=httpx2.Timeout(seconds, connect=_LOOK_SECONDS), auth=None)
            found = response.raise_for_status().json()
        except (httpx2.HTTPError, ValueError) as error:
            logger.info("the workspace does not answer: %s", type(error).__name__)
            self._missed += 1
            if self._missed >= _MISSES:
                self.confinement = None
        else:
            self.confinement = found.get("confinement") if isinstance(found, dict) else None
            self._missed, self._starting_until = 0, 0.0

    async def _watch(self) -> None:
        while True:
            known = self.confinement is not None and not self._missed
            await asyncio.sleep(_FIRST_AGAIN_SECONDS if self.is_starting else _AGAIN_SECONDS[known])
            await self._look()

    def render_meta(self, run: RunContext) -> dict[str, Any]:
        return {DIRECTORY: run.directory, FOLDER: run.folder}

    def folder_of(self, conversation_id: str, agent: str) -> str:
        return get_agent_folder(conversation_id, agent) if agent in self._separate_agents else conversation_id

    async def stop(self, folder: str, *, user_id: str) -> bool:
        """Stops the folder's command; returns whether one ran, and true if the service is too slow to say so."""
        with calling_for(user_id):
            try:
                response = await self.http.post(f"stop/{folder}", timeout=_LOOK_SECONDS)
                return response.is_success and response.json()["stopped"]
            except httpx2.TimeoutException:
                return True
            except httpx2.HTTPError:
                return False

    async def give_uploads(self, folder: str, other: str, *, user_id: str) -> None:
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
                found = b""
                with suppress(httpx2.HTTPError):
                    async with self.http.stream("GET", f"files/{folder}/{name}") as response:
                        response.raise_for_status()
                        async for piece in response.aiter_bytes():
                            found += piece
                            if len(found) > _NOTES_BYTES:
                                break
                        return name, found[:_NOTES_BYTES].decode(errors="replace")
        return None


def get_agent_folder(conversation_id: str, agent: str) -> str:
    return f"{conversation_id}.{agent}"
