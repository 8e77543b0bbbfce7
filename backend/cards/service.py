"""The cards of conversations with their tasks as they are now: for pages, for readers of a run, and for clicks."""

import asyncio
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from backend.cards.approvals import render_approval
from backend.cards.current_tasks import CurrentTasks, ids_of, load_current_tasks
from backend.cards.render import render_cards, render_cards_of_calls
from backend.cards.task import ChangedTask, Task
from backend.cards.task_cards import COMPLETE, OPEN, REOPEN, UNDO
from backend.cards.widget import Card, record_of_item
from backend.conversations import conversations, timeline
from backend.conversations.records import Entry, Event, Record, ToolCall
from backend.errors import BackendError, InvalidRequest, NotFound
from backend.tools.table import find_tool
from backend.tools.task_tools import CallRejected, ChangeCall, TaskTools, derive_id
from common.clock import Clock, wall_time
from common.database import Database
from common.pauses import with_pauses

_LIVE_CARDS = 20  # the newest of a conversation show the tasks as they are, older ones as their calls have left them
# In the process of a run its readers get an event at once, in others when they next look at the rows, within a second.
_SHARED_SECONDS = 2.0


class NotCompleted(BackendError):
    """The task could not be completed. It may have been deleted. Ask for the list again."""

    code, status = "not_completed", 409


class NotReopened(BackendError):
    """The task could not be reopened: it was deleted, or its next repeat is already open. Ask to undo it."""

    code, status = "not_reopened", 409


@dataclass(frozen=True, slots=True)
class Click:
    """A click in the card `card_id`. The same click under the same `key` is carried out once."""

    card_id: str
    type: str
    payload: Any
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """What a click does. Where the tool rejects it, the user reads `rejected`, or else what the tool says.

    `kind` names for the model what the user did.
    """

    kind: Literal["completed", "reopened", "undone"]
    call: ChangeCall
    rejected: type[BackendError] | None = None


def _choose_change(tools: TaskTools, click: Click, card: Card) -> _Change | None:
    """Returns None for a click that changes nothing. Raises `InvalidRequest` for what the card does not offer."""
    payload = click.payload if isinstance(click.payload, dict) else {}
    if click.type == UNDO:
        if card.batch is None or payload.get("batch") != card.batch:
            raise InvalidRequest(
                "This cannot be undone any more. It was undone already, or the task has changed since."
            )
        return _Change("undone", partial(tools.undo_batch, card.batch))
    if click.type not in (COMPLETE, REOPEN, OPEN):
        raise InvalidRequest(f"There is no action {click.type!r}.")
    task_id = payload.get("task_id")
    if type(task_id) is not int:
        raise InvalidRequest(f"The action {click.type} does not belong to this list. Ask for the list again.")
    if task_id not in card.task_ids:
        raise InvalidRequest("This task is not in this list. Ask for the list again.")
    if click.type == COMPLETE:
        return _Change("completed", partial(tools.change, "complete_task", {"task_id": task_id}), NotCompleted)
    if click.type == REOPEN:
        reopened = {"task_id": task_id, "status": "pending"}
        return _Change("reopened", partial(tools.change, "update_task", reopened), NotReopened)
    return None  # the client opens the task itself; one that does not sends the click here


@dataclass(frozen=True, slots=True)
class _Reloaded:
    """The tasks after a call of a run has changed some, and later calls up to the event `last_number`.

    `others` are the newest records of the other runs of the conversation that show the `changed` tasks.
    """

    current: CurrentTasks
    last_number: int
    changed: Set[int]
    others: Sequence[Record]


