"""The SDK's stream events → ChatKit's thread events.

ChatKit's own `stream_agent_response` drops text on errors, leaves the run going after a cancel and hides the
reasoning of chat-completions providers.
"""

import time
from collections.abc import Iterator
from typing import Any

from agents import StreamEvent
from chatkit.types import (
    AssistantMessageContent,
    AssistantMessageContentPartAdded,
    AssistantMessageContentPartDone,
    AssistantMessageContentPartTextDelta,
    AssistantMessageItem,
    DurationSummary,
    NoticeEvent,
    ThoughtTask,
    ThreadItem,
    ThreadItemAddedEvent,
    ThreadItemDoneEvent,
    ThreadItemRemovedEvent,
    ThreadItemReplacedEvent,
    ThreadItemUpdatedEvent,
    ThreadStreamEvent,
    Workflow,
    WorkflowItem,
    WorkflowTaskAdded,
    WorkflowTaskUpdated,
)
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from database import new_id, utc_now

_THOUGHT_SECONDS = 0.2
_CUT_SHORT: dict[str | None, str] = {
    "max_output_tokens": "The answer ends here because it reached the model's output limit.",
    "content_filter": "The answer ends here because the model's provider filtered the rest.",
}


def _contents(message: ResponseOutputMessage) -> list[AssistantMessageContent]:
    return [_content(part) for part in message.content]


def _content(part: Any) -> AssistantMessageContent:
    return AssistantMessageContent(text=part.text if isinstance(part, ResponseOutputText) else part.refusal)


class ThreadEvents:
    """The items of one turn as they grow."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._message: AssistantMessageItem | None = None
        self._reasoning: WorkflowItem | None = None
        self._reasoning_since = self._thought_shown = 0.0
        self._thoughts: set[str] = set()
        self._closing: list[ThreadStreamEvent] = []
        self.answered = False

    def take_closing(self) -> list[ThreadStreamEvent]:
        """What ends the last message: it is told when the message is stored, together with the turn's outcome."""
        closing, self._closing = self._closing, []
        return closing

    def map(self, event: StreamEvent) -> Iterator[ThreadStreamEvent]:
        if event.type != "raw_response_event":
            return
        data = event.data
        match data.type:
            case "response.output_item.added" if data.item.type == "message":
                yield from self._open_message(data.item.id)
            case "response.content_part.added":
                yield from self._add_part(data.content_index)
            case "response.output_text.delta" | "response.refusal.delta":
                yield from self._grow(data.content_index, data.delta)
            case "response.content_part.done" if data.part.type in ("output_text", "refusal"):
                yield self._finish_part(data.item_id, data.content_index, _content(data.part))
            case "response.output_item.done" if isinstance(data.item, ResponseOutputMessage):
                self._close_message(_contents(data.item))
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                yield from self._think(data.item_id, data.delta)
            case "response.output_item.done" if data.item.type == "reasoning":
                yield from self._close_reasoning()
            case "response.completed":
                yield from self._complete(data.response)

    def _complete(self, response: Response) -> Iterator[ThreadStreamEvent]:
        if any(isinstance(item, ResponseFunctionToolCall) for item in response.output):
            yield from self.take_closing()  # the turn goes on
        if response.incomplete_details is not None:
            yield NoticeEvent(level="warning", message=_CUT_SHORT[response.incomplete_details.reason])

    def _open_message(self, item_id: str) -> Iterator[ThreadStreamEvent]:
        yield from self._close_reasoning()
        yield from self.take_closing()
        self._message = AssistantMessageItem(id=item_id, thread_id=self._thread_id, created_at=utc_now(), content=[])
        yield ThreadItemAddedEvent(item=self._message.model_copy(deep=True))

    def _add_part(self, index: int) -> Iterator[ThreadStreamEvent]:
        if self._message is None:
            return
        self._message.content.append(AssistantMessageContent(text=""))
        yield self._update(
            AssistantMessageContentPartAdded(content_index=index, content=AssistantMessageContent(text=""))
        )

    def _grow(self, index: int, delta: str) -> Iterator[ThreadStreamEvent]:
        if self._message is None:
            return
        self._message.content[index].text += delta
        yield self._update(AssistantMessageContentPartTextDelta(content_index=index, delta=delta))

    def _finish_part(self, item_id: str, index: int, content: AssistantMessageContent) -> ThreadStreamEvent:
        update = AssistantMessageContentPartDone(content_index=index, content=content)
        return ThreadItemUpdatedEvent(item_id=item_id, update=update)

    def _close_message(self, content: list[AssistantMessageContent]) -> None:
        if self._message is None:
            return
        item, self._message = self._message, None
        self.answered = self.answered or any(part.text.strip() for part in content)
        self._closing.append(ThreadItemDoneEvent(item=item.model_copy(update={"content": content})))

    def _update(self, update: Any) -> ThreadStreamEvent:
        assert self._message is not None
        return ThreadItemUpdatedEvent(item_id=self._message.id, update=update)

    def _think(self, item_id: str, delta: str) -> Iterator[ThreadStreamEvent]:
        if self._reasoning is None:
            yield from self._open_reasoning(item_id)
        assert self._reasoning is not None
        thought = self._reasoning.workflow.tasks[0]
        assert isinstance(thought, ThoughtTask)
        thought.content += delta
        # An update repeats the whole thought: a long one must not be sent with every word.
        if time.monotonic() - self._thought_shown >= _THOUGHT_SECONDS:
            yield self._show_thought()

    def _open_reasoning(self, item_id: str) -> Iterator[ThreadStreamEvent]:
        # The SDK has one reasoning item per answer, even when text comes between two thoughts.
        item_id = item_id if item_id not in self._thoughts else new_id("rs")
        self._thoughts.add(item_id)
        self._reasoning_since = time.monotonic()
        self._reasoning = WorkflowItem(
            id=item_id,
            thread_id=self._thread_id,
            created_at=utc_now(),
            workflow=Workflow(type="reasoning", tasks=[]),
        )
        yield ThreadItemAddedEvent(item=self._reasoning.model_copy(deep=True))
        self._reasoning.workflow.tasks.append(ThoughtTask(content=""))
        update = WorkflowTaskAdded(task_index=0, task=ThoughtTask(content=""))
        yield ThreadItemUpdatedEvent(item_id=item_id, update=update)

    def _show_thought(self) -> ThreadStreamEvent:
        assert self._reasoning is not None
        self._thought_shown = time.monotonic()
        update = WorkflowTaskUpdated(task_index=0, task=self._reasoning.workflow.tasks[0].model_copy())
        return ThreadItemUpdatedEvent(item_id=self._reasoning.id, update=update)

    def _close_reasoning(self) -> Iterator[ThreadStreamEvent]:
        if self._reasoning is None:
            return
        yield self._show_thought()
        item, self._reasoning = self._reasoning, None
        item.workflow.summary = DurationSummary(duration=max(1, round(time.monotonic() - self._reasoning_since)))
        yield ThreadItemDoneEvent(item=item)


