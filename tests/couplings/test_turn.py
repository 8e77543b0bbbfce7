"""The Agents SDK's runner and its hooks, as `turn` uses them."""

import asyncio
import gc
import weakref
from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, RunConfig, RunHooks, Runner, function_tool
from agents.exceptions import UserError
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from backend.turn.speech import Overheard

PLAIN = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
BOIL = function_call("boil", {}, call_id="call_7")
TEA = assistant_message("tea")


class Told(RunHooks[Any]):
    """Notes what it is told, in order."""

    def __init__(self, heard: list[Any], *, refusing: bool = False) -> None:
        self._heard = heard
        self._refusing = refusing

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: list[Any]) -> None:
        outputs = [item["call_id"] for item in input_items if item.get("type") == "function_call_output"]
        self._heard.append(("asks", *outputs))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self._heard.append("has answered")

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self._heard.append(f"begins {tool.name} {context.tool_call.call_id}")
        if self._refusing:
            raise KeyError("refused")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self._heard.append(f"has made {tool.name} {context.tool_call.call_id} {context.tool_call.arguments}")


def tea_maker(heard: list[Any], *steps: Any) -> Agent[Any]:
    @function_tool
    async def boil() -> str:
        heard.append("boils")
        return "hot"

    return Agent("a", model=ScriptedModel(list(steps)), tools=[boil])


async def test_the_hooks_tell_of_a_step_before_its_tools_run_and_of_a_tool_with_its_call() -> None:
    """Where `Recorder` writes: `context.tool_call` is the call, though the type of a hook's context has none."""
    heard: list[Any] = []
    await Runner.run(tea_maker(heard, [BOIL], [TEA]), "tea", hooks=Told(heard), run_config=PLAIN)
    assert heard == [
        ("asks",),
        "has answered",
        "begins boil call_7",
        "boils",
        "has made boil call_7 {}",
        ("asks", "call_7"),
        "has answered",
    ]


async def test_a_call_without_a_tool_is_told_of_with_the_next_request_only() -> None:
    """Hence `Recorder.on_llm_start`."""
    heard: list[Any] = []
    agent = tea_maker(heard, [function_call("fry", {}, call_id="call_8")], [TEA])
    await Runner.run(agent, "tea", hooks=Told(heard), run_config=PLAIN)
    assert heard == [("asks",), "has answered", ("asks", "call_8"), "has answered"]


async def test_what_the_hook_before_a_tool_raises_keeps_it_from_running() -> None:
    """As `CallNotMade` does."""
    heard: list[Any] = []
    with pytest.raises((KeyError, UserError)):
        await Runner.run(tea_maker(heard, [BOIL], [TEA]), "tea", hooks=Told(heard, refusing=True), run_config=PLAIN)
    assert heard[-1] == "begins boil call_7"


async def test_a_run_that_is_cancelled_after_its_turn_ends_its_tool_and_asks_nothing_more() -> None:
    """What `Answers` does when it is stopped; the outputs are among the run's `new_items`."""
    boiling, boiled = asyncio.Event(), asyncio.Event()

    @function_tool
    async def boil() -> str:
        boiling.set()
        await boiled.wait()
        return "hot"

    model = ScriptedModel([[BOIL], [TEA]])
    run = Runner.run_streamed(Agent("a", model=model, tools=[boil]), "tea", run_config=PLAIN)

    async def to_its_end() -> None:
        async for _ in run.stream_events():
            pass

    running = asyncio.create_task(to_its_end())
    async with asyncio.timeout(5):
        await boiling.wait()
        run.cancel("after_turn")
        boiled.set()
        await running
    assert len(model.calls) == 1
    made: list[Any] = [item.to_input_item() for item in run.new_items if item.type == "tool_call_output_item"]
    assert [(item["call_id"], item["output"]) for item in made] == [("call_7", "hot")]


async def test_what_a_model_streams_is_overheard_before_the_hooks_hear_of_its_end() -> None:
    """The order that `Recorder.on_llm_end` needs, by the methods of a model that `Overheard` has."""
    heard: list[Any] = []
    agent = tea_maker(heard)
    overheard = Overheard(ScriptedModel([[TEA]]), lambda event: heard.append(event.type))
    config = RunConfig(tracing_disabled=True, model=overheard)
    run = Runner.run_streamed(agent, "tea", hooks=Told(heard), run_config=config)
    async for _ in run.stream_events():
        pass
    assert heard[0] == ("asks",)
    assert heard[-2:] == ["response.completed", "has answered"]


async def test_the_runner_asks_a_model_whether_to_repeat_a_failed_request() -> None:
    """By `get_retry_advice`, which `Overheard` has to hand on."""
    asked: list[Exception] = []

    class Asked(Overheard):
        def get_retry_advice(self, request: Any) -> Any:
            asked.append(request.error)
            return super().get_retry_advice(request)

    model = Asked(ScriptedModel([ModelStep(error=ConnectionError())]), lambda _: None)
    config = RunConfig(tracing_disabled=True, model=model)
    with suppress(ConnectionError):
        await Runner.run(Agent("a"), "tea", run_config=config)
    assert [type(error) for error in asked] == [ConnectionError]


async def test_a_result_that_was_streamed_is_held_by_itself_until_it_is_emptied() -> None:
    """Hence `AgentRuns` empties it: otherwise it would be there with all of the answer until a collection."""
    result = Runner.run_streamed(tea_maker([], [TEA]), "tea", run_config=PLAIN)
    async for _ in result.stream_events():
        pass
    held, emptied = weakref.ref(result), weakref.ref(result.context_wrapper)
    fields = vars(result)
    gc.disable()
    try:
        del result
        assert held() is not None
        fields.clear()
        assert held() is None
        assert emptied() is None
    finally:
        gc.enable()
