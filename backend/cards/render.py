"""Renders tool calls for the user: the line while one runs, and cards with the tasks as they are now."""

from collections.abc import Iterable, Iterator, Sequence

from backend.cards.approvals import render_approval
from backend.cards.current_tasks import CurrentTasks, get_changed_tasks, ids_of
from backend.cards.task import Task
from backend.cards.task_cards import (
    copy_text,
    render_changed_tasks,
    render_changes_line,
    render_task_card,
    render_task_list,
    undo_button,
)
from backend.cards.task_lists import ReadList, list_below
from backend.cards.widget import Card
from backend.conversations.records import Entry, Record, ToolCall
from backend.tools.approval_policy import arguments_of
from backend.tools.table import READING, CallTexts, LineValues, find_texts
from common.changes import render_changes
from common.pauses import with_pauses

_MAX_VALUE_LENGTH = 60  # characters, in the line of a call
_MAX_CARDS = 3  # of one call; more tasks are shown as a list


def render_progress(call: ToolCall) -> str | None:
    arguments = arguments_of(call.arguments) or {}
    words = find_texts(call.tool, arguments)
    if words is None or call.state not in ("running", "done"):
        return None
    values = arguments if call.state == "running" else call.details or {}
    also = values.get("also")
    count = 1 + len(also) if isinstance(also, list) else 1
    if call.state == "running":
        template = words.running_several if count > 1 else words.running
    else:
        template = words.done_several if count > 1 else words.done
    shortened = {name: str(value)[:_MAX_VALUE_LENGTH] for name, value in {**values, "count": count}.items()}
    return template.format_map(LineValues(shortened)) or None


async def render_cards(records: Iterable[Record], current: CurrentTasks) -> list[Card]:
    """Renders cards in order; of whole runs where possible, as what "Undo" undoes depends on all calls of a run.

    Others are served between the cards, which may show thousands of tasks.
    """
    runs = dict[str, list[Record]]()
    for record in records:
        runs.setdefault(record.run_id, []).append(record)
    cards = [card for of_run in runs.values() for card in await _render_cards_of_run(of_run, current)]
    return sorted(cards, key=lambda card: card.number)


async def render_cards_of_calls(
    records: Iterable[Record], call_ids: Iterable[str], current: CurrentTasks
) -> list[Card]:
    """Renders the cards of these calls of a run, so that each of many calls costs as much as one of a few."""
    return sorted(await _render_calls([*records], current, call_ids), key=lambda card: card.number)


async def _render_cards_of_run(records: Sequence[Record], current: CurrentTasks) -> list[Card]:
    cards = await _render_calls(records, current)
    if (read := await list_below(records)) is not None:
        cards += await _render_list(read, records, current)
    if (total := _find_total(records)) is not None:
        cards += _render_total(total, cards, current)
    return cards


async def _render_calls(
    records: Sequence[Record], current: CurrentTasks, call_ids: Iterable[str] | None = None
) -> list[Card]:
    """Renders the cards of all calls of a run, or at least of those with these ids."""
    calls = [record for record in records if isinstance(record, ToolCall)]
    changes = [call for call in calls if call.tool not in READING and call.state not in ("rejected", "not_made")]
    is_only_change, has_total = len(changes) == 1, bool((total := _find_total(records)) and ids_of(total))
    if call_ids is not None:
        # A second change makes "Undo" on the card of the first "Undo all".
        shown = {*call_ids, *(call.id for call in changes if len(changes) <= 2)}
        calls = [call for call in calls if call.id in shown]
    cards = [card for call in calls if (card := render_approval(call)) is not None]
    async for call in with_pauses(calls):
        cards += await _render_changes(call, current, is_only_change=is_only_change, has_total=has_total)
    return cards


def _find_total(records: Iterable[Record]) -> Entry | None:
    return next((one for one in records if isinstance(one, Entry) and one.kind == "changes" and one.complete), None)


async def _render_changes(
    call: ToolCall, current: CurrentTasks, *, is_only_change: bool, has_total: bool
) -> list[Card]:
    """Renders what a call has changed; "Undo" is offered while nothing else has changed these tasks since.

    What would undo more than the card shows is offered below the answer, once there is its total.
    """
    words = find_texts(call.tool, arguments_of(call.arguments) or {})
    tasks = [current.state_of(task) for task in get_changed_tasks(call)]
    if words is None or not tasks or call.result_seq is None or call.created_at is None:
        return []
    as_list = len(tasks) > _MAX_CARDS
    with_others = not is_only_change or (len(tasks) > 1 and not as_list)
    can_undo = not words.final and all(current.can_undo(task.id, call.run_id) for task in tasks)
    can_undo = can_undo and not (with_others and has_total)
    undo = undo_button(call.run_id, with_others=with_others) if can_undo else None
    cards: list[Card] = []
    for position, group in enumerate([tasks] if as_list else [[task] for task in tasks]):
        if as_list:
            is_undone = any(current.is_undone(task.id, call.run_id) for task in tasks)
            heading = f"{'Undone: ' if is_undone else ''}{words.heading.format(count=len(tasks))}"
            root = await render_changed_tasks(tasks, heading, now=current.now, undo=undo)
        else:
            label = _label_unless_undone(call, words, group[0], current)
            root = render_task_card(group[0], label, now=current.now, undo=undo)
        ids, text = frozenset(task.id for task in group), await copy_text(group, current.now)
        card_id, offers_undo = _card_id(call, position), undo is not None
        cards.append(Card(card_id, call.result_seq, call.created_at, root, text, ids, call.run_id, offers_undo))
    return cards


def _label_unless_undone(call: ToolCall, words: CallTexts, task: Task, current: CurrentTasks) -> str:
    if not current.is_undone(task.id, call.run_id):
        return words.label
    return "Restored" if call.tool == "delete_task" and task.status != "deleted" else "Undone"


async def _render_list(read: ReadList, records: Sequence[Record], current: CurrentTasks) -> list[Card]:
    tasks = [current.state_of(task) async for task in with_pauses(read.listed_tasks)]
    answers = [one for one in records if isinstance(one, Entry) and one.kind == "assistant_message"]
    number, call = answers[-1].last_seq, read.call
    if not tasks or number is None or call is None or call.created_at is None:
        return []
    root = await render_task_list(tasks, has_more=read.shows_more, now=current.now)
    ids = frozenset(task.id for task in tasks)
    return [Card(_card_id(call), number, call.created_at, root, await copy_text(tasks, current.now), ids)]


def _render_total(total: Entry, cards: Sequence[Card], current: CurrentTasks) -> Iterator[Card]:
    """Renders what the answer has changed in all, with "Undo" unless a card offers the same."""
    facts, ids, batch = total.details or {}, ids_of(total), total.run_id
    if total.last_seq is None or total.created_at is None or not (line := render_changes(facts)):
        return
    left = [id for id in ids if not current.is_undone(id, batch)]
    line = line if left or not ids else f"Undone: {line}"
    can_undo = bool(left) and all(current.can_undo(id, batch) for id in left)
    offered = can_undo and not any(card.offers_undo for card in cards)
    undo = undo_button(batch, with_others=False) if offered else None
    root = render_changes_line(line, undo=undo)
    yield Card(_card_id(total), total.last_seq, total.created_at, root, line, frozenset(ids), batch, offered)


def _card_id(record: Record, position: int = 0) -> str:
    return f"wid_{position}_{record.id}"
