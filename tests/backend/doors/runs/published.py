from typing import Any

from backend.doors.chat.routes import chat
from backend.doors.identity import Identity
from backend.doors.runs.openapi import published
from backend.doors.runs.routes import runs
from backend.settings import Settings


def schema() -> dict[str, Any]:
    """The run API's and that of `/chat`, as it is published."""
    values: dict[str, Any] = {"database_url": "postgresql://localhost/todo"}
    identity = Identity(Settings(**values))
    return published(runs(identity), chat(identity))
