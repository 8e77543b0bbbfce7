from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.server.middleware import Middleware

from service.tool_server.together import Together


class Noting(Middleware):
    def __init__(self, name: str, said: list[str]) -> None:
        self._name, self._said = name, said

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        self._said.append(f"{self._name} before {context.message.name}")
        result = await call_next(context)
        self._said.append(f"{self._name} after")
        return result


async def test_the_first_is_outside() -> None:
    said: list[str] = []
    server = FastMCP("it", middleware=[Together(Noting("first", said), Noting("second", said))])

    @server.tool
    def act() -> str:
        said.append("acts")
        return "done"

    async with Client(server) as client:
        assert (await client.call_tool("act")).data == "done"
    assert said == ["first before act", "second before act", "acts", "second after", "first after"]


def test_what_does_more_than_call_tools_is_refused() -> None:
    class Listing(Middleware):
        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            return await call_next(context)

    with pytest.raises(AssertionError, match="on_list_tools"):
        Together(Listing())


def test_what_it_has_of_another_is_seen() -> None:
    class Reading(Middleware):
        async def on_read_resource(self, context: Any, call_next: Any) -> Any:
            return await call_next(context)

    class Both(Reading):
        pass

    with pytest.raises(AssertionError, match="on_read_resource"):
        Together(Both())
