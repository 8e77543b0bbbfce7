"""What our page asks for beyond ChatKit's protocol, as custom actions, and what it sends with them."""

from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from pydantic import BaseModel, ValidationError

from backend.conversation.errors import InvalidRequest

TAKE_BACK = "take_feedback_back"  # on an answer: ChatKit's protocol can give a thumb, and not take it back
EDIT = "edit_message"  # with no item, as all below
SHOW_VERSION = "show_version"
FOLLOW = "follow"  # what the running answer says, from its beginning
TURNS = (EDIT,)
"""Those that the assistant answers."""


class Edit(BaseModel):
    """A message of the person, and what it is to say."""

    item_id: str
    text: str


class _Version(BaseModel):
    interaction_id: str


def edit_of(action: Action[str, Any]) -> Edit:
    try:
        return Edit.model_validate(action.payload)
    except ValidationError:
        raise InvalidRequest("An edit names its message in item_id, and has the new text.") from None


def edited(message: ck.ThreadItem, edit: Edit) -> ck.UserMessageInput:
    """The message with another text; what it quotes stays."""
    if not isinstance(message, ck.UserMessageItem):
        raise InvalidRequest("Only a message of the person can be edited.")
    return ck.UserMessageInput(
        content=[ck.UserMessageTextContent(text=edit.text)],
        attachments=[],
        quoted_text=message.quoted_text,
        inference_options=message.inference_options,
    )


def version_of(action: Action[str, Any]) -> str:
    """The run that is asked for."""
    try:
        return _Version.model_validate(action.payload).interaction_id
    except ValidationError:
        raise InvalidRequest("A version is named by its interaction_id.") from None
