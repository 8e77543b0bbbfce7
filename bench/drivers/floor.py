"""The floor: the Agents SDK with its own chat-completions model and a local tool, without everything of ours."""

import json
import sys
import time

import uvloop
from agents import Agent, OpenAIChatCompletionsModel, Runner, TResponseInputItem, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from bench.drivers import worker
from bench.drivers.load import Timing

EARLIER: list[TResponseInputItem] = [
    {"role": "user", "content": "say 5"},
    {"role": "assistant", "content": "word word word word word"},
]


@function_tool
async def add_task(title: str, description: str | None = None) -> str:
    """Add one task."""
    return json.dumps({"id": 1, "title": title, "description": description or "", "status": "pending"})


async def main(base_url: str) -> None:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel("instant", client)
    agent = Agent(name="Floor", instructions="You keep one person's to-do list.", model=model, tools=[add_task])

    async def turn(text: str) -> Timing:
        began = time.perf_counter()
        first = 0.0
        result = Runner.run_streamed(agent, [*EARLIER, {"role": "user", "content": text}])
        async for _ in result.stream_events():
            first = first or time.perf_counter()
        return Timing(first - began, time.perf_counter() - began)

    await worker.serve(turn)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
