"""A client of the to-do assistant for Python programs; `docs/python.md` describes it."""

from todo_client.agent import Agent
from todo_client.connection import ApiError, ConnectionLost
from todo_client.events import AgentEvent, EventType, Result, RunFailed, Usage
from todo_client.session import Entry, Session

__all__ = [
    "Agent",
    "AgentEvent",
    "ApiError",
    "ConnectionLost",
    "Entry",
    "EventType",
    "Result",
    "RunFailed",
    "Session",
    "Usage",
]
