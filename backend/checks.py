"""What each ChatKit operation needs to be true, asked before anything runs or is stored."""

from chatkit import types as ck

from backend.errors import InvalidRequest, MessageTooLong, NotFound
from backend.identity import RequestContext
from backend.store_adapter import PostgresStore

_NO_ATTACHMENTS = "This assistant takes no attachments: describe what you need in words."
LONGEST_PAGE = 100


async def check(request: ck.ChatKitReq, store: PostgresStore, context: RequestContext, *, message_chars: int) -> None:
    """Raise `NotFound`, `InvalidRequest` or `MessageTooLong` for what cannot be done."""
    match request:
        case ck.AttachmentsCreateReq() | ck.AttachmentsDeleteReq():
            raise InvalidRequest(_NO_ATTACHMENTS)
        case ck.InputTranscribeReq():
            raise InvalidRequest("This assistant takes no dictation: type the message instead.")
        case ck.ThreadsListReq(params=params) | ck.ItemsListReq(params=params):
            _check_limit(params)
        case ck.ThreadsUpdateReq(params=params):
            _check_title(params)
        case ck.ThreadsCreateReq(params=params) | ck.ThreadsAddUserMessageReq(params=params):
            _check_message(params.input, message_chars)
        case _:
            pass
    if isinstance(request, ck.ThreadsAddUserMessageReq):
        return  # the thread is looked up where its lease is taken
    if (thread_id := getattr(request.params, "thread_id", None)) is not None:
        await store.load_thread(thread_id, context)
    await _check_item(request, store, context)


def _check_limit(params: ck.ThreadListParams | ck.ItemsListParams) -> None:
    if params.limit is not None and params.limit < 1:
        raise InvalidRequest("limit must be at least 1.")
    params.limit = min(params.limit or 20, LONGEST_PAGE)


def _check_title(params: ck.ThreadUpdateParams) -> None:
    params.title = params.title.strip()
    if not 1 <= len(params.title) <= 200:
        raise InvalidRequest("A title has 1 to 200 characters.")


def _check_message(message: ck.UserMessageInput, longest: int) -> None:
    if message.attachments:
        raise InvalidRequest(_NO_ATTACHMENTS)
    if not any(part.text.strip() for part in message.content):
        raise InvalidRequest("The message is empty: write what you want to have done.")
    length = sum(len(part.text) for part in message.content) + len(message.quoted_text or "")
    if length > longest:
        raise MessageTooLong(f"The message has {length:,} characters; {longest:,} is the most. Split it up.")


async def _check_item(request: ck.ChatKitReq, store: PostgresStore, context: RequestContext) -> None:
    match request:
        case ck.ThreadsRetryAfterItemReq(params=params):
            item = await store.load_item(params.thread_id, params.item_id, context)
            if not isinstance(item, ck.UserMessageItem):
                raise InvalidRequest("Only a message of the person can be answered again.")
        case ck.ThreadsAddStructuredInputReq(params=params):
            item = await store.load_item(params.thread_id, params.item_id, context)
            if not isinstance(item, ck.StructuredInputItem) or item.status != "pending":
                raise InvalidRequest("This question is not open any more.")
        case ck.ThreadsAddClientToolOutputReq(params=params):
            last = await store.load_thread_items(params.thread_id, None, 1, "desc", context)
            if not any(isinstance(item, ck.ClientToolCallItem) and item.status == "pending" for item in last.data):
                raise InvalidRequest("No tool call of this conversation waits for an output.")
        case ck.ThreadsCustomActionReq(params=params) | ck.ThreadsSyncCustomActionReq(params=params):
            if params.item_id is None:
                raise InvalidRequest(f"There is no action {params.action.type!r}.")
            if not isinstance(await store.load_item(params.thread_id, params.item_id, context), ck.WidgetItem):
                raise NotFound
        case _:
            pass
