"""What our page asks for beyond ChatKit's protocol, as custom actions, and what it sends with them."""

from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from pydantic import BaseModel, Field, StrictStr, ValidationError

from backend.conversation import chats
from backend.conversation.runs.inbox import Mode
from backend.errors import InvalidRequest
from backend.tools.table import TOOLS

TAKE_BACK = "take_feedback_back"  # on an answer: ChatKit's protocol can give a thumb, and not take it back
EDIT = "edit_message"  # with no item, as all below
SHOW_VERSION = "show_version"
FOLLOW = "follow"  # what the running answer says, from its beginning
DROP_INPUT = "drop_input"  # of what was not read yet: to take it back
SEND_NOW = "send_input_now"  # or to have it read before the model's next request
OF_INPUT = (DROP_INPUT, SEND_NOW)
ON_NONE = (FOLLOW, *OF_INPUT)
"""Those that are about no item of the conversation."""
TURNS = (EDIT,)
"""Those that the assistant answers."""


LONGEST_TITLE = 200


class Edit(BaseModel):
    """A message of the person, and what it is to say: a text, or parts of a message."""

    item_id: str
    text: str | None = None
    content: list[ck.UserMessageContent] = []


class _Version(BaseModel):
    interaction_id: str


class _OfInput(BaseModel):
    input_id: StrictStr = Field(max_length=100)


def while_running(request: ck.ChatKitReq) -> Mode | None:
    """How a message is to be read if the assistant is answering, None when it is to be refused then."""
    match request:
        case ck.ThreadsAddUserMessageReq(metadata={"while_running": "steer" | "follow_up" as mode}):
            return mode
        case ck.ThreadsAddUserMessageReq(metadata={"while_running": _}):
            raise InvalidRequest('while_running must be "steer" or "follow_up".')
        case _:
            return None


def allowed(request: ck.ChatKitReq) -> tuple[str, ...]:
    """The tools that whoever began a conversation with a click on "Let an agent do it" is not asked about."""
    match request:
        case ck.ThreadsCreateReq(metadata={"allow_agents": True}):
            return tuple(name for name, shown in TOOLS.items() if shown.agent)
        case _:
            return ()


def left(request: ck.ThreadsCreateReq) -> str | None:
    """The conversation that is cleared, so that this one begins in its place."""
    asked = request.metadata.get("left")
    if asked is not None and not (isinstance(asked, str) and chats.can_be(asked)):
        raise InvalidRequest("left must be the id or the name of a conversation.")
    return asked


def asked_of_model(request: ck.ChatKitReq) -> tuple[object, object]:
    """The model that is to answer, and its temperature: beside the message where the protocol has no place for it."""
    given: object = None
    if isinstance(request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq):
        given = request.params.input.inference_options.model
    return request.metadata.get("model", given), request.metadata.get("temperature")


def titled(request: ck.ThreadsListReq) -> str:
    """What the titles of the conversations that are asked for have in them; empty: any title will do."""
    asked = request.metadata.get("titled", "")
    if not isinstance(asked, str) or len(asked) > LONGEST_TITLE:
        raise InvalidRequest(f"titled must be text of up to {LONGEST_TITLE} characters.")
    return asked


def input_of(action: Action[str, Any]) -> str:
    """The message that was not read yet."""
    try:
        return _OfInput.model_validate(action.payload).input_id
    except ValidationError:
        raise InvalidRequest("Send the input_id of the queued message.") from None


def check(action: Action[str, Any]) -> None:
    """Raise `InvalidRequest` for one of `ON_NONE` whose payload is none."""
    if action.type in OF_INPUT:
        input_of(action)


def edit_of(action: Action[str, Any]) -> Edit:
    try:
        edit = Edit.model_validate(action.payload)
    except ValidationError:
        edit = None
    if edit is None or (edit.text is None and not edit.content):
        raise InvalidRequest("An edit needs the item_id of the message and the new text.")
    return edit


def edited(message: ck.ThreadItem, edit: Edit) -> ck.UserMessageInput:
    """The message with another text; what it quotes stays."""
    if not isinstance(message, ck.UserMessageItem):
        raise InvalidRequest("Only your own messages can be edited.")
    return ck.UserMessageInput(
        content=edit.content or [ck.UserMessageTextContent(text=edit.text or "")],
        attachments=[],
        quoted_text=message.quoted_text,
        inference_options=message.inference_options,
    )


def version_of(action: Action[str, Any]) -> str:
    """The run that is asked for."""
    try:
        return _Version.model_validate(action.payload).interaction_id
    except ValidationError:
        raise InvalidRequest("Send the interaction_id of the version.") from None
