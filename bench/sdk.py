"""The baseline: a turn of the Agents SDK alone, with its own chat-completions model and a local tool."""

import json
import time

from agents import Agent, OpenAIChatCompletionsModel, Runner, TResponseInputItem, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from bench.client import Timing

_EARLIER: list[TResponseInputItem] = [
    {"role": "user", "content": "say 5"},
    {"role": "assistant", "content": "word word word word word"},
]


@function_tool
async def add_task(title: str, description: str | None = None) -> str:
    """Add one task."""
    return json.dumps({"id": 1, "title": title, "description": description or "", "status": "pending"})


class SdkAgent:
    def __init__(self, model_url: str) -> None:
        set_tracing_disabled(True)
        model = OpenAIChatCompletionsModel("instant", AsyncOpenAI(base_url=model_url, api_key="none", max_retries=0))
        self._agent = Agent(name="Baseline", instructions="You keep a to-do list.", model=model, tools=[add_task])

    async def send_message(self, text: str) -> Timing:
        began = time.perf_counter()
        result = Runner.run_streamed(self._agent, [*_EARLIER, {"role": "user", "content": text}])
        async for _ in result.stream_events():
            pass
        return Timing(time.perf_counter() - began)
