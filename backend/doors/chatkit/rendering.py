"""A turn's log, as ChatKit's events."""

import time
from collections.abc import Iterator
from typing import Any

from chatkit.types import (
    AssistantMessageContent,
    AssistantMessageContentPartAdded,
    AssistantMessageContentPartDone,
    AssistantMessageContentPartTextDelta,
    ErrorEvent,
    NoticeEvent,
    Page,
    ProgressUpdateEvent,
    StreamOptions,
    StreamOptionsEvent,
    ThoughtTask,
    Thread,
    ThreadCreatedEvent,
    ThreadItemAddedEvent,
    ThreadItemDoneEvent,
    ThreadItemRemovedEvent,
    ThreadItemReplacedEvent,
    ThreadItemUpdatedEvent,
    ThreadStreamEvent,
    ThreadUpdatedEvent,
    WorkflowItem,
    WorkflowTaskAdded,
    WorkflowTaskUpdated,
)

from backend.conversation.items import Json, Message, Thought, Work
from backend.conversation.rows import as_shown, as_task, to_thread
from backend.turn import log

_THOUGHT_SECONDS = 0.2


class Rendering:
    """For one reader, from the log's beginning."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._begun: set[str] = set()  # items that grow; one that was not seen to begin is shown when it is done
        self._thoughts: dict[str, str] = {}  # that grow, as far as they were read
        self._thought_shown = 0.0
        self._worked: dict[str, int] = {}  # how many steps of an agent's work were told of

    def events(self, event: log.Event) -> Iterator[ThreadStreamEvent]:  # noqa: C901 - one row per case
        match event:
            case log.Grown(item_id=item_id, text=text) if item_id in self._thoughts:
                yield from self._think(item_id, text)
            case log.Grown(item_id=item_id, part=part, text=text) if item_id in self._begun:
                yield _update(item_id, AssistantMessageContentPartTextDelta(content_index=part, delta=text))
            case log.PartBegun(item_id=item_id, part=part):
                content = AssistantMessageContent(text="")
                yield _update(item_id, AssistantMessageContentPartAdded(content_index=part, content=content))
            case log.PartDone(item_id=item_id, part=part, text=text):
                content = AssistantMessageContent(text=text)
                yield _update(item_id, AssistantMessageContentPartDone(content_index=part, content=content))
            case log.Started():
                yield from self._start(event)
            case log.Compacted(item=item):
                yield ThreadItemDoneEvent(item=as_shown(self._thread_id, item))
            case log.Begun(item=item):
                yield from self._begin(item)
            case log.WorkedOn(item_id=item_id, number=number, step=step):
                yield self._work(item_id, number, step)
            case log.Done(item=item):
                self._worked.pop(item.id, None)
                self._begun.discard(item.id)
                if self._thoughts.pop(item.id, None) is not None and isinstance(item, Thought):
                    yield self._show_thought(item.id, item.text)
                yield ThreadItemDoneEvent(item=as_shown(self._thread_id, item))
            case log.Replaced(item=item):
                yield ThreadItemReplacedEvent(item=as_shown(self._thread_id, item))
            case log.Removed(item_id=item_id):
                yield ThreadItemRemovedEvent(item_id=item_id)
            case log.Progress(text=text, done=done):
                yield ProgressUpdateEvent(text=text, icon="check" if done else None)
            case log.Notice(text=text):
                yield NoticeEvent(level="warning", message=text)
            case log.Failed(message=message, allow_retry=allow_retry):
                yield ErrorEvent(message=message, allow_retry=allow_retry)
            case log.StepBegun() | log.StepDone() | log.Called() | log.Answered() | log.Asked() | log.Decided():
                pass  # ChatKit has no events for them: cards ask and tell
            case log.Grown() | log.Paused() | log.Cancelled() | log.Ended() | log.Reset():
                pass  # what is published tells so to the reader of any protocol

    def _start(self, event: log.Started) -> Iterator[ThreadStreamEvent]:
        if event.is_new:
            yield ThreadCreatedEvent(thread=_thread(event))
        if event.said is not None:
            yield ThreadItemDoneEvent(item=as_shown(self._thread_id, event.said))
            if not event.is_new:  # its reader may know another title: one is made after the first answer
                yield ThreadUpdatedEvent(thread=_thread(event))
        yield StreamOptionsEvent(stream_options=StreamOptions(allow_cancel=True))

    def _work(self, item_id: str, number: int, step: Json) -> ThreadStreamEvent:
        task, told = as_task(step, live=True), self._worked.get(item_id, 0)
        self._worked[item_id] = max(told, number + 1)
        kind = WorkflowTaskAdded if number >= told else WorkflowTaskUpdated
        return _update(item_id, kind(task_index=number, task=task))

    def _begin(self, item: Message | Thought | Work) -> Iterator[ThreadStreamEvent]:
        shown = as_shown(self._thread_id, type(item)(id=item.id, created_at=item.created_at))
        if isinstance(shown, WorkflowItem):
            shown.workflow.tasks, shown.workflow.summary = [], None
        yield ThreadItemAddedEvent(item=shown)
        self._begun.add(item.id)
        if isinstance(item, Thought):
            self._thoughts[item.id] = ""
            yield _update(item.id, WorkflowTaskAdded(task_index=0, task=ThoughtTask(content="")))

    def _think(self, item_id: str, text: str) -> Iterator[ThreadStreamEvent]:
        self._thoughts[item_id] += text
        # An update repeats the whole thought: a long one must not be sent with every word.
        if time.monotonic() - self._thought_shown >= _THOUGHT_SECONDS:
            self._thought_shown = time.monotonic()
            yield self._show_thought(item_id, self._thoughts[item_id])

    def _show_thought(self, item_id: str, text: str) -> ThreadStreamEvent:
        return _update(item_id, WorkflowTaskUpdated(task_index=0, task=ThoughtTask(content=text)))


def _thread(event: log.Started) -> Thread:
    return Thread(**to_thread(event.conversation).model_dump(), items=Page())


def _update(item_id: str, update: Any) -> ThreadStreamEvent:
    return ThreadItemUpdatedEvent(item_id=item_id, update=update)
