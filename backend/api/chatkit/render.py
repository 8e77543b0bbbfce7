"""Renders records, cards and the work of sub-agents as ChatKit's items."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from chatkit import types as ck
from chatkit.widgets import WidgetRoot
from pydantic import BaseModel, TypeAdapter

from backend.api.messages import content_of
from backend.cards.widget import Card, Json, Workflow
from backend.conversations.branches import RunPage
from backend.conversations.records import Entry
from backend.runs.outcomes import is_failure, may_retry, sentence_of_notice

_WIDGET = TypeAdapter[WidgetRoot](WidgetRoot)
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


def render_page(
    thread_id: str, page: RunPage, cards: Sequence[Card], workflows: Sequence[Workflow]
) -> list[ck.ThreadItem]:
    """Renders the items of whole runs, in the order in which they were first shown."""
    numbered: list[tuple[int, ck.ThreadItem]] = [
        (entry.last_seq or 0, item)
        for entry in page.entries
        if (item := render_entry(thread_id, entry, _render_versions(entry, page))) is not None
    ]
    numbered += [(card.number, render_card(thread_id, card)) for card in cards]
    numbered += [(workflow.number, render_workflow(thread_id, workflow)) for workflow in workflows]
    return [item for _, item in sorted(numbered, key=lambda item: item[0])]


def render_card(thread_id: str, card: Card) -> ck.WidgetItem:
    return ck.WidgetItem(
        id=card.id,
        thread_id=thread_id,
        created_at=card.created_at,
        widget=_WIDGET.validate_python(card.root),
        copy_text=card.copy_text,
    )


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


def serialize(obj: BaseModel) -> bytes:
    """Serializes as the SDK does, with the fields of our own classes too."""
    context = {"exclude_metadata": True}
    return obj.model_dump_json(by_alias=True, exclude_none=True, context=context, serialize_as_any=True).encode()
