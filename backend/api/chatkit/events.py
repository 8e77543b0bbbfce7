"""Renders the events of a run as ChatKit's, and encodes these."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from chatkit import types as ck

from backend.api.chatkit.render import render_card, render_entry, render_workflow, serialize
from backend.api.errors import explain_unexpected
from backend.api.event_renderer import EventRenderer
from backend.cards.agent_workflow import WorkflowChange, WorkflowStream
from backend.cards.render import render_progress
from backend.cards.service import CardStream
from backend.cards.widget import Workflow
from backend.conversations.records import Entry, Event, ToolCall
from backend.errors import BackendError
from backend.runs.outcomes import CUT_OFF_CODES, may_retry, sentence_of, sentence_of_notice

_THOUGHT_SECONDS = 0.2  # an update repeats the whole thought: a long one must not be sent with every word


class ChatKitRenderer(EventRenderer[ck.ThreadStreamEvent]):
    """For a reader who has the events up to number `after`, and the item of the message `known_message_id`."""

    def __init__(
        self,
        thread_id: str,
        cards: CardStream,
        workflows: WorkflowStream,
        *,
        after: int = 0,
        known_message_id: str | None = None,
    ) -> None:
        super().__init__()
        self._thread_id, self._cards, self._workflows, self._after = thread_id, cards, workflows, after
        self._known_message_id = known_message_id
        self.next_run_id: str | None = None
        """The run that answers a follow-up, once this one has ended."""
        self._open: list[str] = []  # items of entries that grow
        self._agents: dict[str, Workflow] = {}  # open items of sub-agents
        self._thought_sent_at = 0.0
        self._has_notice = False

    async def handle(self, event: Event) -> list[ck.ThreadStreamEvent]:
        """Applies the next event and returns what ChatKit shows of it.

        Events that the reader has had already only restore the state, and return nothing.
        """
        if event.type == "progress":
            return [ck.ProgressUpdateEvent(text=event.text)]
        if isinstance(event.record, Entry) and event.record.id == self._known_message_id:
            return []
        rendered = [] if event.sub_agent is not None else [*self._render(event)]
        if (change := self._workflows.apply_event(event)) is not None:
            rendered += self._change_workflow(change)
        for card, is_new in await self._cards.apply_event(event):
            item = render_card(self._thread_id, card)
            rendered.append(ck.ThreadItemDoneEvent(item=item) if is_new else ck.ThreadItemReplacedEvent(item=item))
        if event.type in ("run_ended", "run_waiting"):
            rendered += self._close(is_waiting=event.type == "run_waiting")
            if event.run and event.run.status in ("failed", "interrupted") and not self._has_notice:
                # Its outcome could not be stored.
                rendered.append(ck.ErrorEvent(message=sentence_of(event.run.status), allow_retry=True))
            self.next_run_id = event.run.next_run_id if event.run else None
        if event.number is not None and event.number <= self._after:
            self._open.clear()
            self._sent.clear()
            self._agents.clear()
            return []
        return rendered

    def on_error(self, error: Exception) -> list[ck.ThreadStreamEvent]:
        return [explain_error(error)]

    def encode(self, rendered: ck.ThreadStreamEvent) -> bytes:
        return encode_event(rendered)

    def _render(self, event: Event) -> Iterator[ck.ThreadStreamEvent]:
        match event.type, event.record:
            case ("call_requested", ToolCall(state="running") as call) | (
                "call_completed",
                ToolCall(state="done") as call,
            ):
                if text := render_progress(call):
                    yield ck.ProgressUpdateEvent(text=text, icon="check" if call.state == "done" else None)
            case "entry_started" | "entry_delta", Entry(kind="assistant_message" | "reasoning") as entry:
                yield from self._grow(entry, event)
            case "entry_completed", Entry(kind="assistant_message" | "reasoning") as entry:
                yield from self._complete(entry, event)
            case "entry_withdrawn", Entry(id=item_id):
                self._open = [one for one in self._open if one != item_id]
                yield ck.ThreadItemRemovedEvent(item_id=item_id)  # also where it was begun on an earlier connection
            case "entry_completed", Entry(kind="notice") as notice:
                self._has_notice = True
                yield from _render_notice(notice)
            case "entry_completed", Entry() as entry:
                if (item := render_entry(self._thread_id, entry)) is not None:
                    yield ck.ThreadItemDoneEvent(item=item)
            case _:
                pass

    def _close(self, *, is_waiting: bool) -> Iterator[ck.ThreadStreamEvent]:
        """Closes what is open as the run ends or waits; a message without words is not stored, so it is removed."""
        for item_id in self._open:
            yield ck.ThreadItemRemovedEvent(item_id=item_id)
        for workflow in self._agents.values():
            yield ck.ThreadItemDoneEvent(
                item=render_workflow(self._thread_id, replace(workflow, is_waiting=is_waiting))
            )
        self._open.clear()
        self._agents.clear()

    def _change_workflow(self, change: WorkflowChange) -> Iterator[ck.ThreadStreamEvent]:
        item = render_workflow(self._thread_id, change.workflow, is_live=True)
        numbers, known = change.numbers, self._agents.get(item.id)
        if known is None:
            begun = item.model_copy(deep=True)
            begun.workflow.tasks, begun.workflow.summary = [], None
            yield ck.ThreadItemAddedEvent(item=begun)
            numbers = range(len(change.workflow.steps))
        for number in numbers:
            is_new = known is None or number >= len(known.steps)
            update = ck.WorkflowTaskAdded if is_new else ck.WorkflowTaskUpdated
            yield _update(item.id, update(task_index=number, task=item.workflow.tasks[number]))
        self._agents[item.id] = change.workflow
        if change.has_ended:
            del self._agents[item.id]
            yield ck.ThreadItemDoneEvent(item=render_workflow(self._thread_id, change.workflow))

    def _grow(self, entry: Entry, event: Event) -> Iterator[ck.ThreadStreamEvent]:
        """Sends new text of an entry; reasoning again as a whole, at most five times a second."""
        if entry.id not in self._open:
            yield from self._add_item(entry)
        text = "" if event.type == "entry_started" else self.take_text(entry, event)
        if entry.kind == "assistant_message":
            if text:
                delta = ck.AssistantMessageContentPartTextDelta(content_index=0, delta=text)
                yield _update(entry.id, delta)
        elif time.monotonic() - self._thought_sent_at >= _THOUGHT_SECONDS:
            self._thought_sent_at = time.monotonic()
            yield _render_thought(entry.id, self.get_sent_text(entry))

    def _add_item(self, entry: Entry) -> Iterator[ck.ThreadStreamEvent]:
        self._open.append(entry.id)
        item = render_entry(self._thread_id, Entry(entry.run_id, entry.id, entry.kind, created_at=entry.created_at))
        added: Any
        if isinstance(item, ck.AssistantMessageItem):
            item.content = []
            content = ck.AssistantMessageContent(text="")
            added = ck.AssistantMessageContentPartAdded(content_index=0, content=content)
        else:
            assert isinstance(item, ck.WorkflowItem)
            item.workflow.tasks = []
            added = ck.WorkflowTaskAdded(task_index=0, task=ck.ThoughtTask(content=""))
        yield ck.ThreadItemAddedEvent(item=item)
        yield _update(entry.id, added)

    def _complete(self, entry: Entry, event: Event) -> Iterator[ck.ThreadStreamEvent]:
        if len(entry.text) > len(self.get_sent_text(entry)):
            yield from self._grow(entry, event)
        item = render_entry(self._thread_id, entry)
        assert item is not None
        if entry.id in self._open:
            self._open.remove(entry.id)
            if isinstance(item, ck.AssistantMessageItem):
                done = ck.AssistantMessageContentPartDone(content_index=0, content=item.content[0])
                yield _update(entry.id, done)
            else:
                yield _render_thought(entry.id, entry.text)
        yield ck.ThreadItemDoneEvent(item=item)


def explain_error(error: Exception) -> ck.ErrorEvent:
    if isinstance(error, BackendError):
        return ck.ErrorEvent(message=str(error), allow_retry=error.allow_retry)
    return ck.ErrorEvent(message=explain_unexpected(error), allow_retry=True)


def encode_event(event: ck.ThreadStreamEvent) -> bytes:
    return b"data: " + serialize(event) + b"\n\n"


def _render_notice(notice: Entry) -> Iterator[ck.ThreadStreamEvent]:
    """Renders a notice: an answer that was cut off as a warning, a failure as an error. A cancellation has none."""
    code = (notice.details or {}).get("code", "failed")
    if code in CUT_OFF_CODES:
        yield ck.NoticeEvent(level="warning", message=sentence_of_notice(notice))
    elif code != "cancelled":
        yield ck.ErrorEvent(message=sentence_of_notice(notice), allow_retry=may_retry(code))


def _render_thought(item_id: str, text: str) -> ck.ThreadStreamEvent:
    return _update(item_id, ck.WorkflowTaskUpdated(task_index=0, task=ck.ThoughtTask(content=text)))


def _update(item_id: str, update: Any) -> ck.ThreadStreamEvent:
    return ck.ThreadItemUpdatedEvent(item_id=item_id, update=update)