@dataclass(slots=True)
class CardService:
    """`time_zone` is that of users of whom none is known."""

    database: Database
    tools: TaskTools
    clock: Clock
    time_zone: str
    _acting: set[asyncio.Task[list[Card]]] = field(default_factory=set[asyncio.Task[list[Card]]])
    _reloading: dict[str, asyncio.Task[_Reloaded]] = field(default_factory=dict[str, asyncio.Task[_Reloaded]])
    """By the id of the call after which tasks are loaded."""

    def now(self, time_zone: str | None) -> datetime:
        return wall_time(self.clock(), time_zone or self.time_zone)

    async def load_tasks(
        self, user_id: str, records: Iterable[Record], *, time_zone: str | None = None
    ) -> CurrentTasks:
        """Loads the tasks of the newest cards of these records as they are now, in one request to the task server."""
        return await self._load_tasks(user_id, [ids for _, ids in await _find_tasks(records)], time_zone)

    async def _load_tasks(
        self, user_id: str, ids_of_cards: Sequence[Iterable[int]], time_zone: str | None = None
    ) -> CurrentTasks:
        ids = {id for ids in ids_of_cards[-_LIVE_CARDS:] for id in ids}
        return await load_current_tasks(self.tools, user_id, ids, now=self.now(time_zone))

    async def render(self, user_id: str, records: Sequence[Record], *, time_zone: str | None = None) -> list[Card]:
        return await render_cards(records, await self.load_tasks(user_id, records, time_zone=time_zone))

    async def load_newest(self, user_id: str, conversation_id: str) -> list[Record]:
        return (await timeline.load_shown(self.database, user_id, conversation_id, runs=_LIVE_CARDS)).records

    async def reload_tasks(
        self, user_id: str, conversation_id: str, call: ToolCall, of_run: Sequence[Record]
    ) -> _Reloaded:
        """Loads the tasks after a call has changed some, once for all readers within `_SHARED_SECONDS`."""
        reloading = self._reloading.get(call.id)
        if reloading is None:
            reloading = asyncio.create_task(self._reload_tasks(user_id, conversation_id, call, of_run))
            self._reloading[call.id] = reloading
            asyncio.get_running_loop().call_later(_SHARED_SECONDS, self._reloading.pop, call.id)
        return await asyncio.shield(reloading)

    async def _reload_tasks(
        self, user_id: str, conversation_id: str, call: ToolCall, of_run: Sequence[Record]
    ) -> _Reloaded:
        newest = await self.load_newest(user_id, conversation_id)
        loaded = [record for record in newest if record.run_id == call.run_id]
        if not loaded:  # an earlier run, or on another path
            loaded = (await timeline.load_run_of_record(self.database, user_id, conversation_id, call.id)).records
        records = {record.id: record for record in (*loaded, *of_run)}.values()
        in_run = await _find_tasks(records)
        in_others = await _find_tasks(record for record in newest if record.run_id != call.run_id)
        current = await self._load_tasks(user_id, [ids for _, ids in (*in_others, *in_run)])
        changed = {id for record, ids in in_run if _is_change_since(record, call) for id in ids}
        runs = {record.run_id for record, ids in in_others if not changed.isdisjoint(ids)}
        others = [record for record in newest if record.run_id in runs]
        last_number = max(record.result_seq or 0 for record in records if isinstance(record, ToolCall))
        return _Reloaded(current, last_number, changed, others)

    async def act(
        self, user_id: str, conversation_id: str, click: Click, *, time_zone: str | None = None
    ) -> list[Card]:
        """Does what a click asks for; returns the clicked card first, then the others that show the same tasks.

        It is carried out whole, even if the client disconnects. Raises `NotFound`, `InvalidRequest`,
        `TasksUnavailable`, and what the task service says of a change that it rejects.
        """
        acting = asyncio.create_task(self._apply_click(user_id, conversation_id, click, time_zone))
        self._acting.add(acting)
        acting.add_done_callback(self._acting.discard)
        return await asyncio.shield(acting)

    async def close(self) -> None:
        """Waits for the actions that are under way."""
        await asyncio.gather(*self._acting, return_exceptions=True)

    async def _apply_click(self, user_id: str, conversation_id: str, click: Click, time_zone: str | None) -> list[Card]:
        record_id = record_of_item(click.card_id)
        records = (await timeline.load_run_of_record(self.database, user_id, conversation_id, record_id)).records
        card = _find_card(await render_cards(records, CurrentTasks()), click.card_id)
        if card is None:
            raise NotFound.of("item", click.card_id)
        shown: list[Card] = []
        if (change := _choose_change(self.tools, click, card)) is not None:
            act_id = derive_id("act", click.key)
            tasks = {task.id: task.title for task in await self._change_tasks(user_id, change, act_id, time_zone)}
            await conversations.add_change(
                self.database, user_id, conversation_id, change_id=act_id, kind=change.kind, tasks=[*tasks.items()]
            )
            newest = await self.load_newest(user_id, conversation_id)
            cards = await self.render(user_id, newest, time_zone=time_zone)
            shown = [one for one in cards[-_LIVE_CARDS:] if not one.task_ids.isdisjoint(tasks)]
        clicked = _find_card(shown, card.id)
        if clicked is None:
            clicked = _find_card(await self.render(user_id, records, time_zone=time_zone), card.id) or card
        return [clicked, *(other for other in shown if other.id != card.id)]

    async def _change_tasks(self, user_id: str, change: _Change, act_id: str, time_zone: str | None) -> Sequence[Task]:
        try:
            result = await change.call(user_id=user_id, key=act_id, time_zone=time_zone)
        except CallRejected as rejection:
            raise change.rejected or InvalidRequest(str(rejection)) from None
        return ChangedTask.model_validate(result).tasks


