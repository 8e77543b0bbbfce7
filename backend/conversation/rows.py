"""Rows ↔ what a conversation holds. They are stored as ChatKit's items, whose words are known here and at its door."""

import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents.items import TResponseInputItem
from chatkit import types
from chatkit.agents import ThreadItemConverter
from chatkit.types import (
    ActiveStatus,
    AssistantMessageContent,
    AssistantMessageItem,
    CustomSummary,
    CustomTask,
    DurationSummary,
    FeedbackKind,
    HiddenContextItem,
    Page,
    TaskItem,
    ThoughtTask,
    Thread,
    ThreadItem,
    ThreadMetadata,
    ThreadStatus,
    UserMessageInput,
    UserMessageItem,
    WidgetItem,
    Workflow,
    WorkflowItem,
)
from chatkit.widgets import WidgetRoot
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from backend.context import hidden_context as hidden
from backend.context import tags as tagged
from backend.conversation.acting import Acting
from backend.conversation.items import (
    Ending,
    Hidden,
    Item,
    Json,
    Message,
    Said,
    Summarised,
    Thought,
    WhatNext,
    Widget,
    Work,
)
from backend.conversation.models import Message as MessageRow
from backend.conversation.runs.inbox import Input, Mode
from service.database import to_utc

logger = logging.getLogger(__name__)

Storable = Item | ThreadItem
THREAD_ITEM = TypeAdapter[ThreadItem](ThreadItem)
_WIDGET = TypeAdapter[WidgetRoot](WidgetRoot)
ROLES = {"user_message": "user", "assistant_message": "assistant"}
VISIBLE = (
    "user_message",
    "assistant_message",
    "client_tool_call",
    "widget",
    "generated_image",
    "structured_input",
    "workflow",
    "task",
    "end_of_turn",
)
ONLY_SHOWN = (
    "widget",
    "workflow",
    "task",
    "generated_image",
    "end_of_turn",
    "summary",
)  # nothing for the model to read
ASKING = ("user_message", "structured_input", "client_tool_call")
_KEPT = {"content", "quoted_text", "inference_options"}  # of a message
_ICONS: dict[WhatNext, Any] = {"go on": "play", "ask again": "reload", "nothing": "info"}
_AGENT: Any = "agent"
_SUMMARISED = re.compile(r"([\d,]+) earlier messages? (?:was|were) summarised\.")
_WHAT_NEXT: dict[Any, WhatNext] = {icon: what_next for what_next, icon in _ICONS.items()}


class RatedMessage(AssistantMessageItem):
    """An answer with the thumb it was given, for which ChatKit's protocol has no place: other clients pass it over."""

    content: list[AssistantMessageContent]
    feedback: FeedbackKind


class AnsweredMetadata(ThreadMetadata):
    """A thread with the run that answers in it now, for which ChatKit's protocol has no place."""

    status: ThreadStatus = Field(default_factory=ActiveStatus)
    answering: str | None = None


class UnreadMessage(UserMessageItem):
    """A message that the model has not read yet: it waits for the answer that runs, or was left unsent."""

    mode: Mode
    is_queued: bool


UnreadMessage.model_rebuild(_types_namespace={**vars(types), "Mode": Mode})


class AnsweredThread(Thread):
    """The same, as it is shown, and with what was said to it and not read yet."""

    status: ThreadStatus = Field(default_factory=ActiveStatus)
    items: Page[ThreadItem]
    answering: str | None = None
    unread: list[UnreadMessage] | None = None


class Versions(BaseModel):
    """Which of how many runs beside each other is shown, and the ids of those before and after it."""

    number: int
    count: int
    previous: str | None
    next: str | None


class VersionedMessage(UserMessageItem):
    """A message that has other versions, or other answers: as `RatedMessage`, for who knows of them."""

    versions: Versions


VersionedMessage.model_rebuild(_types_namespace={**vars(types), "Versions": Versions})


class StoredItem(NamedTuple):
    """What is read of a row of `messages`."""

    seq: int
    id: str
    kind: str
    item: dict[str, Any]
    feedback: str | None = None


