"""What people do: each play is a few messages in one conversation, and what must have come of them."""

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from tests.chaos.conversation import Conversation
from tests.chaos.record import Record

Mode = Literal["steer", "follow_up"]


class Plays:
    """Of one person, whose tasks nobody else names."""

    def __init__(self, conversation: Conversation, record: Record, chance: random.Random, number: int) -> None:
        self._conversation = conversation
        self._record = record
        self._chance = chance
        self._number = number

    def wish(self) -> str:
        return f"wish {self._number} {self._chance.randrange(10**9):09}"

    async def begin(self) -> None:
        wish = self.wish()
        await self._conversation.begin(f"add {wish}")
        self._record.wishes[wish] = "there"

    async def some(self) -> str:
        """One of them; returns its name."""
        play = self._chance.choices([play for play, _ in PLAYS], [weight for _, weight in PLAYS])[0]
        await play(self)
        return play.__name__

    async def plain(self) -> None:
        wish, _ = await self._added()
        await self._conversation.answered(f"complete {wish}")
        self._record.wishes[wish] = "completed"

    async def asked(self) -> None:
        """A call waits and is decided."""
        wish, _ = await self._added(" tomorrow")
        approve = self._chance.random() < 0.6
        if self._chance.random() < 0.5:
            await self._conversation.answered(f"delete {wish}", approve=approve)
            self._record.wishes[wish] = "deleted" if approve else "there"
        else:
            await self._conversation.answered(f"postpone {wish} by 2 days", approve=approve)
            self._record.wishes[wish] = "postponed" if approve else "there"

    async def asked_twice(self) -> None:
        """Two calls of one step wait, and are decided one after the other."""
        first, deleted = await self._added(" tomorrow")
        second, postponed = await self._added(" tomorrow")
        approve = self._chance.random() < 0.6
        await self._conversation.answered(f"delete task {deleted} and postpone task {postponed}", approve=approve)
        self._record.wishes |= {
            first: "deleted" if approve else "there",
            second: "postponed" if approve else "there",
        }

    async def overtaken(self) -> None:
        """A call waits, and another message comes, or it is cancelled: it is not made."""
        wish, _ = await self._added(" tomorrow")
        one = await self._conversation.answered(f"postpone {wish} by 2 days", approve=None)
        how = self._chance.randrange(3)
        if how == 0:
            await self._conversation.cancel(one["id"])
        elif how == 1:
            await self._conversation.send(one["id"], f"add {self.wish()}", self._mode())
            await self._conversation.stopped()
        else:
            await self._added()

    async def edited(self) -> None:
        wish = self.wish()
        edited = await self._conversation.answered(f"add {wish}")
        self._record.wishes[wish] = "there"
        for _ in range(self._chance.randint(1, 2)):
            wish = self.wish()
            await self._conversation.edit(edited, f"add {wish}")
            edited = await self._conversation.settled(f"add {wish}")
            self._record.wishes[wish] = "there"

    async def steered(self) -> None:
        """More is said while it answers; nobody says which of it is done first."""
        wish, _ = await self._added()
        del self._record.wishes[wish]

        async def meanwhile(run_id: str) -> None:
            follow_ups: set[str] = set()
            for _ in range(self._chance.randint(1, 3)):
                text, mode = f"add {self.wish()}", self._mode()
                if mode == "steer":
                    self._record.may_be_dropped |= follow_ups
                else:
                    follow_ups.add(text)
                await self._conversation.send(run_id, text, mode)

        await self._conversation.interact(f"complete {wish}", meanwhile)
        await self._conversation.stopped()

    async def cancelled(self) -> None:
        async def meanwhile(run_id: str) -> None:
            if self._chance.random() < 0.3:
                await self._conversation.send(run_id, f"add {self.wish()}", self._mode())
            await self._conversation.cancel(run_id)

        await self._conversation.interact(f"add {self.wish()} and {self.wish()}", meanwhile)
        await self._conversation.stopped()

    async def _added(self, when: str = "") -> tuple[str, int]:
        """A task that is there, and its number."""
        wish = self.wish()
        one = await self._conversation.answered(f"add {wish}{when}")
        self._record.wishes[wish] = "there"
        return wish, _number_of(one)

    def _mode(self) -> Mode:
        return self._chance.choice(("steer", "follow_up"))


PLAYS: tuple[tuple[Callable[[Plays], Awaitable[None]], int], ...] = (
    (Plays.plain, 3),
    (Plays.asked, 4),
    (Plays.asked_twice, 2),
    (Plays.overtaken, 2),
    (Plays.edited, 2),
    (Plays.steered, 3),
    (Plays.cancelled, 2),
)
"""And how often each is played."""


def _number_of(interaction: dict[str, Any]) -> int:
    outputs = [event["tool_output"] for event in interaction["agent_events"] if event["type"] == "TOOL_RESULT"]
    return json.loads(outputs[-1])["id"]