class OpenItems:
    """What a client has on its screen and is not done, grown from the events it was sent."""

    def __init__(self) -> None:
        self._items: dict[str, ThreadItem] = {}

    def track(self, event: ThreadStreamEvent) -> None:
        match event:
            case ThreadItemAddedEvent():
                self._items[event.item.id] = event.item.model_copy(deep=True)
            case ThreadItemUpdatedEvent():
                _grow(self._items.get(event.item_id), event.update)
            case ThreadItemDoneEvent() | ThreadItemReplacedEvent():
                self._items.pop(event.item.id, None)
            case ThreadItemRemovedEvent():
                self._items.pop(event.item_id, None)
            case _:
                pass

    @property
    def unfinished(self) -> list[ThreadItem]:
        """The items that hold something worth keeping."""
        return [item for item in self._items.values() if not isinstance(item, AssistantMessageItem) or _said(item)]

    def close(self) -> Iterator[ThreadStreamEvent]:
        """End each item with what was shown of it."""
        while self._items:
            _, item = self._items.popitem()
            empty = isinstance(item, AssistantMessageItem) and not _said(item)
            yield ThreadItemRemovedEvent(item_id=item.id) if empty else ThreadItemDoneEvent(item=item)


def _said(item: AssistantMessageItem) -> bool:
    return any(part.text.strip() for part in item.content)


def _grow(item: ThreadItem | None, update: Any) -> None:
    match item, update:
        case AssistantMessageItem(), AssistantMessageContentPartAdded():
            item.content.append(update.content.model_copy(deep=True))
        case AssistantMessageItem(), AssistantMessageContentPartTextDelta():
            item.content[update.content_index].text += update.delta
        case AssistantMessageItem(), AssistantMessageContentPartDone():
            item.content[update.content_index] = update.content
        case WorkflowItem(), WorkflowTaskAdded():
            item.workflow.tasks.append(update.task)
        case WorkflowItem(), WorkflowTaskUpdated():
            item.workflow.tasks[update.task_index] = update.task
        case _:
            pass
