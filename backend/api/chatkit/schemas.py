"""Items and threads with fields for our page that ChatKit's protocol has no place for; other clients ignore them."""

from typing import Literal

from chatkit import types as ck
from pydantic import BaseModel


class Versions(BaseModel):
    """Which of how many alternatives is shown, and the interactions before and after it."""

    number: int
    count: int
    previous: str | None
    next: str | None


class VersionedMessage(ck.UserMessageItem):
    """A message that was edited or answered again."""

    versions: Versions


class RatedMessage(ck.AssistantMessageItem):
    """An answer with its feedback."""

    feedback: Literal["positive", "negative"]


class UnreadMessage(ck.UserMessageItem):
    """A message that the model has not read: it is queued while its run goes on, and unsent afterwards."""

    mode: Literal["steer", "follow_up"]
    is_queued: bool


class ThreadHead(ck.ThreadMetadata):
    """A thread with the interaction that answers in it now, and what was not read yet."""

    answering: str | None = None
    unread: list[UnreadMessage] | None = None


class ShownThread(ck.Thread):
    answering: str | None = None
    unread: list[UnreadMessage] | None = None


for _model in (VersionedMessage, RatedMessage, UnreadMessage, ThreadHead, ShownThread):
    _model.model_rebuild(_types_namespace={**vars(ck), "Versions": Versions, "UnreadMessage": UnreadMessage})
