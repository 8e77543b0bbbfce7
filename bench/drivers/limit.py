"""The limit: the bare OpenAI client doing what every turn must, its two streamed requests."""

import json
import sys
import time
from typing import Any

import uvloop
from openai import AsyncOpenAI

from bench.drivers import worker
from bench.drivers.load import Timing

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "add_task",
        "description": "Add one task.",
        "parameters": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "description": {"type": "string"}},
            "required": ["title"],
        },
    },
}
EARLIER: list[Any] = [
    {"role": "system", "content": "You keep one person's to-do list."},
    {"role": "user", "content": "say 5"},
    {"role": "assistant", "content": "word word word word word"},
]


async def main(base_url: str) -> None:
    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)

    async def turn(text: str) -> Timing:
        began = time.perf_counter()
        first = 0.0
        messages = [*EARLIER, {"role": "user", "content": text}]
        while True:
            call: dict[str, Any] = {}
            stream = await client.chat.completions.create(model="instant", messages=messages, tools=[TOOL], stream=True)
            async for chunk in stream:
                first = first or time.perf_counter()
                for part in chunk.choices[0].delta.tool_calls or ():
                    call = part.model_dump(exclude_none=True) if part.id else call
            if not call:
                return Timing(first - began, time.perf_counter() - began)
            call["function"]["arguments"] = '{"title":"Buy milk"}'
            result = json.dumps({"id": 1, "title": "Buy milk", "description": "", "status": "pending"})
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    await worker.serve(turn)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
