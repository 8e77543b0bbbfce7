"""What people do who let agents work."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from tests.chaos.agents.script import NOBODY
from tests.chaos.doors.runs import answers_of
from tests.chaos.plays import Plays

_THINKS_SECONDS = (0.0, 2.0)
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

    async def asked_inside(self) -> None:
        """What the agent wants is approved after a while, or refused: then it comes to no end."""
        approve, work = self._chance.random() < 0.7, self._work("askingly")
        one = await self._waiting_inside(work)
        await asyncio.sleep(self._chance.uniform(*_THINKS_SECONDS))
        await self._conversation.decide(one, approve=approve)
        one = await self._conversation.settled(work, approve=approve)
        if approve:
            self._is_done(one)

    async def overtaken_inside(self) -> None:
        """An agent waits, and another message comes, or it is cancelled: what it asked is not made."""
        one = await self._waiting_inside(self._work("askingly"))
        how = self._chance.randrange(3)
        if how == 0:
            await self._conversation.cancel(one["id"])
        elif how == 1:
            await self._conversation.send(one["id"], f"add {self.wish()}", self._mode())
            await self._conversation.stopped()
        await self._added()

    async def looked_after(self) -> None:
        """Asked for once, and however it ended, the next message's model reads what came of it."""
        await self._conversation.interact(self._work("briefly"))
        one = await self._conversation.stopped()
        if _waits(one):
            await self._conversation.decide(one, approve=True)
            await self._conversation.stopped()
        await self._added()

    async def stopped_working(self) -> None:
        async def meanwhile(run_id: str) -> None:
            await self._conversation.cancel(run_id)

        await self._conversation.interact(self._work("long"), meanwhile)
        one = await self._conversation.stopped()
        if _waits(one):
            await self._conversation.decide(one, approve=True)
            await self._conversation.cancel(one["id"])
            await self._conversation.stopped()
        await self._added()

    async def steered_working(self) -> None:
        async def meanwhile(run_id: str) -> None:
            await self._conversation.send(run_id, f"add {self.wish()}", self._mode())

        await self._conversation.interact(self._work("briefly"), meanwhile)
        await self._conversation.stopped()

    async def _waiting_inside(self, work: str) -> dict[str, Any]:
        """Said, and the agent's start approved where that is asked: until the agent asks itself."""
        one = await self._conversation.answered(work, approve=None)
        while _waits(one) and not any(asked["agent"] for asked in one["approvals"] if asked["approved"] is None):
            await self._conversation.decide(one, approve=True)
            one = await self._conversation.settled(work, approve=None)
        return one

    def _work(self, how: str) -> str:
        return f"work {how} on {self.wish().replace(' ', '')}"

    def _is_done(self, one: dict[str, Any]) -> None:
        """Or there was nobody to do it: until a backend has found the workspace, it offers no agents."""
        told = " ".join(answers_of(one))
        if NOBODY in told:
            self._record.done["found no agent"] += 1
            return
        found = _DONE.search(told)
        assert found, one
        self._record.works.add(found[1])


def _waits(one: dict[str, Any]) -> bool:
    return one["status"] == "WAITING_APPROVAL"


_PLAYS: tuple[tuple[Callable[[AgentPlays], Awaitable[None]], int], ...] = (
    (AgentPlays.worked, 5),
    (AgentPlays.refused, 1),
    (AgentPlays.asked_inside, 4),
    (AgentPlays.overtaken_inside, 2),
    (AgentPlays.looked_after, 4),
    (AgentPlays.stopped_working, 2),
    (AgentPlays.steered_working, 2),
    (AgentPlays.plain, 1),
)
