"""The cards that a reader of a run's events is shown, and those that have to be redrawn."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from backend.cards.approvals import render_approval
from backend.cards.current_tasks import CurrentTasks, changed_by
from backend.cards.render import render_cards
from backend.cards.service import CardService
from backend.cards.widget import Card
from backend.conversations.records import Entry, Event, Record, ToolCall
from backend.tools.table import find_tool


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card to be shown: for the first time, or in place of the one with the same id."""

    card: Card
    is_new: bool


@dataclass(slots=True)
class CardStream:
    """For one reader, who may begin at any event of a run."""

    service: CardService
    user_id: str
    conversation_id: str
    time_zone: str | None = None
    _records: dict[str, Record] = field(default_factory=dict[str, Record])
    _current: CurrentTasks = field(init=False)
    _sent: dict[str, Card] = field(default_factory=dict[str, Card])

    def __post_init__(self) -> None:
        self._current = CurrentTasks(self.service.now(self.time_zone))

    async def apply_event(self, event: Event) -> list[ShownCard]:
        """Returns the cards that an event adds or changes, among all cards of the run and earlier ones."""
        if event.is_of_sub_agent:
            return self._apply_approval_event(event)
        if isinstance(event.record, ToolCall) or (isinstance(event.record, Entry) and event.type == "entry_completed"):
            self._records[event.record.id] = event.record
        match event.type, event.record:
            case "call_completed", ToolCall() as call if call.state == "done" and find_tool(call.tool).redraws:
                return await self._redraw(call)
            case "call_completed", ToolCall() as call:
                self._current = self._current.with_call(call)
                return self._select_changed(self._render_all_cards())
            case "approval_requested" | "approval_decided" | "run_ended", _:
                return self._select_changed(self._render_all_cards())
            case _:
                return []

    def _apply_approval_event(self, event: Event) -> list[ShownCard]:
        """Returns the card of a sub-agent's call; only its approval has one."""
        kinds = ("approval_requested", "approval_decided", "call_completed")
        if event.type in kinds and isinstance(event.record, ToolCall):
            card = render_approval(event.record)
            return self._select_changed([card] if card else [])
        return []

    async def _redraw(self, call: ToolCall) -> list[ShownCard]:
        """Loads the tasks again after a call has changed some; returns the changed cards of the run, and the earlier
        ones of the conversation that show the same tasks.
        """
        newest = await self.service.load_newest(self.user_id, self.conversation_id)
        others = [record for record in newest if record.run_id != call.run_id]
        self._current = await self.service.load_tasks(
            self.user_id, [*others, *self._records.values()], time_zone=self.time_zone
        )
        if not self._current.known:  # the task service did not answer
            self._current = self._current.with_call(call)
        changed = {task.id for task in changed_by(call)}
        redrawn = [card for card in render_cards(others, self._current) if not card.task_ids.isdisjoint(changed)]
        return [*(ShownCard(card, is_new=False) for card in redrawn), *self._select_changed(self._render_all_cards())]

    def _render_all_cards(self) -> list[Card]:
        """Renders all cards of the run so far: approvals, changed tasks and lists.

        `_select_changed` selects those to be sent.
        """
        return render_cards(self._records.values(), self._current)

    def _select_changed(self, cards: Iterable[Card]) -> list[ShownCard]:
        """Selects the cards that the reader has not been shown like this, and notes them as shown."""
        changed = [
            ShownCard(card, is_new=card.id not in self._sent) for card in cards if self._sent.get(card.id) != card
        ]
        self._sent |= {one.card.id: one.card for one in changed}
        return changed
