"""Requests to `POST /chatkit`: their body, their checks, and what our page asks for in `metadata` and in actions."""

import hashlib
from dataclasses import dataclass, field
from typing import Annotated, Any

from chatkit import types as ck
from chatkit.actions import Action
from pydantic import BaseModel, Discriminator, FailFast, StrictInt, StrictStr, Tag, TypeAdapter, ValidationError

from backend.api.identity import AuthenticatedUser
from backend.api.messages import check_content
from backend.conversations.conversations import is_valid, parse_title
from backend.errors import InvalidRequest, shorten
from backend.model.providers import ModelEndpoint, check_options
from backend.runs.live_run import LiveRun
from backend.tools.table import TOOLS
from backend.users.idempotency import IdempotencyKey, check_key

_NO_ATTACHMENTS = "This assistant does not accept attachments. Describe what you need in words."
_MAX_RATED_ITEMS = 100
_FREE_CHARS = 500  # what a message of one part has around its text, and its choice of a model and a tool
_DEFAULT_PAGE, _MAX_PAGE = 20, 100

# Actions of our page that the protocol has no operation for. The first is about an answer, the others about no item.
CLEAR_FEEDBACK = "take_feedback_back"
EDIT = "edit_message"
SHOW_VERSION = "show_version"
FOLLOW = "follow"


class PlainMessage(BaseModel):
    message: StrictStr
    conversation_id: StrictInt | StrictStr | None = None
    user_id: StrictInt | StrictStr | None = None


class MessageEdit(BaseModel):
    """A message of the user, and what it is to say: a text, or parts of a message."""

    item_id: StrictStr
    text: StrictStr | None = None
    content: Annotated[list[ck.UserMessageContent], FailFast()] = []


@dataclass(slots=True)
class RequestContext:
    """A request of a user, and the run that `respond` follows, from its events after a number.

    `live` is that run if the request has started or continued it.
    """

    request: ck.ChatKitReq
    user: AuthenticatedUser
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    key: IdempotencyKey | None = None
    live: LiveRun | None = None
    run_id: str | None = None
    after: int = 0

    @property
    def user_id(self) -> str:
        return self.user.user_id

    @property
    def is_detached(self) -> bool:
        """Whether the run goes on when its reader leaves; in ChatKit's protocol leaving means Stop."""
        return self.request.metadata.get("detached") is True


def _get_kind(body: Any) -> str:
    return "plain" if isinstance(body, dict) and "message" in body and "type" not in body else "chatkit"


# The SDK makes its parser anew for each request, which takes 2 ms (openai-chatkit 1.6.5).
_BODY = TypeAdapter[ck.ChatKitReq | PlainMessage](
    Annotated[
        Annotated[ck.ChatKitReq, Tag("chatkit")] | Annotated[PlainMessage, Tag("plain")],
        Discriminator(_get_kind),
    ]
)


def parse_request(body: bytes) -> ck.ChatKitReq | PlainMessage:
    try:
        return _BODY.validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        kind, *place = problem["loc"] or ("chatkit",)
        if kind == "plain":
            raise InvalidRequest(
                "A request without a type needs message, a text. conversation_id and user_id are optional, and are "
                "texts or whole numbers."
            ) from None
        if problem["type"] == "union_tag_invalid":
            name = shorten(str(problem.get("ctx", {}).get("tag")))
            raise InvalidRequest(f"ChatKit has no request of the type {name}.") from None
        if problem["type"] in ("json_invalid", "union_tag_not_found"):
            raise InvalidRequest("The body is not a ChatKit request. Send JSON with type and params.") from None
        where = f" at {'.'.join(map(str, place))}" if place else ""
        raise InvalidRequest(f"The ChatKit request is not valid{where}: {problem['msg']}.") from None