def to_thread(row: Mapping[str, Any]) -> ThreadMetadata:
    """The thread in a row of `conversations`."""
    return AnsweredMetadata.model_validate({**row, "created_at": to_utc(row["created_at"])})


def listed(thread: ThreadMetadata) -> AnsweredThread:
    """The thread as a list of them has it, without its items."""
    return AnsweredThread(**thread.model_dump(exclude={"metadata"}), items=Page())


def to_item(row: StoredItem | MessageRow, versions: Versions | None = None) -> ThreadItem | None:
    """The item a row holds, or None for a type this version of ChatKit does not know."""
    try:
        item = THREAD_ITEM.validate_python(row.item)
        if versions is not None:
            return VersionedMessage.model_validate({**row.item, "versions": versions})
        if row.feedback and isinstance(item, AssistantMessageItem):
            return RatedMessage.model_validate({**row.item, "feedback": row.feedback})
        return item
    except ValidationError:
        logger.warning("item %s of kind %s is not shown: unknown to this version", row.id, row.kind)
        return None


def from_item(thread_id: str, item: Storable, acting: Acting) -> dict[str, Any]:
    """The row of an item."""
    usage = item.usage if isinstance(item, Message | Hidden) else None
    item = as_shown(thread_id, item)
    created_at = to_utc(item.created_at)
    kind = item.content["kind"] if isinstance(item, HiddenContextItem) and isinstance(item.content, dict) else item.type
    return {
        "conversation_id": thread_id,
        "id": item.id,
        "user_id": acting.user_id,
        "run_id": acting.run_id,
        "role": ROLES.get(item.type, "app"),
        "kind": kind,
        "item": item.model_copy(update={"created_at": created_at}).model_dump(mode="json", by_alias=True),
        "created_at": created_at,
        "usage": usage,
    }


def as_shown(thread_id: str, item: Storable) -> ThreadItem:
    """The item as ChatKit has it; one that grows, as it is now."""
    match item:
        case Said(body=body):
            return UserMessageItem.model_validate({**body, **_head(thread_id, item)})
        case Message(parts=parts):
            content = [AssistantMessageContent(text=text) for text in parts]
            return AssistantMessageItem(**_head(thread_id, item), content=content)
        case Thought(text=text, seconds=seconds):
            summary = None if seconds is None else DurationSummary(duration=seconds)
            thoughts = Workflow(type="reasoning", tasks=[ThoughtTask(content=text)], summary=summary)
            return WorkflowItem(**_head(thread_id, item), workflow=thoughts)
        case Work(agent=agent, steps=steps, ended=ended):
            title = ended or f"{agent.capitalize()}: did not finish"  # it may end there, and nobody say so
            summary = CustomSummary(title=title, icon=_AGENT)
            work = Workflow(type="custom", tasks=[as_task(step) for step in steps], summary=summary, expanded=not ended)
            return WorkflowItem(**_head(thread_id, item), workflow=work)
        case Widget(root=root, copy_text=copied):
            return WidgetItem(**_head(thread_id, item), widget=_WIDGET.validate_python(root), copy_text=copied)
        case Ending(sentence=sentence, next=what_next):
            return TaskItem(**_head(thread_id, item), task=CustomTask(title=sentence, icon=_ICONS[what_next]))
        case Summarised(messages=messages):
            several = "1 earlier message was" if messages == 1 else f"{messages:,} earlier messages were"
            task = CustomTask(title=f"{several} summarised.", icon=_ICONS["nothing"])
            return TaskItem(**_head(thread_id, item), task=task)
        case Hidden(content=content):
            return HiddenContextItem(**_head(thread_id, item), content=content)
        case _:
            return item


def as_task(step: Json, *, live: bool = False) -> CustomTask:
    """A step of an agent's work; whether it is running is told only while somebody looks."""
    shown: Any = {"done": "complete", "running": "loading" if live else "none"}.get(step["state"], "none")
    return CustomTask(
        title=step["title"] or None, content=step["content"] or None, icon=step["icon"], status_indicator=shown
    )


