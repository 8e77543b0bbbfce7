"""What there is at the moment: conversations, tasks and models."""

from contextlib import suppress
from typing import Any

from cli.chat.commands import table
from cli.chat.connection import Connection
from cli.chat.screens.text import clean
from todo_client.connection import ApiError, ConnectionLost

_LISTED = 20


class Learned:
    """`known` holds the names that can be completed, by their kind; `threads` the conversations as people saw them."""

    def __init__(self, connection: Connection, known: dict[str, list[str]]) -> None:
        self._connection = connection
        self.known = known
        self.threads: list[dict[str, Any]] = []

    async def list_threads(self) -> list[dict[str, Any]]:
        """The newest conversations."""
        self.threads = await self._newest()
        return self.threads

    async def learn(self) -> None:
        """All of it anew, as far as the server can be asked."""
        self.known["commands"] = [f"/{name}" for name in table.COMMANDS]
        with suppress(ApiError, ConnectionLost):
            page = self._connection.page
            self.known["tasks"] = [clean(task["title"]) for task in (await page.tasks("all"))["tasks"]]
            self.known["threads"] = [clean(one["title"]) for one in await self._newest() if one.get("title")]
            self.known["models"] = list((await page.ready()).get("model", {}).get("models", ()))

    async def _newest(self) -> list[dict[str, Any]]:
        return (await self._connection.chatkit.list_threads(limit=_LISTED)).data
