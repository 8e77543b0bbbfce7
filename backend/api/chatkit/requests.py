"""Requests to `POST /chatkit`: their body, and what our page asks for in `metadata` and in actions of its own."""

import hashlib
from typing import Any

from chatkit import types as ck
from chatkit.actions import Action
from pydantic import BaseModel, StrictInt, StrictStr, TypeAdapter, ValidationError
from pydantic_core import from_json

from backend.api.body import check_json
from backend.conversations.conversations import is_valid
from backend.errors import InvalidRequest
from backend.tools.table import TOOLS
from backend.users.idempotency import IdempotencyKey

LONGEST_TITLE = 200
LONGEST_PAGE = 100

# Actions of our page that the protocol has no operation for. The first is about an answer, the others about no item.
CLEAR_FEEDBACK = "take_feedback_back"
EDIT = "edit_message"
SHOW_VERSION = "show_version"
FOLLOW = "follow"
WITHOUT_ITEM = (EDIT, FOLLOW)

# The SDK makes its parser anew for each request, which takes 2 ms (openai-chatkit 1.6.5).
_REQUEST = TypeAdapter[ck.ChatKitReq](ck.ChatKitReq)


class PlainMessage(BaseModel):
    """What a program without a ChatKit library sends."""

    message: StrictStr
    conversation_id: StrictInt | StrictStr | None = None
    user_id: StrictInt | StrictStr | None = None


class Edit(BaseModel):
    """A message of the user, and what it is to say: a text, or parts of a message."""

    item_id: StrictStr
    text: StrictStr | None = None
    content: list[ck.UserMessageContent] = []


class _Version(BaseModel):
    interaction_id: StrictStr


def parse_request(body: str | bytes | bytearray) -> ck.ChatKitReq:
    """Parses a request of ChatKit. Raises `InvalidRequest` with a sentence that says what is wrong."""
    try:
        return _REQUEST.validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] == "union_tag_invalid":
            raise InvalidRequest("ChatKit has no request of this type.") from None
        if problem["type"] in ("json_invalid", "union_tag_not_found"):
            raise InvalidRequest("The body is not a ChatKit request. Send JSON with type and params.") from None
        place = ".".join(str(part) for part in problem["loc"])
        raise InvalidRequest(f"The ChatKit request is not valid at {place}: {problem['msg']}.") from None


def parse_plain_message(body: bytes) -> PlainMessage | None:
    """Parses a plain message; None for a body that is none. Raises `InvalidRequest`."""
    check_json(body)
    try:
        value = from_json(body)
    except ValueError:
        return None
    if not isinstance(value, dict) or "type" in value or "message" not in value:
        return None
    try:
        return PlainMessage.model_validate(value)
    except ValidationError:
        raise InvalidRequest(
            "A request without a type needs message, a text. conversation_id and user_id are optional, and are texts "
            "or whole numbers."
        ) from None


def idempotency_key_of(request: ck.StreamingReq) -> IdempotencyKey | None:
    """Returns `metadata.idempotency_key` of a request that starts a run, with a hash of all that it asks for; None for
    other requests. Raises `InvalidRequest`.
    """
    key = request.metadata.get("idempotency_key")
    if key is None or (isinstance(request, ck.ThreadsCustomActionReq) and request.params.action.type != EDIT):
        return None
    if not (isinstance(key, str) and key.isascii() and key.isprintable() and 0 < len(key) <= 255 and " " not in key):
        raise InvalidRequest("idempotency_key must have 1 to 255 visible ASCII characters.")
    return IdempotencyKey(key, hashlib.sha256(request.model_dump_json().encode()).digest())


def allowed_tools(request: ck.ChatKitReq) -> list[str]:
    """Returns the tools that need no approval: those that start agents, if the conversation begins with "Let an agent
    do it".
    """
    match request:
        case ck.ThreadsCreateReq(metadata={"allow_agents": True}):
            return [name for name, row in TOOLS.items() if row.agent]
        case _:
            return []


def replaced_conversation(request: ck.ThreadsCreateReq) -> str | None:
    """Returns the id or name of the conversation that the user cleared to begin this one; None if there was none.

    Raises `InvalidRequest`.
    """
    name = request.metadata.get("left")
    if name is not None and not (isinstance(name, str) and is_valid(name)):
        raise InvalidRequest("left must be the id or the name of a conversation.")
    return name


def changed_thread(request: ck.ChatKitReq) -> str | None:
    """Returns the conversation that a request changes; None for one that only reads, renames, rates or deletes it."""
    match request:
        case ck.ThreadsCustomActionReq(params=params) if params.action.type == FOLLOW:
            return None
        case ck.ThreadsGetByIdReq() | ck.ThreadsListReq() | ck.ItemsListReq():
            return None
        case ck.ItemsFeedbackReq() | ck.ThreadsUpdateReq() | ck.ThreadsDeleteReq():
            return None
        case _:
            return getattr(request.params, "thread_id", None)


def model_choice(request: ck.ChatKitReq) -> tuple[object, object]:
    """Returns the model and the temperature that are asked for, not checked yet; the protocol has no field for the
    second.
    """
    options: object = None
    if isinstance(request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq):
        options = request.params.input.inference_options.model
    return request.metadata.get("model", options), request.metadata.get("temperature")


def parse_edit(action: Action[str, Any]) -> Edit:
    """Parses the page's action that edits a message. Raises `InvalidRequest`."""
    try:
        edit = Edit.model_validate(action.payload)
    except ValidationError:
        edit = None
    if edit is None or (edit.text is None and not edit.content):
        raise InvalidRequest("An edit needs the item_id of the message and the new text.")
    return edit


def parse_version(action: Action[str, Any]) -> str:
    """Returns the id of the run whose alternative is to be shown. Raises `InvalidRequest`."""
    try:
        return _Version.model_validate(action.payload).interaction_id
    except ValidationError:
        raise InvalidRequest("Send the interaction_id of the version.") from None
