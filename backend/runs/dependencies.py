"""The services and limits that all runs of a process share."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents import Agent

from backend.context.summaries import Summaries
from backend.context.titles import Titles
from backend.runs.calls import Approvals
from backend.runs.stream import Streams
from backend.tools.run_context import RunContext
from backend.tools.task_tools import TaskTools
from backend.tools.workspace.tools import WorkspaceTools
from backend.users.limits import UserLimits
from common.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the runs of a process are executed with.

    `history_tokens` are the budget of a request's messages, `tool_wait_seconds` how long a stop waits for a tool's end,
    and `run_seconds` how long a run may be executed. The sub-agents of a message have `agent_model_turns` together, and
    a user may start `sub_agents_per_day`.
    """

    database: Database
    agents: Mapping[str, Agent[RunContext]]
    approvals: Approvals
    tools: TaskTools
    workspace: WorkspaceTools | None
    streams: Streams
    summaries: Summaries
    titles: Titles
    history_tokens: int
    tool_wait_seconds: float
    run_seconds: float
    agent_model_turns: int
    sub_agents_per_day: int | None
    limits: UserLimits