def _step_of(task: Any) -> Json:
    state = "done" if task.status_indicator == "complete" else "none"
    return {"title": task.title or "", "content": task.content or "", "icon": task.icon, "state": state}


def _head(thread_id: str, item: Item) -> dict[str, Any]:
    return {"id": item.id, "thread_id": thread_id, "created_at": to_utc(item.created_at)}


def said(message: UserMessageInput) -> Said:
    """What the person wrote in a request."""
    kept = message.model_dump(mode="json", include=_KEPT)
    return Said(text=said_text(message), body=kept)


def said_text(item: UserMessageItem | UserMessageInput, *, numbered: bool = False) -> str:
    """What the person wrote, below what they quoted; with tasks by their titles, or `numbered`."""
    text = tagged.as_text(item.content, numbered=numbered)
    if not item.quoted_text:
        return text
    quote = "\n".join(f"> {line}" for line in item.quoted_text.splitlines())
    return f"{quote}\n\n{text}"


def widget(item: WidgetItem) -> Widget:
    """The widget that is shown, as a value."""
    root = item.widget.model_dump(mode="json")
    return Widget(root=root, copy_text=item.copy_text or "", id=item.id, created_at=item.created_at)


def to_value(row: StoredItem) -> Item | None:
    """What `as_shown` made the row of, or None for a type that no turn writes."""
    item = to_item(row)
    head: dict[str, Any] = {"id": row.id, "created_at": item.created_at} if item else {}
    match item:
        case UserMessageItem():
            body = item.model_dump(mode="json", include=_KEPT)
            return Said(text=said_text(item), body=body, **head)
        case AssistantMessageItem(content=content):
            return Message(parts=[part.text for part in content], **head)
        case WorkflowItem(workflow=Workflow(type="reasoning", tasks=[ThoughtTask(content=text)], summary=summary)):
            seconds = summary.duration if isinstance(summary, DurationSummary) else None
            return Thought(text=text, seconds=seconds, **head)
        case WorkflowItem(workflow=Workflow(type="custom", tasks=tasks, summary=CustomSummary(title=title))):
            return Work(steps=[_step_of(task) for task in tasks], ended=title, **head)
        case WidgetItem():
            return widget(item)
        case TaskItem(task=CustomTask(title=str(line))) if counted := _SUMMARISED.fullmatch(line):
            return Summarised(messages=int(counted[1].replace(",", "")), **head)
        case TaskItem(task=CustomTask(title=str(sentence), icon=icon)) if icon in _WHAT_NEXT:
            return Ending(sentence=sentence, next=_WHAT_NEXT[icon], **head)
        case HiddenContextItem(content=dict(content)):
            return Hidden(content=content, **head)
        case _:
            return None


def unread(thread_id: str, waiting: Input) -> UnreadMessage:
    """What waits in an inbox, as the page shows it."""
    item = as_shown(thread_id, waiting.said).model_dump()
    return UnreadMessage.model_validate({**item, "mode": waiting.mode, "is_queued": waiting.is_queued})


async def to_model_input(row: StoredItem) -> list[TResponseInputItem]:
    """The model's input for a row of what somebody said; nothing for a type that this version does not know."""
    try:
        item = THREAD_ITEM.validate_python(row.item)
    except ValidationError:
        return []
    return await _converter.to_agent_input(item)


class _Converter(ThreadItemConverter):
    async def user_message_to_input(self, item: UserMessageItem, is_last_message: bool = True) -> Any:
        titles = tagged.told(item.content)
        before = [] if titles is None else [{"role": "user", "content": titles}]
        return [*before, {"role": "user", "content": hidden.said(said_text(item, numbered=True))}]

    async def assistant_message_to_input(self, item: AssistantMessageItem) -> Any:
        # With an id it is an output message: the SDK joins the calls that follow to it, as it did in the turn itself.
        parts = [{"type": "output_text", "text": part.text, "annotations": []} for part in item.content]
        return {"type": "message", "id": item.id, "role": "assistant", "status": "completed", "content": parts}

    async def hidden_context_to_input(self, item: HiddenContextItem) -> None:
        """Nothing: the hidden rows this version knows never come here."""


_converter = _Converter()
