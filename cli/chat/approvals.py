from typing import Any

from cli.chat.connection import Connection
from cli.chat.rendering import render_question
from cli.chat.screen import PROMPT, Screen
from todo_client.reading import Reading

APPROVAL_PROMPT = "Approve? y, or n and a reason [y/N] "


class PendingApprovals:
    """The calls that wait for approval: the user is asked about the first, about the next once that is decided."""

    def __init__(self, screen: Screen, connection: Connection) -> None:
        self._screen = screen
        self._connection = connection
        self._calls: list[tuple[Reading, dict[str, Any]]] = []
        self._is_sent = False  # the decision about the first

    def __bool__(self) -> bool:
        return bool(self._calls)

    async def add(self, reading: Reading, call: dict[str, Any]) -> None:
        self._calls.append((reading, call))
        if len(self._calls) == 1:
            await self._ask()

    async def remove(self, approval_id: str) -> None:
        first = self._calls[:1]
        self._calls = [waiting for waiting in self._calls if waiting[1]["approval_id"] != approval_id]
        if not self._calls:
            self.clear()
        elif self._calls[:1] != first:
            await self._ask()

    def clear(self) -> None:
        self._calls.clear()
        self._screen.prompt = PROMPT
        self._screen.redraw()

    async def decide(self, text: str) -> None:
        """Approves by y alone; anything else rejects, and what is more than n is the reason."""
        reading, call = self._calls[0]
        if self._is_sent:  # the user has not seen the next question
            await self._screen.fail("You have already decided that. Read the next question first.")
            return
        word, _, rest = text.partition(" ")
        approved = text.lower() in ("y", "yes")
        if not approved and word.lower() in ("y", "yes"):
            await self._screen.note("Type y to approve, or n and a reason to reject.")
            self._screen.wait_for_input()
            return
        reason = rest.strip() if word.lower() in ("n", "no") else text
        decision = {"approved": approved, "reason": None if approved else reason or None}
        assert reading.run_id is not None, "it waits"
        await self._connection.runs.approve(reading.chat_id, reading.run_id, call["approval_id"], **decision)
        self._is_sent = bool(self._calls) and self._calls[0][1] is call

    async def _ask(self) -> None:
        self._is_sent = False
        self._screen.prompt = APPROVAL_PROMPT
        await self._screen.show(render_question(self._calls[0][1]["text"]))
        self._screen.redraw()
        self._screen.wait_for_input()
