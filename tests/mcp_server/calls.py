from typing import Any, Literal

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp_types import Implementation


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


def client_of(
    base: str, *, mode: Literal["auto", "legacy"] = "auto", client_info: Implementation | None = None
) -> Client:
    """Without TLS: reading the root certificates takes longer than most tests."""
    return Client(StreamableHttpTransport(f"{base}/mcp", verify=False), mode=mode, client_info=client_info)


def text(result: Any) -> str:
    (block,) = result.content
    return block.text
