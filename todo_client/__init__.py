"""A client of the to-do assistant for Python programs; `docs/python.md` describes it."""

from todo_client.agent import Agent
from todo_client.connection import ApiError, ConnectionLost
from todo_client.events import AgentEvent, EventType, Result, RunFailed, Usage
from todo_client.session import Session, SessionEntry

__all__ = [
    "Agent",
    "AgentEvent",
    "ApiError",
    "ConnectionLost",
    "EventType",
    "Result",
    "RunFailed",
    "Session",
    "SessionEntry",
    "Usage",
]
