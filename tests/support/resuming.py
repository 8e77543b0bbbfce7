"""Readers of a run that are disconnected again and again, and resume at any backend."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.runs_client import Runs, agent_events, check, names, text_of
from tests.scripted_model import ScriptedModel
from tests.support.script import add_task, call, calls, delete_tasks
from tests.waiting import until
from todo_client.runs import RunEvent
from todo_client.sse import EventParser

TASKS = [f"task {number}" for number in range(1, 23)]
TEXT = " ".join(f"word{number}" for number in range(60))
ANSWERS = f"I ask.{TEXT}"
READ_SECONDS = 240


async def script_long_run(model: ScriptedModel) -> None:
    """Scripts a call, calls of which one needs an approval, and a long text, for a user without tasks."""
    await model.script(
        add_task(TASKS[0], also=TASKS[1:]),
        {**calls(*delete_tasks(*range(1, 12))["tool_calls"], call("list_tasks")), "text": "I ask."},
        {"text": TEXT, "chunk_chars": 6, "token_delay": 0.02},
    )


def last_number(events: Sequence[RunEvent]) -> int:
    return max((event.number or 0 for event in events), default=0)


@dataclass
class DisconnectingReader:
    """Reads a run to its end over connections of random length to random backends."""

    rng: random.Random
    processes: Sequence[Runs]
    events: list[RunEvent] = field(default_factory=list[RunEvent])
    cuts: int = 0

    async def read(self, chat: str, run: str) -> list[RunEvent]:
        while not self.events or self.events[-1].name != "interaction_complete":
            await self._read_until_disconnect(
                f"/chats/{chat}/interactions/{run}/events", int(2 ** self.rng.uniform(4, 14.5))
            )
        return self.events

    async def _read_until_disconnect(self, path: str, limit: int) -> None:
        """Reads at most `limit` bytes of a connection; they may end within an event."""
        headers = {"Last-Event-ID": str(last_number(self.events))} if self.events else {}
        parser = EventParser()
        async with self.rng.choice(self.processes).http.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200
            async for piece in response.aiter_raw():
                read = [check(event) for event in parser.feed(piece[:limit])]
                assert text_of(read) in ANSWERS, "a connection misses no event"
                self.events += read
                limit -= len(piece)
                if limit <= 0:
                    self.cuts += 1
                    return


async def read_with_disconnects(
    rng: random.Random, processes: Sequence[Runs], model: ScriptedModel, chat: str, readers: int
) -> int:
    """Lets readers follow a run with calls, an approval and a long text; returns how often they were disconnected.

    Nothing is missing, and nothing is read twice.
    """
    await script_long_run(model)
    async with rng.choice(processes).interact(chat, "go on") as events:
        run = (await anext(events)).data["interaction_id"]
    followers = [DisconnectingReader(rng, processes) for _ in range(readers)]
    reading = [asyncio.create_task(follower.read(chat, run)) for follower in followers]

    async def list_approvals() -> list[dict[str, str]]:
        return (await rng.choice(processes).get_interaction(chat, run))["approvals"]

    [approval] = await until(list_approvals, seconds=READ_SECONDS)
    approved = rng.random() < 0.5
    await rng.choice(processes).approve(chat, run, approval["approval_id"], approved=approved)
    async with asyncio.timeout(READ_SECONDS):
        await asyncio.gather(*reading)
    stored = await rng.choice(processes).get_interaction(chat, run)
    for follower in followers:
        numbers = [event.number for event in follower.events if event.number]
        assert numbers == sorted(set(numbers))
        assert agent_events(follower.events) == stored["agent_events"], names(follower.events)
        assert ("approved" if approved else "rejected") in names(follower.events)
        assert follower.events[-1].data["status"] == "COMPLETED"
    return sum(follower.cuts for follower in followers)
