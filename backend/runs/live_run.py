"""A tree of runs while this process executes it."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from backend.conversations.records import ConversationHead, Entry, Run
from backend.runs.outcomes import Ending
from backend.runs.stream import RunStream

WaitForTool = Callable[[asyncio.Task[object]], Awaitable[None]]


@dataclass(slots=True)
class LiveRun:
    """The top run of a tree, and what its runs share: a stream, a stop, a budget of model turns for sub-agents.

    `messages` are the steering messages that were read since the tree came to this process, and `growing` the entries
    that have grown since they were stored. `lock` lets one run write at a time, as their numbers are committed in
    order. `began` is when, by `time.perf_counter`.
    """

    run: Run
    stream: RunStream
    agent_model_turns_left: int
    asyncio_task: asyncio.Task[None] | None = None
    ending: Ending | None = None
    """How it ends once it stops."""
    stop_requested: asyncio.Event = field(default_factory=asyncio.Event)
    has_messages: bool = False
    messages: list[Entry] = field(default_factory=list[Entry])
    growing: dict[str, Entry] = field(default_factory=dict[str, Entry])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    conversation: ConversationHead | None = None
    tokens_today: int = 0
    """The model tokens that the user had used today when this tree of runs was stored last."""
    unstored_tokens: Counter[str] = field(default_factory=Counter[str])
    """`input_tokens` and `output_tokens` that it has used since then."""
    began: float = field(default_factory=time.perf_counter)
    first_event_seconds: float | None = None
    """From the beginning to its first event, where a request has started it."""

    @property
    def tokens_used(self) -> int:
        return self.tokens_today + self.unstored_tokens.total()

    def stop(self, ending: Ending) -> None:
        """Ends the tree of runs once the tool call that is being made has ended; an earlier stop comes first."""
        self.ending = self.ending or ending
        self.stop_requested.set()

    async def run_until_stopped(self, work: Coroutine[Any, Any, object], wait_for_tool: WaitForTool) -> None:
        """Carries out work and raises its error.

        After a stop it lets the tool that is at work finish, as its result is recorded, and raises `CancelledError`.
        """
        working = asyncio.create_task(work)
        stopping = asyncio.create_task(self.stop_requested.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await wait_for_tool(working)
                working.cancel()
                await asyncio.wait({working})
                raise asyncio.CancelledError
            working.result()
        finally:
            stopping.cancel()
            working.cancel()

    async def wait_if_stopped(self) -> None:
        """After a stop no tool and no model turn begins any more: it waits here until the SDK's run is cancelled."""
        if self.stop_requested.is_set():
            await asyncio.Event().wait()
