from typing import Any

from fastmcp import Client


class Tools:
    """Calls of the five tools through a client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, name: str, *, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """The structured result; an AssertionError with the sentence if the call was refused."""
        result = await self.client.call_tool_mcp(name, arguments, meta=meta)
        assert not result.is_error, text(result)
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def refusal(self, name: str, *, meta: dict[str, Any] | None = None, **arguments: Any) -> str:
        """The sentence a refused call is answered with."""
        result = await self.client.call_tool_mcp(name, arguments, meta=meta)
        assert result.is_error, result.structured_content
        assert result.structured_content is None
        return text(result)

    async def titles(self, **arguments: Any) -> list[str]:
        return [task["title"] for task in (await self.call("list_tasks", **arguments))["tasks"]]


def text(result: Any) -> str:
    (block,) = result.content
    return block.text