def check_request(request: ck.ChatKitReq, *, message_chars: int) -> None:
    """Normalizes limits and titles. Raises `InvalidRequest` or `MessageTooLong`."""
    match request:
        case ck.AttachmentsCreateReq() | ck.AttachmentsDeleteReq():
            raise InvalidRequest(_NO_ATTACHMENTS)
        case ck.InputTranscribeReq():
            raise InvalidRequest("This assistant does not accept dictation. Type the message instead.")
        case ck.ThreadsListReq(params=params) | ck.ItemsListReq(params=params):
            if params.limit is not None and params.limit < 1:
                raise InvalidRequest("limit must be at least 1.")
            params.limit = min(params.limit or _DEFAULT_PAGE, _MAX_PAGE)
        case ck.ThreadsUpdateReq(params=params):
            params.title = parse_title(params.title)
        case ck.ThreadsCreateReq(params=params) | ck.ThreadsAddUserMessageReq(params=params):
            check_message(params.input, message_chars)
        case ck.ItemsFeedbackReq(params=params) if len(params.item_ids) > _MAX_RATED_ITEMS:
            raise InvalidRequest(f"Send feedback on up to {_MAX_RATED_ITEMS} items at once.")
        case _:
            pass


def check_message(message: ck.UserMessageInput | ck.UserMessageItem, max_chars: int) -> None:
    """Raises `InvalidRequest` for a message without visible text or with attachments, and `MessageTooLong`.

    Its quote counts, and so do its other fields as JSON, as far as they are longer than usual.
    """
    if message.attachments:
        raise InvalidRequest(_NO_ATTACHMENTS)
    parts = [part.model_copy(update={"text": ""}) for part in message.content if part.type != "input_tag"]
    rest = message.model_copy(update={"content": parts, "quoted_text": None})
    other_chars = len(message.quoted_text or "") + max(0, len(rest.model_dump_json()) - _FREE_CHARS)
    check_content(message.content, max_chars=max_chars, other_chars=other_chars)


def parse_idempotency_key(request: ck.StreamingReq) -> IdempotencyKey | None:
    key = request.metadata.get("idempotency_key")
    if key is None or (isinstance(request, ck.ThreadsCustomActionReq) and request.params.action.type != EDIT):
        return None
    check_key(key, "idempotency_key")
    sent = request.model_dump_json(exclude_unset=True)  # a later version of ChatKit may have more fields
    return IdempotencyKey(key, hashlib.sha256(sent.encode()).digest())


def parse_replaced_conversation(request: ck.ThreadsCreateReq) -> str | None:
    name = request.metadata.get("left")
    if name is not None and not (isinstance(name, str) and is_valid(name)):
        raise InvalidRequest("left must be the id or the name of a conversation.")
    return name


def get_changed_thread(request: ck.ChatKitReq) -> str | None:
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


def run_options(request: ck.StreamingReq, endpoint: ModelEndpoint) -> dict[str, Any]:
    """Returns the options of the run that a request starts; the protocol has no field for a temperature.

    A conversation that begins with "Let an agent do it" needs no approval of the tools that start agents. Raises
    `InvalidRequest` for what is not offered.
    """
    metadata = request.metadata
    is_message = isinstance(request, ck.ThreadsCreateReq | ck.ThreadsAddUserMessageReq)
    model = request.params.input.inference_options.model if is_message else None
    options = check_options(metadata.get("model", model), metadata.get("temperature"), endpoint=endpoint)
    if isinstance(request, ck.ThreadsCreateReq) and metadata.get("allow_agents") is True:
        options["allowed_tools"] = [name for name, row in TOOLS.items() if row.agent]
    return options


def parse_edit(action: Action[str, Any]) -> MessageEdit:
    try:
        edit = MessageEdit.model_validate(action.payload)
    except ValidationError:
        edit = None
    if edit is None or (edit.text is None and not edit.content):
        raise InvalidRequest("An edit needs the item_id of the message and the new text.")
    return edit


def parse_version(action: Action[str, Any]) -> str:
    run_id = action.payload.get("interaction_id") if isinstance(action.payload, dict) else None
    if not isinstance(run_id, str):
        raise InvalidRequest("Send the interaction_id of the version.")
    return run_id
