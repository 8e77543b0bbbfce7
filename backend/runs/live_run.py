"""A tree of runs while this process executes it, and what tools and hooks know of the run in which they are called."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backend.conversations.records import ConversationHead, Entry, Run
from backend.runs.outcomes import Ending
from backend.runs.stream import RunStream

if TYPE_CHECKING:
    from backend.runs.recorder import Recorder


@dataclass(slots=True)
class LiveRun:
    """The runs of a tree share its stream and its stop; its sub-agents share a budget of model turns.

    `messages` are the steering messages that were read since the tree came to this process.

    `lock` lets one of them write at a time, as their numbers are committed in order. `began` is when, by
    `time.perf_counter`.
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
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    recorders: list["Recorder"] = field(default_factory=list["Recorder"])
    conversation: ConversationHead | None = None
    began: float = field(default_factory=time.perf_counter)
    first_event_seconds: float | None = None
    """From the beginning to its first event, where a request has started it."""

    def stop(self, ending: Ending) -> None:
        """Ends the tree of runs once the tool call that is being made has ended; an earlier stop comes first."""
        self.ending = self.ending or ending
        self.stop_requested.set()


@dataclass(slots=True)
class RunContext:
    """The value in the context of an SDK run. Dictionaries are by the ids of calls.

    `folder` is where its workspace tools work, or in its place a `directory` of the user's. `memory` is what the user
    wants remembered, and `notes` are what the agent's instructions end with. `waiting` are the calls of the newest
    model turn that wait for approval, `waiting_agents` those whose sub-agents wait, and those in `not_made` have this
    text as their output.
    """

    run: Run
    live: LiveRun
    recorder: "Recorder"
    time_zone: str | None = None
    folder: str = ""
    directory: str | None = None
    memory: str = ""
    notes: str = ""
    waiting: set[str] = field(default_factory=set[str])
    waiting_agents: set[str] = field(default_factory=set[str])
    not_made: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def user_id(self) -> str:
        return self.run.user_id

    @property
    def batch(self) -> str:
        return self.run.top_run_id
