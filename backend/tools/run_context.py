"""What tools, hooks and instructions know of the run in which they are called."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from backend.conversations.records import Run, ToolCall


class Assignment(BaseModel):
    """What an agent is asked to do."""  # models read it

    model_config = ConfigDict(title="Delegated")

    task: str
    task_id: int | None = None


RunSubAgent = Callable[[str, Assignment, str], Awaitable[str]]
"""Executes the run of a tool call, by the call's id, with the agent of that name; returns what the assistant reads."""


@dataclass(slots=True)
class RunContext:
    """The context of a run in the Agents SDK. Sets and dictionaries are by the ids of calls of the newest model turn.

    `folder` is where its workspace tools work, or in its place a `directory` of the user's. `memory` is what the user
    wants remembered, and `notes` are what the agent's instructions end with.
    """

    run: Run
    run_sub_agent: RunSubAgent
    time_zone: str | None = None
    folder: str = ""
    directory: str | None = None
    memory: str = ""
    notes: str = ""
    open_calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    """The calls without a result."""
    begun: set[str] = field(default_factory=set[str])
    """Those that a tool was started for."""
    waiting: set[str] = field(default_factory=set[str])
    """Those that wait for approval."""
    waiting_agents: set[str] = field(default_factory=set[str])
    """Those whose sub-agents wait for approval."""
    unconfirmed: set[str] = field(default_factory=set[str])
    """Those of all model turns that failed but may have been carried out."""
    not_made: dict[str, str] = field(default_factory=dict[str, str])
    """Those that are not made, with their outputs."""

    @property
    def user_id(self) -> str:
        return self.run.user_id

    @property
    def batch(self) -> str:
        return self.run.top_run_id

    @property
    def calls_at_work(self) -> list[ToolCall]:
        at_work = self.begun - self.waiting_agents
        return [call for call in self.open_calls.values() if call.id in at_work]
