"""What each ChatKit operation needs to be true, asked before anything runs or is stored."""

from chatkit import types as ck

from backend.context import tags as tagged
from backend.conversation.acting import Acting
from backend.conversation.store_adapter import PostgresStore
from backend.doors.chatkit import own
from backend.errors import BackendError, InvalidRequest, NotFound
from service.database.text import can_be_seen, is_line, without_unseen

NO_ATTACHMENTS = "This assistant does not accept attachments. Describe what you need in words."
LONGEST_PAGE = 100
_MOST_RATED = 100
_FREE_CHARS = 500  # what a message of one part has around its text, and its choice of a model and a tool


class MessageTooLong(BackendError):
    """The message is too long."""

    code, status = "message_too_long", 400


async def check(request: ck.ChatKitReq, store: PostgresStore, context: Acting, *, message_chars: int) -> None:
    """Raise `NotFound`, `InvalidRequest` or `MessageTooLong` for what cannot be done."""
    match request:
        case ck.AttachmentsCreateReq() | ck.AttachmentsDeleteReq():
            raise InvalidRequest(NO_ATTACHMENTS)
        case ck.InputTranscribeReq():
            raise InvalidRequest("This assistant does not accept dictation. Type the message instead.")
        case ck.ThreadsListReq(params=params) | ck.ItemsListReq(params=params):
            _check_limit(params)
        case ck.ThreadsUpdateReq(params=params):
            _check_title(params)
        case ck.ThreadsCreateReq(params=params) | ck.ThreadsAddUserMessageReq(params=params):
            check_message(params.input, message_chars)
        case ck.ItemsFeedbackReq(params=params) if len(params.item_ids) > _MOST_RATED:
            raise InvalidRequest(f"Send feedback on up to {_MOST_RATED} items at once.")
        case _:
            pass
    if isinstance(request, ck.ThreadsAddUserMessageReq):
        return  # the thread is looked up where its lease is taken
    if (thread_id := getattr(request.params, "thread_id", None)) is not None:
        await store.load_thread(thread_id, context)
    await _check_item(request, store, context, message_chars)


def _check_limit(params: ck.ThreadListParams | ck.ItemsListParams) -> None:
    if params.limit is not None and params.limit < 1:
        raise InvalidRequest("limit must be at least 1.")
    params.limit = min(params.limit or 20, LONGEST_PAGE)


def _check_title(params: ck.ThreadUpdateParams) -> None:
    if not is_line(title := params.title.strip(), longest=own.LONGEST_TITLE):
        raise InvalidRequest("A title must be one line of 1 to 200 visible characters.")
    params.title = without_unseen(title).strip()


def check_message(message: ck.UserMessageInput, longest: int) -> None:
    if message.attachments:
        raise InvalidRequest(NO_ATTACHMENTS)
    tagged.numbers_of(message.content)
    if (length := _length(message)) > longest:
        raise MessageTooLong(f"The message has {length:,} characters, and the limit is {longest:,}. Split it up.")
    if not any(part.type == "input_tag" or can_be_seen(part.text) for part in message.content):
        raise InvalidRequest("The message is empty. Write what you want the assistant to do.")


def _length(message: ck.UserMessageInput) -> int:
    """Characters of all that is stored of it: what is written as it is, the rest as JSON; nothing of tags is."""
    written = [part for part in message.content if part.type != "input_tag"]
    length = sum(len(part.text) for part in written) + len(message.quoted_text or "")
    parts = [part.model_copy(update={"text": ""}) for part in written]
    rest = message.model_copy(update={"content": parts, "quoted_text": None})
    return length + max(0, len(rest.model_dump_json()) - _FREE_CHARS)


async def _check_item(request: ck.ChatKitReq, store: PostgresStore, context: Acting, message_chars: int) -> None:
    match request:
        case ck.ThreadsRetryAfterItemReq(params=params):
            item = await store.load_item(params.thread_id, params.item_id, context)
            if not isinstance(item, ck.UserMessageItem):
                raise InvalidRequest("Only your own messages can be answered again.")
        case ck.ThreadsCustomActionReq(params=params) if params.action.type == own.EDIT:
            edit = own.edit_of(params.action)
            item = await store.load_item(params.thread_id, edit.item_id, context)
            check_message(own.edited(item, edit), message_chars)
        case ck.ThreadsCustomActionReq(params=params) if params.action.type in own.ON_NONE and params.item_id is None:
            own.check(params.action)
        case ck.ThreadsSyncCustomActionReq(params=params) if params.action.type == own.SHOW_VERSION:
            own.version_of(params.action)
        case ck.ThreadsAddStructuredInputReq(params=params):
            await store.load_item(params.thread_id, params.item_id, context)
            raise InvalidRequest("This question cannot be answered any more.")  # the assistant asks none of this kind
        case ck.ThreadsAddClientToolOutputReq():
            raise InvalidRequest("No tool call in this conversation is waiting for an output.")  # nor makes such calls
        case ck.ThreadsCustomActionReq(params=params) | ck.ThreadsSyncCustomActionReq(params=params):
            if params.item_id is None:
                raise InvalidRequest(f"There is no action {params.action.type!r}.")
            if isinstance(request, ck.ThreadsSyncCustomActionReq) and params.action.type == own.TAKE_BACK:
                await store.load_item(params.thread_id, params.item_id, context)
            elif not isinstance(await store.load_item(params.thread_id, params.item_id, context), ck.WidgetItem):
                raise NotFound
        case _:
            pass
