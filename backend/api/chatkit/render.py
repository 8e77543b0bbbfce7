"""Renders records, cards and the work of sub-agents as ChatKit's items."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from chatkit import types as ck
from pydantic import BaseModel, Field

from backend.api.messages import content_of
from backend.cards.widget import Card, Json, Workflow
from backend.conversations.branches import RunPage
from backend.conversations.records import Entry
from backend.runs.outcomes import is_failure, may_retry, sentence_of_notice

_AGENT: Any = "agent"

# Items with fields for our page that the protocol has no place for; other clients ignore them.


class Versions(BaseModel):
    """Which of how many alternatives is shown, and the interactions before and after it."""

    number: int
    count: int
    previous: str | None
    next: str | None


class VersionedMessage(ck.UserMessageItem):
    versions: Versions


class RatedMessage(ck.AssistantMessageItem):
    feedback: Literal["positive", "negative"]


Action = Literal["continue", "retry"]


class Notice(ck.TaskItem):
    """A note about an answer, and what the user can do about it."""

    actions: list[Action]


_ICONS: Mapping[Action, Any] = {"continue": "play", "retry": "reload"}

for _model in (VersionedMessage, RatedMessage, Notice):
    _model.model_rebuild(_types_namespace={**vars(ck), "Versions": Versions})


Shown = Entry | Card | Workflow


def order_shown(page: RunPage, cards: Sequence[Card], workflows: Sequence[Workflow]) -> list[Shown]:
    """Returns what is shown of whole runs, in the order in which it was first shown."""
    return sorted([*page.entries, *cards, *workflows], key=_get_number)


def render_item(thread_id: str, shown: Shown, page: RunPage) -> ck.ThreadItem | None:
    """Renders what is shown of a page; None for an entry that users do not see."""
    match shown:
        case Card():
            return render_card(thread_id, shown)
        case Workflow():
            return render_workflow(thread_id, shown)
        case Entry():
            return render_entry(thread_id, shown, _render_versions(shown, page))


def _get_number(shown: Shown) -> int:
    return shown.last_seq or 0 if isinstance(shown, Entry) else shown.number


def render_card(thread_id: str, card: Card) -> ck.WidgetItem:
    """Renders a card without validating its widget, which may have thousands of components."""
    head: dict[str, Any] = {"id": card.id, "thread_id": thread_id, "created_at": card.created_at}
    return ck.WidgetItem.model_construct(**head, widget=card.root, copy_text=card.copy_text)


def render_workflow(thread_id: str, workflow: Workflow, *, is_live: bool = False) -> ck.WorkflowItem:
    """Renders the work of a sub-agent; steps are shown as running only while it `is_live`."""
    title = f"{workflow.agent}: needs your approval" if workflow.is_waiting else workflow.summary
    shown = ck.Workflow(
        type="custom",
        tasks=[_render_step(step, is_live=is_live) for step in workflow.steps],
        summary=ck.CustomSummary(title=title, icon=_AGENT) if title else None,
        expanded=workflow.summary is None,
    )
    return ck.WorkflowItem(id=workflow.id, thread_id=thread_id, created_at=workflow.created_at, workflow=shown)


def _render_step(step: Json, *, is_live: bool) -> ck.CustomTask:
    indicator: Any = {"done": "complete", "running": "loading" if is_live else "none"}.get(step["state"], "none")
    return ck.CustomTask(
        title=step["title"] or None, content=step["content"] or None, icon=step["icon"], status_indicator=indicator
    )


def _render_versions(entry: Entry, page: RunPage) -> Versions | None:
    ids = page.alternatives.get(entry.run_id)
    if ids is None or page.of_run(entry.run_id).find_first("user_message") is not entry:
        return None
    place = ids.index(entry.run_id)
    return Versions(
        number=place + 1,
        count=len(ids),
        previous=ids[place - 1] if place else None,
        next=ids[place + 1] if place + 1 < len(ids) else None,
    )


def render_entry(thread_id: str, entry: Entry, versions: Versions | None = None) -> ck.ThreadItem | None:
    """Renders an entry as an item; None for an entry that users do not see."""
    head: dict[str, Any] = {
        "id": entry.id,
        "thread_id": thread_id,
        "created_at": entry.created_at or datetime.now(UTC),
    }
    match entry.kind:
        case "user_message":
            message = head | {
                "content": content_of(entry.text, entry.details),
                "quoted_text": (entry.details or {}).get("quoted_text"),
                "inference_options": ck.InferenceOptions(),
            }
            return VersionedMessage(**message, versions=versions) if versions else ck.UserMessageItem(**message)
        case "assistant_message":
            content = [ck.AssistantMessageContent(text=entry.text)]
            if entry.feedback:
                return RatedMessage.model_validate({**head, "content": content, "feedback": entry.feedback})
            return ck.AssistantMessageItem(**head, content=content)
        case "reasoning":
            seconds = (entry.details or {}).get("seconds")
            summary = ck.DurationSummary(duration=seconds) if seconds else None
            thought = ck.Workflow(type="reasoning", tasks=[ck.ThoughtTask(content=entry.text)], summary=summary)
            return ck.WorkflowItem(**head, workflow=thought)
        case "notice" if entry.details:
            actions = _choose_actions(entry.details["code"])
            icon = _ICONS[actions[0]] if actions else "info"
            return Notice(**head, task=ck.CustomTask(title=sentence_of_notice(entry), icon=icon), actions=actions)
        case "summary" if count := (entry.details or {}).get("messages"):
            several = "1 earlier message was" if count == 1 else f"{count:,} earlier messages were"
            return Notice(**head, task=ck.CustomTask(title=f"{several} summarised.", icon="info"), actions=[])
        case _:
            return None


def _choose_actions(code: str) -> list[Action]:
    if not is_failure(code) and code not in ("answer_repeated", "nothing_changed"):
        return ["continue"]
    return ["retry"] if may_retry(code) else []


class ItemPage(ck.Page[ck.ThreadItem]):
    """Its items are also serialized, each on its own: all of them at once would take long.

    `answering` is the run that was running when the items were read: whoever asks for it apart from them can miss the
    end of an answer.
    """

    answering: str | None = None
    serialized: list[bytes] = Field(default=[], exclude=True)


def serialize_items(page: ItemPage) -> bytes:
    return _insert_items(serialize(page.model_copy(update={"data": []})), page)


def serialize_thread(thread: ck.Thread, page: ItemPage) -> bytes:
    """Serializes a thread with the items of a page, in place of its own."""
    empty = ck.Page[ck.ThreadItem](has_more=page.has_more, after=page.after)
    return _insert_items(serialize(thread.model_copy(update={"items": empty})), page)


def _insert_items(serialized: bytes, page: ItemPage) -> bytes:
    empty = b'"data":[]'  # not in a text, in which quotes are escaped
    return serialized.replace(empty, empty[:-1] + b",".join(page.serialized) + b"]", 1)


def serialize(obj: BaseModel) -> bytes:
    """Serializes as the SDK does, with the fields of our own classes too."""
    context = {"exclude_metadata": True}
    return obj.model_dump_json(by_alias=True, exclude_none=True, context=context, serialize_as_any=True).encode()
