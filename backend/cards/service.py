"""The cards of conversations with their tasks as they are now, and what clicks in them do."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backend.cards.actions import Click, ClickChange, change_of, key_of_act
from backend.cards.current_tasks import CurrentTasks, load_current_tasks, tasks_of
from backend.cards.render import call_of_card, render_cards
from backend.cards.task import ChangedTask, Task
from backend.cards.widget import Card
from backend.conversations import entries, timeline
from backend.conversations.records import Record, ToolCall
from backend.errors import InvalidRequest, NotFound
from backend.tools.task_tools import CallRefused, TaskTools
from common.clock import Clock, wall_time
from common.database import Database
from common.ids import new_id

_LIVE_CARDS = 20  # the newest of a conversation show the tasks as they are, older ones as their calls have left them


@dataclass(slots=True)
class CardService:
    """`time_zone` is that of users of whom none is known."""

    database: Database
    tools: TaskTools
    clock: Clock
    time_zone: str
    _acting: set[asyncio.Task[list[Card]]] = field(default_factory=set[asyncio.Task[list[Card]]])

    def now(self, time_zone: str | None) -> datetime:
        """Returns the time of the user's clock."""
        return wall_time(self.clock(), time_zone or self.time_zone)

    async def load_tasks(
        self, user_id: str, records: Iterable[Record], *, time_zone: str | None = None
    ) -> CurrentTasks:
        """Loads the tasks of the newest cards of these records as they are now, in one request to the task server."""
        return await load_current_tasks(self.tools, user_id, _live_task_ids(records), now=self.now(time_zone))

    async def render(self, user_id: str, records: Sequence[Record], *, time_zone: str | None = None) -> list[Card]:
        """Renders the cards of a part of a conversation, in order, the newest with their tasks as they are now."""
        return render_cards(records, await self.load_tasks(user_id, records, time_zone=time_zone))

    async def load_newest(self, user_id: str, conversation_id: str) -> list[Record]:
        """Loads the records of the newest runs of a conversation, whose cards show their tasks as they are now."""
        return (await timeline.load_shown(self.database, user_id, conversation_id, runs=_LIVE_CARDS)).records

    async def redraw(
        self, user_id: str, conversation_id: str, task_ids: Collection[int], *, time_zone: str | None = None
    ) -> list[Card]:
        """Renders the newest cards of a conversation that show any of these tasks, as they are now."""
        records = await self.load_newest(user_id, conversation_id)
        cards = await self.render(user_id, records, time_zone=time_zone)
        return [card for card in cards[-_LIVE_CARDS:] if not card.task_ids.isdisjoint(task_ids)]

    async def act(
        self, user_id: str, conversation_id: str, click: Click, *, time_zone: str | None = None
    ) -> list[Card]:
        """Does what a click asks for; returns the clicked card first, then the others that show the same tasks.

        It is carried out whole, even if the client disconnects. Raises `NotFound`, `InvalidRequest`,
        `TasksUnavailable`, and what the task service says of a change that it rejects.
        """
        acting = asyncio.create_task(self._act(user_id, conversation_id, click, time_zone))
        self._acting.add(acting)
        acting.add_done_callback(self._acting.discard)
        return await asyncio.shield(acting)

    async def close(self) -> None:
        """Waits until the changes that users have asked for by clicks are carried out."""
        await asyncio.gather(*self._acting, return_exceptions=True)

    async def _act(self, user_id: str, conversation_id: str, click: Click, time_zone: str | None) -> list[Card]:
        """Carries out a click, stores it as a change by hand for the model, and renders the cards again; raises as
        `act`.
        """
        records, card = await self._load_card(user_id, conversation_id, click.card_id)
        wanted = change_of(click, card)
        changed: Sequence[Task] = ()
        if wanted is not None:
            act_id = key_of_act(user_id, click.key) if click.key else new_id("act")
            changed = await self._change(user_id, wanted, act_id, time_zone)
            named = [(task.id, task.title) for task in changed]
            await entries.add_change(
                self.database, user_id, conversation_id, change_id=act_id, kind=wanted.kind, tasks=named
            )
        others = (
            await self.redraw(user_id, conversation_id, {task.id for task in changed}, time_zone=time_zone)
            if changed
            else []
        )
        sender = next((other for other in others if other.id == card.id), None)
        if sender is None:
            cards = await self.render(user_id, records, time_zone=time_zone)
            sender = next((other for other in cards if other.id == card.id), card)
        return [sender, *(other for other in others if other.id != card.id)]

    async def _load_card(self, user_id: str, conversation_id: str, card_id: str) -> tuple[list[Record], Card]:
        """Loads a card as its call has left its tasks, with all records of its run. Raises `NotFound`."""
        call_id = call_of_card(card_id)
        found = await timeline.load_run_of_call(self.database, user_id, conversation_id, call_id or "")
        cards = render_cards(found.records, CurrentTasks())
        card = next((card for card in cards if card.id == card_id), None)
        if card is None:
            raise NotFound
        return found.records, card

    async def _change(self, user_id: str, wanted: ClickChange, act_id: str, time_zone: str | None) -> Sequence[Task]:
        """Carries out a change by its tool and returns the tasks as they are then.

        Raises the error of a rejection, and `TasksUnavailable`.
        """
        try:
            result = await self.tools.change(
                wanted.tool,
                wanted.arguments,
                user_id=user_id,
                key=act_id,
                time_zone=time_zone,
                undo_batch=wanted.undo_batch,
            )
        except CallRefused as rejection:
            raise wanted.rejected or InvalidRequest(str(rejection)) from None
        return ChangedTask.model_validate(result).tasks


def _live_task_ids(records: Iterable[Record]) -> set[int]:
    """Returns the tasks of the newest twenty calls that have returned some."""
    calls = [record for record in records if isinstance(record, ToolCall)]
    with_tasks = [tasks for call in calls if (tasks := tasks_of(call))]
    return {task.id for tasks in with_tasks[-_LIVE_CARDS:] for task in tasks}