@dataclass(slots=True)
class CardStream:
    """The cards that each event of a run changes, for one reader, who may begin at any; with whether a card is new."""

    service: CardService
    user_id: str
    conversation_id: str
    time_zone: str | None = None
    _records: dict[str, Record] = field(default_factory=dict[str, Record])
    _current: CurrentTasks = field(init=False)
    _loaded_until: int = 0
    """Up to which event of the run the current tasks were loaded."""
    _sent: dict[str, Card] = field(default_factory=dict[str, Card])

    def __post_init__(self) -> None:
        self._current = CurrentTasks(self.service.now(self.time_zone))

    async def apply_event(self, event: Event) -> list[tuple[Card, bool]]:
        kinds = ("approval_requested", "approval_decided", "call_completed")
        if event.sub_agent is not None:
            if event.type not in kinds or not isinstance(event.record, ToolCall):
                return []
            card = render_approval(event.record)  # only its approval has one
            return await self._select_changed([card] if card else [])
        if isinstance(event.record, ToolCall) or (isinstance(event.record, Entry) and event.type == "entry_completed"):
            self._records[event.record.id] = event.record
        if isinstance(event.record, ToolCall) and event.type in kinds:
            return await self._apply_call(event.record, is_completed=event.type == "call_completed")
        if isinstance(event.record, Entry) and event.record.kind == "changes":
            self._current = self._current.with_changes(event.record)
        elif event.type != "run_ended":
            return []
        return await self._select_changed(await render_cards(self._records.values(), self._current))

    async def _apply_call(self, call: ToolCall, *, is_completed: bool) -> list[tuple[Card, bool]]:
        """Returns the cards of a call, and those that show tasks which are known otherwise since it was made."""
        before, earlier = self._current, list[tuple[Card, bool]]()
        if is_completed and (call.result_seq or 0) > self._loaded_until:
            if call.state == "done" and find_tool(call.tool).redraws:
                earlier = await self._reload_tasks(call)
            else:
                self._current = before.with_call(call)
        changed = self._current.find_differences(before)
        shown = {record_of_item(card.id) for card in self._sent.values() if not card.task_ids.isdisjoint(changed)}
        cards = await render_cards_of_calls(self._records.values(), {call.id, *shown}, self._current)
        return [*earlier, *await self._select_changed(cards)]

    async def _reload_tasks(self, call: ToolCall) -> list[tuple[Card, bool]]:
        """Loads the tasks again after a call has changed some; returns the earlier cards that show the same tasks."""
        of_run = [*self._records.values()]
        reloaded = await self.service.reload_tasks(self.user_id, self.conversation_id, call, of_run)
        self._current = replace(reloaded.current, now=self.service.now(self.time_zone))
        if self._current.known:
            self._loaded_until = reloaded.last_number
        else:  # the task service did not answer
            self._current = self._current.with_call(call)
        cards = await render_cards(reloaded.others, self._current)
        changed = await self._select_changed(card for card in cards if not card.task_ids.isdisjoint(reloaded.changed))
        return [(card, False) for card, _ in changed]

    async def _select_changed(self, cards: Iterable[Card]) -> list[tuple[Card, bool]]:
        each = with_pauses(cards)
        changed = [(card, card.id not in self._sent) async for card in each if self._sent.get(card.id) != card]
        self._sent |= {card.id: card for card, _ in changed}
        return changed


async def _find_tasks(records: Iterable[Record]) -> list[tuple[Record, list[int]]]:
    """Returns the records that show tasks, with the ids of these."""
    return [(record, ids) async for record in with_pauses(records) if (ids := ids_of(record))]


def _is_change_since(record: Record, call: ToolCall) -> bool:
    return (
        isinstance(record, ToolCall)
        and find_tool(record.tool).redraws
        and (record.result_seq or 0) >= (call.result_seq or 0)
    )


def _find_card(cards: Iterable[Card], card_id: str) -> Card | None:
    return next((card for card in cards if card.id == card_id), None)
