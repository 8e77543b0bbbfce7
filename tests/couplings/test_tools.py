"""The Agents SDK and the MCP client, as `agents` and `tools` use them."""

from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    ItemHelpers,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    Runner,
    Tool,
    ToolsToFinalOutputResult,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from mcp.client import Client
from mcp.types import CallToolResult
from openai.types.responses import ResponseFunctionToolCall

from backend.agents.assistant import create_assistant
from backend.tools.connection import PROTOCOL, Connection, ToolsUnavailable
from backend.turn.delegated.working import _apart
from backend.turn.lifecycle.endings import explain
from tests.conftest import find_free_port
from tests.couplings.kettle import attached, kettle
from tests.serving import serve

PLAIN = RunConfig(tracing_disabled=True)


def boiling() -> ScriptedModel:
    return ScriptedModel([[function_call("boil", {"cups": 1}, call_id="call_7")], [assistant_message("tea")]])


async def tool_of_each_request(agent: Agent[Any]) -> list[Tool]:
    model = boiling()
    await Runner.run(agent, "tea", run_config=RunConfig(model=model, tracing_disabled=True))
    return [tool for call in model.calls for tool in call.tools]


async def test_an_agent_is_asked_for_its_mcp_tools_before_each_request() -> None:
    """By `get_mcp_tools`, which the SDK itself makes anew each time and `_Assistant` once for each list."""
    async with attached(kettle()) as connection:
        first, second = await tool_of_each_request(Agent("plain", mcp_servers=[connection]))
        assert first is not second, "the SDK keeps them itself: `_Assistant` need not"
        assistant = create_assistant(boiling(), ModelSettings(), [connection])
        first, second = await tool_of_each_request(assistant)
        assert first is second
        await connection.refresh()
        assert (await tool_of_each_request(assistant))[0] is not first


async def test_what_goes_with_a_call_is_made_from_the_context_of_that_call() -> None:
    """`context.run_context` is the call's ToolContext, whose type only says RunContextWrapper."""
    numbers = {"call_7": 77}
    async with attached(kettle(), meta=lambda call: {"number": numbers[call.run_context.tool_call_id]}) as connection:  # pyright: ignore[reportAttributeAccessIssue]
        result = await Runner.run(Agent("a", model=boiling(), mcp_servers=[connection]), "tea", run_config=PLAIN)
    assert '"seen":77' in str(result.to_input_list())


async def test_what_the_function_for_failures_raises_ends_the_run() -> None:
    port = find_free_port()
    connection = Connection("kettle", f"http://127.0.0.1:{port}/mcp", resend_seconds=0.1, answer_seconds=5)
    await connection.connect()
    async with serve(kettle().http_app(stateless_http=True), port=port):
        await connection.list_tools()
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the SDK wraps it as it likes
        await Runner.run(Agent("a", model=boiling(), mcp_servers=[connection]), "tea", run_config=PLAIN)
    await connection.cleanup()
    assert explain(raised.value).message.startswith(str(ToolsUnavailable()))


async def test_one_error_of_http_ends_an_mcp_session() -> None:
    """Hence `ResendingClient`, which answers instead of raising, and through whose `send` every request goes."""
    with pytest.raises(ExceptionGroup):
        async with Client(f"http://127.0.0.1:{find_free_port()}/mcp", mode=PROTOCOL) as client:
            await client.list_tools()


async def test_a_result_is_checked_against_its_schema_by_the_session() -> None:
    async with (
        serve(kettle().http_app(stateless_http=True)) as url,
        Client(f"{url}/mcp", mode=PROTOCOL) as client,
    ):
        await client.session.validate_tool_result("boil", CallToolResult(content=[], structured_content={"degrees": 1}))
        with pytest.raises(RuntimeError):
            await client.session.validate_tool_result("boil", CallToolResult(content=[], structured_content={"a": "b"}))


async def test_a_call_that_needs_approval_ends_the_stream_and_the_others_are_made() -> None:
    """And so does one whose arguments cannot be read, whatever is said of it: `Answers` makes that one itself."""
    asked: list[str] = []

    async def needed(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        asked.append(call_id)
        return call_id == "call_2"

    @function_tool
    async def boil(cups: int) -> str:
        return f"{cups} boiled"

    boil.needs_approval = needed
    step = [
        function_call("boil", {"cups": 1}, call_id="call_1"),
        function_call("boil", {"cups": 2}, call_id="call_2"),
        ResponseFunctionToolCall(type="function_call", name="boil", arguments="no json", call_id="call_3"),
    ]
    run = Runner.run_streamed(Agent("a", model=ScriptedModel([step]), tools=[boil]), "tea", run_config=PLAIN)
    async for _ in run.stream_events():
        pass
    assert {*asked} == {"call_1", "call_2"}
    outputs: list[Any] = [item.to_input_item() for item in run.new_items if item.type == "tool_call_output_item"]
    assert [output["call_id"] for output in outputs] == ["call_1"]
    stopped: list[Any] = [item.raw_item for item in run.interruptions]
    assert {call.call_id for call in stopped} == {"call_2", "call_3"}


async def test_a_call_is_made_outside_of_a_run() -> None:
    """As `AgentRuns` makes one that was approved: what goes with it is made from its own context."""
    numbers = {"call_7": 77}
    async with attached(kettle(), meta=lambda call: {"number": numbers[call.run_context.tool_call_id]}) as connection:  # pyright: ignore[reportAttributeAccessIssue]
        agent = Agent[Any]("a", mcp_servers=[connection])
        context = RunContextWrapper[Any](context=None)
        [tool] = await agent.get_all_tools(context)
        assert isinstance(tool, FunctionTool)
        call = ResponseFunctionToolCall(type="function_call", name="boil", arguments='{"cups": 1}', call_id="call_7")
        result = await tool.on_invoke_tool(
            ToolContext.from_agent_context(context, "call_7", call, agent), call.arguments
        )
    assert '"seen":77' in str(ItemHelpers.tool_call_output_item(call, result))


async def test_an_agent_that_was_left_in_the_middle_is_started_anew_by_another_call() -> None:
    """As `working.lead` does: the SDK finds one by its call. And a run ends with a step where it is told to."""
    heard: list[str] = []

    @function_tool
    async def boil() -> str:
        return "hot"

    async def needed(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return True

    boil.needs_approval = needed
    inner = ScriptedModel([[function_call("boil", {}, call_id="call_1")], [assistant_message("tea")]])
    tool = Agent[Any]("inner", model=inner, tools=[boil]).as_tool("make", "Makes tea.", run_config=PLAIN)
    invoke = tool.on_invoke_tool

    async def twice(context: ToolContext[Any], arguments: str) -> str:
        heard.extend([str(await invoke(_apart(context), arguments)) for _ in range(2)])
        return "waits"

    tool.on_invoke_tool = twice
    outer = ScriptedModel([[function_call("make", {"input": "tea"}, call_id="call_9")]])
    pausing = Agent[Any](
        "outer",
        model=outer,
        tools=[tool],
        tool_use_behavior=lambda context, made: ToolsToFinalOutputResult(is_final_output=True),
    )
    run = Runner.run_streamed(pausing, "tea", run_config=PLAIN)
    async for _ in run.stream_events():
        pass
    assert heard == ["None", "tea"]
    assert run.interruptions == []
    assert len(outer.calls) == 1
