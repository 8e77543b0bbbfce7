"""Items with fields for our page that ChatKit's protocol has no place for; other clients ignore them."""

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


for _model in (VersionedMessage, RatedMessage):
    _model.model_rebuild(_types_namespace={**vars(ck), "Versions": Versions})
