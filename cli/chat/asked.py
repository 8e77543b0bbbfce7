"""What the assistant asks before it acts, and what its person decides."""

from typing import Any

from cli.chat.connection import Connection, Reading
from cli.chat.screens import drawing
from cli.chat.screens.screen import Screen

MARK = "Approve? y, or n and a reason [y/N] "


class Asked:
    """The calls that wait, in their order: the first of them is asked about, the next once that is decided."""

    def __init__(self, screen: Screen, connection: Connection) -> None:
        self._screen = screen
        self._connection = connection
        self._calls: list[dict[str, Any]] = []
        self._is_sent = False  # what the person decided of the first

    def __bool__(self) -> bool:
        return bool(self._calls)

    async def add(self, call: dict[str, Any]) -> None:
        self._calls.append(call)
        if len(self._calls) == 1:
            await self._ask()

    async def remove(self, approval_id: str) -> None:
        first, self._calls = self._calls[:1], [one for one in self._calls if one["approval_id"] != approval_id]
        if self._calls and self._calls[:1] != first:
            await self._ask()

    def clear(self) -> None:
        self._calls.clear()

    async def _ask(self) -> None:
        self._is_sent = False
        await self._screen.show(*drawing.asked_lines(self._screen.style, self._calls[0]["text"], self._screen.size[0]))

    async def decide(self, reading: Reading, text: str) -> None:
        """y alone is a yes; all else is a no, and what is more than that is why."""
        if reading.run_id is None:
            return
        if self._is_sent:  # whoever typed this has not seen what is asked next
            await self._screen.fail("You have already decided that. Read the next question first.")
            return
        word, _, more = text.partition(" ")
        approved = text.lower() in ("y", "yes")
        if not approved and word.lower() in ("y", "yes"):
            await self._screen.note("Type y to approve, or n and a reason to reject.")
            self._screen.waits()
            return
        reason = more.strip() if word.lower() in ("n", "no") else text
        given = {"approved": approved, "reason": None if approved else reason or None}
        asked = self._calls[0]["approval_id"]
        await self._connection.runs.approve(reading.chat_id, reading.run_id, asked, **given)
        self._is_sent = bool(self._calls) and self._calls[0]["approval_id"] == asked
