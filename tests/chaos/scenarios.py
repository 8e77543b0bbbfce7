"""What simulated users do in a conversation, and the expected state of their tasks."""

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from tests.chaos.apis.chatkit import RecordingChatKit
from tests.chaos.apis.runs import InputMode, RecordingRuns
from tests.chaos.client_record import ClientRecord
from tests.chaos.conversation import Conversation
from tests.chatkit_client import ChatKit
from todo_client.runs import Runs

_SILENCE_SECONDS = 15  # after which a client considers its connection lost


class Scenario:
    """A conversation of one user, in steps without arguments that are taken in a random order.

    Task titles contain the user's number, so no two users share any.
    """

    def __init__(self, conversation: Conversation, record: ClientRecord, rng: random.Random, number: int) -> None:
        self._conversation = conversation
        self._record = record
        self._rng = rng
        self._number = number

    @property
    def steps(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self.add_and_complete,
            self.decide_approval,
            self.decide_two_approvals,
            self.overtake_approval,
            self.edit_message,
            self.send_inputs,
            self.cancel_run,
        )

    async def run(self, *, until: Callable[[], bool]) -> None:
        """Takes all steps, unless the condition is true before."""
        await self.start()
        for step in self._rng.sample(self.steps, len(self.steps)):
            if until():
                break
            await step()
            self._record.steps[step.__name__] += 1

    def create_title(self) -> str:
        return f"errand {self._number} {self._rng.randrange(10**9):09}"

    async def start(self) -> None:
        title = self.create_title()
        await self._conversation.start(f"add {title}")
        self._record.expected_tasks[title] = "pending"

    async def add_and_complete(self) -> None:
        title, _ = await self._add_task()
        await self._conversation.ask(f"complete {title}")
        self._record.expected_tasks[title] = "completed"

    async def decide_approval(self) -> None:
        title, _ = await self._add_task(" tomorrow")
        approve = self._rng.random() < 0.6
        if self._rng.random() < 0.5:
            await self._conversation.ask(f"delete {title}", approve=approve)
            self._record.expected_tasks[title] = "deleted" if approve else "pending"
        else:
            await self._conversation.ask(f"postpone {title} by 2 days", approve=approve)
            self._record.expected_tasks[title] = "postponed" if approve else "pending"

    async def decide_two_approvals(self) -> None:
        """Decides the two approvals of one model response."""
        first, deleted = await self._add_task(" tomorrow")
        second, postponed = await self._add_task(" tomorrow")
        approve = self._rng.random() < 0.6
        await self._conversation.ask(f"delete task {deleted} and postpone task {postponed}", approve=approve)
        self._record.expected_tasks |= {
            first: "deleted" if approve else "pending",
            second: "postponed" if approve else "pending",
        }

    async def overtake_approval(self) -> None:
        title, _ = await self._add_task(" tomorrow")
        await self._overtake(await self._conversation.ask(f"postpone {title} by 2 days", approve=None))

    async def edit_message(self) -> None:
        title = self.create_title()
        interaction = await self._conversation.ask(f"add {title}")
        self._record.expected_tasks[title] = "pending"
        for _ in range(self._rng.randint(1, 2)):
            title = self.create_title()
            await self._conversation.edit(interaction, f"add {title}")
            interaction = await self._conversation.wait_for_answer(f"add {title}")
            self._record.expected_tasks[title] = "pending"

    async def send_inputs(self) -> None:
        """Sends steering messages and follow-ups to a run; it is not defined which of them is handled first."""
        title, _ = await self._add_task()
        del self._record.expected_tasks[title]

        async def send(run_id: str) -> None:
            follow_ups: set[str] = set()
            for _ in range(self._rng.randint(1, 3)):
                text, mode = f"add {self.create_title()}", self._choose_mode()
                if mode == "steer":
                    self._record.droppable_inputs |= follow_ups
                else:
                    follow_ups.add(text)
                await self._conversation.send_input(run_id, text, mode)

        await self._conversation.interact(f"complete {title}", on_running=send)
        await self._conversation.wait_for_end()

    async def cancel_run(self) -> None:
        async def cancel(run_id: str) -> None:
            if self._rng.random() < 0.3:
                await self._send_input(run_id)
            await self._conversation.cancel(run_id)

        await self._conversation.interact(f"add {self.create_title()} and {self.create_title()}", on_running=cancel)
        await self._conversation.wait_for_end()

    async def _overtake(self, interaction: dict[str, Any]) -> None:
        """Cancels a run that waits for an approval, or sends another message: the call is not made."""
        match self._rng.randrange(3):
            case 0:
                await self._conversation.cancel(interaction["id"])
            case 1:
                await self._send_input(interaction["id"])
                await self._conversation.wait_for_end()
            case _:
                pass
        await self._add_task()

    async def _send_input(self, run_id: str) -> None:
        await self._conversation.send_input(run_id, f"add {self.create_title()}", self._choose_mode())

    async def _add_task(self, when: str = "") -> tuple[str, int]:
        """Adds a task; returns its title and id."""
        title = self.create_title()
        interaction = await self._conversation.ask(f"add {title}{when}")
        self._record.expected_tasks[title] = "pending"
        return title, _find_task_id(interaction)

    def _choose_mode(self) -> InputMode:
        return self._rng.choice(("steer", "follow_up"))


def _find_task_id(interaction: dict[str, Any]) -> int:
    outputs = [event["tool_output"] for event in interaction["agent_events"] if event["type"] == "TOOL_RESULT"]
    return json.loads(outputs[-1])["id"]


@asynccontextmanager
async def simulate_user(
    url: str, record: ClientRecord, rng: random.Random, number: int, kind: type[Scenario] = Scenario
) -> AsyncIterator[Callable[[], Scenario]]:
    """Opens the connections of a user; yields a function that returns the scenario of a new conversation."""
    async with ChatKit(url) as chat, Runs(url, timeout=_SILENCE_SECONDS) as runs:
        chatkit, recording_runs = RecordingChatKit(chat, record, rng), RecordingRuns(runs, record, rng)
        names = (f"chat-{number}-{conversation}" for conversation in count(1))
        yield lambda: kind(Conversation(chatkit, recording_runs, record, rng, next(names)), record, rng, number)
