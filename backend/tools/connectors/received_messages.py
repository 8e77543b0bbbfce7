"""Checks the messages of other MCP servers before the SDK makes objects of them, which takes longer than to parse."""

from contextvars import Context
from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, JSONRPCResponse

from backend.tools.connectors.read_limit import ReadLimit, TooMuchSent
from backend.tools.connectors.sound_parts import repair_result

MAX_TOOLS = 500
_MOST = {"tools": MAX_TOOLS, "content": 500, "inputRequests": 10}
_UNREAD = ("icons", "annotations", "execution", "_meta")  # of a tool, a part of a result, and a server
_SAID = {
    "tools": f"lists more than {MAX_TOOLS} tools",
    "content": "sent a result of more than 500 parts",
    "inputRequests": "asked for more than can be answered",
}

Item = SessionMessage | Exception


class CheckedStream:
    """Messages of a server, each checked when it is read."""

    def __init__(self, messages: Any, limit: ReadLimit) -> None:
        self._messages, self._limit = messages, limit

    @property
    def last_context(self) -> Context | None:
        """The context of the request that a message answers, which the SDK takes up if the stream has one."""
        return getattr(self._messages, "last_context", None)

    async def receive(self) -> Item:
        return self._check(await self._messages.receive())

    async def aclose(self) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return self._check(await self._messages.__anext__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()

    def _check(self, item: Item) -> Item:
        if not isinstance(item, Exception):
            try:
                _check_message(item.message)
            except TooMuchSent as error:
                self._limit.fail(error)
        return item


def _check_message(message: Any) -> None:
    """Removes the parts of a message that are invalid or not used; raises `TooMuchSent` for too many parts."""
    if isinstance(message, JSONRPCRequest):
        message.params = None  # whatever a server asks is rejected
    if not isinstance(message, JSONRPCResponse):
        return
    result = message.result
    for name, most in _MOST.items():
        if isinstance(parts := result.get(name), list | dict):
            if len(parts) > most:
                raise TooMuchSent(_SAID[name])
            if isinstance(parts, list):
                result[name] = [_without_unread(part) for part in parts]
    repair_result(result)
    if "serverInfo" in result:
        result["serverInfo"] = _without_unread(result["serverInfo"])


def _without_unread(part: Any) -> Any:
    return {name: value for name, value in part.items() if name not in _UNREAD} if isinstance(part, dict) else part
