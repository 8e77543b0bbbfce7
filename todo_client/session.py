"""A chat as a tree of entries, of which one branch is shown."""

import json
import uuid
from dataclasses import dataclass
from typing import Any, Self

from todo_client.agent import Agent
from todo_client.connection import ApiError
from todo_client.runs import Runs

_NOT_FOUND = 404


@dataclass(frozen=True)
class SessionEntry:
    """A line of the chat's log. `data` has all its fields, see "Log" in docs/agents.md.

    Alternatives have the same `parent_id`. `interaction_id` is None for what belongs to the chat as a whole.
    """

    id: str
    parent_id: str | None
    type: str
    interaction_id: str | None
    data: dict[str, Any]


class Session:
    """The chat of this name or id, without a request; a new name is a chat without entries."""

    def __init__(self, url: str = "http://localhost:8000", token: str | None = None, chat: str | None = None) -> None:
        self.url, self.token = url, token
        self.chat = chat or f"chat-{uuid.uuid4().hex}"

    @classmethod
    async def open(cls, url: str, chat: str, token: str | None = None) -> Self:
        async with Runs(url, token=token) as runs:
            await runs.get_chat(chat, limit=0)
        return cls(url, token, chat)

    @classmethod
    async def continue_recent(cls, url: str, token: str | None = None) -> Self:
        """Opens the chat that was used last, or a new one."""
        async with Runs(url, token=token) as runs:
            return cls(url, token, await runs.find_last_used_chat())

    def agent(self, **options: Any) -> Agent:
        """Returns an agent that continues the shown branch. `options` are those of `Agent`."""
        return Agent(self.url, self.token, self.chat, **options)

    async def entries(self) -> list[SessionEntry]:
        """Returns the entries of all branches, in the order in which they happened."""
        async with Runs(self.url, token=self.token) as runs:
            try:
                lines = await runs.get_log(self.chat)
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise
                return []
        entries = map(json.loads, lines)
        return [SessionEntry(one["id"], one["parent_id"], one["event"], one["run_id"], one) for one in entries]

    async def branch(self, entry: SessionEntry | str | None) -> None:
        """Shows the branch that ends with the interaction of an entry, or of an id; None shows the empty beginning.

        The next prompt continues from there, and nothing is deleted. Raises `ApiError` while the assistant answers.
        """
        interaction_id = entry.interaction_id if isinstance(entry, SessionEntry) else entry
        async with Runs(self.url, token=self.token) as runs:
            await runs.branch(self.chat, interaction_id)
