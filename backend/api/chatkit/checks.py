"""What each operation of ChatKit needs, checked before anything runs or is stored."""

from chatkit import types as ck

from backend.api.chatkit import requests
from backend.api.messages import check_content
from backend.errors import InvalidRequest
from common.text import is_single_line_text, remove_invisible

_NO_ATTACHMENTS = "This assistant does not accept attachments. Describe what you need in words."
_MOST_RATED = 100
_FREE_CHARS = 500  # what a message of one part has around its text, and its choice of a model and a tool


def check_request(request: ck.ChatKitReq, *, message_chars: int) -> None:
    """Checks a request of ChatKit and normalizes limits and titles in it.

    Raises `InvalidRequest` or `MessageTooLong`.
    """
    match request:
        case ck.AttachmentsCreateReq() | ck.AttachmentsDeleteReq():
            raise InvalidRequest(_NO_ATTACHMENTS)
        case ck.InputTranscribeReq():
            raise InvalidRequest("This assistant does not accept dictation. Type the message instead.")
        case ck.ThreadsListReq(params=params) | ck.ItemsListReq(params=params):
            _normalize_limit(params)
        case ck.ThreadsUpdateReq(params=params):
            _normalize_title(params)
        case ck.ThreadsCreateReq(params=params) | ck.ThreadsAddUserMessageReq(params=params):
            check_message(params.input, message_chars)
        case ck.ItemsFeedbackReq(params=params) if len(params.item_ids) > _MOST_RATED:
            raise InvalidRequest(f"Send feedback on up to {_MOST_RATED} items at once.")
        case _:
            pass


def _normalize_limit(params: ck.ThreadListParams | ck.ItemsListParams) -> None:
    """Sets the size of a page to 20 by default and to the largest one at most."""
    if params.limit is not None and params.limit < 1:
        raise InvalidRequest("limit must be at least 1.")
    params.limit = min(params.limit or 20, requests.LONGEST_PAGE)


def _normalize_title(params: ck.ThreadUpdateParams) -> None:
    """Removes invisible characters from a title.

    Raises `InvalidRequest` unless it is one line of 1 to 200 characters.
    """
    if not is_single_line_text(title := params.title.strip(), max_length=requests.LONGEST_TITLE):
        raise InvalidRequest("A title must be one line of 1 to 200 visible characters.")
    params.title = remove_invisible(title).strip()


def check_message(message: ck.UserMessageInput, max_length: int) -> None:
    """Raises `InvalidRequest` for a message without visible text or with attachments, and `MessageTooLong`."""
    if message.attachments:
        raise InvalidRequest(_NO_ATTACHMENTS)
    check_content(message.content, most_chars=max_length, other_chars=_other_chars(message))


def _other_chars(message: ck.UserMessageInput) -> int:
    """Counts the characters of a message apart from its texts: its quote, and its other fields as JSON."""
    parts = [part.model_copy(update={"text": ""}) for part in message.content if part.type != "input_tag"]
    rest = message.model_copy(update={"content": parts, "quoted_text": None})
    return len(message.quoted_text or "") + max(0, len(rest.model_dump_json()) - _FREE_CHARS)
