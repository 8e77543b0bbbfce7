"""What people do who let agents work."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from tests.chaos.doors.runs import answers_of
from tests.chaos.plays import Plays

_DONE = re.compile(r"Done with (\w+)\.")


class AgentPlays(Plays):
    async def some(self) -> str:
        play = self._chance.choices([play for play, _ in _PLAYS], [weight for _, weight in _PLAYS])[0]
        await play(self)
        return play.__name__

    async def worked(self) -> None:
        """Asked for until it is done."""
        self._is_done(await self._conversation.answered(self._work("briefly"), approve=True))

    async def refused(self) -> None:
        """Where nobody asks, it is done."""
        one = await self._conversation.answered(self._work("briefly"), approve=False)
        if not one["approvals"]:
            self._is_done(one)

    async def looked_after(self) -> None:
        """Asked for once, and however it ended, the next message's model reads what came of it."""
        await self._conversation.interact(self._work("briefly"))
        one = await self._conversation.stopped()
        if one["status"] == "WAITING_APPROVAL":
            await self._conversation.decide(one, approve=True)
            await self._conversation.stopped()
        await self._added()

    async def stopped_working(self) -> None:
        async def meanwhile(run_id: str) -> None:
            await self._conversation.cancel(run_id)

        await self._conversation.interact(self._work("long"), meanwhile)
        one = await self._conversation.stopped()
        if one["status"] == "WAITING_APPROVAL":
            await self._conversation.decide(one, approve=True)
            await self._conversation.cancel(one["id"])
            await self._conversation.stopped()
        await self._added()

    async def steered_working(self) -> None:
        async def meanwhile(run_id: str) -> None:
            await self._conversation.send(run_id, f"add {self.wish()}", self._mode())

        await self._conversation.interact(self._work("briefly"), meanwhile)
        await self._conversation.stopped()

    def _work(self, how: str) -> str:
        return f"work {how} on {self.wish().replace(' ', '')}"

    def _is_done(self, one: dict[str, Any]) -> None:
        found = _DONE.search(" ".join(answers_of(one)))
        assert found, one
        self._record.works.add(found[1])


_PLAYS: tuple[tuple[Callable[[AgentPlays], Awaitable[None]], int], ...] = (
    (AgentPlays.worked, 5),
    (AgentPlays.refused, 1),
    (AgentPlays.looked_after, 4),
    (AgentPlays.stopped_working, 2),
    (AgentPlays.steered_working, 2),
    (AgentPlays.plain, 1),
)
