"""The body of a request: one that ChatKit knows, or a message without its words."""

from typing import Any

from chatkit.types import ChatKitReq
from pydantic import BaseModel, StrictInt, StrictStr, TypeAdapter, ValidationError

from backend.conversation.errors import InvalidRequest
from service.workers import json_body

_REQUEST = TypeAdapter[ChatKitReq](ChatKitReq)


def check(body: bytes, *, most: int = json_body.MOST_VALUES) -> None:
    """Raise `InvalidRequest` for a body that costs too much to read, or has text that cannot be stored.

    `most` is how many values it may have.
    """
    if sentence := json_body.problem(body, most):
        raise InvalidRequest(sentence)
    if b"\\u0000" in body and any("\0" in text for text in _strings(body)):
        raise InvalidRequest("The text contains a NUL character: take it out and send it again.")


class Plain(BaseModel):
    """What a program without a ChatKit library sends."""

    message: StrictStr
    conversation_id: StrictInt | StrictStr | None = None
    user_id: StrictInt | StrictStr | None = None


def parse(body: bytes) -> ChatKitReq | Plain:
    """The request in a body; raises `InvalidRequest` with a sentence that says what is wrong with it."""
    check(body)
    try:
        return _REQUEST.validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] == "union_tag_invalid":
            raise InvalidRequest("This type of request is unknown to ChatKit.") from None
        if problem["type"] == "union_tag_not_found" and b'"message"' in body:
            return _plain(body)
        if problem["type"] in ("json_invalid", "union_tag_not_found"):
            raise InvalidRequest("The body is not a ChatKit request: send JSON with type and params.") from None
        place = ".".join(str(part) for part in problem["loc"])
        raise InvalidRequest(f"The ChatKit request is not valid at {place}: {problem['msg']}.") from None


def _plain(body: bytes) -> Plain:
    try:
        return Plain.model_validate_json(body)
    except ValidationError:
        raise InvalidRequest(
            "A message without a type is {conversation_id, user_id, message}: message is a text, the others are texts "
            "or whole numbers, and may be left out."
        ) from None


def _strings(body: bytes) -> list[str]:
    """Every string in a JSON body, keys too; empty when it is no JSON."""
    try:
        waiting: list[Any] = [TypeAdapter(Any).validate_json(body)]
    except ValidationError:
        return []
    found: list[str] = []
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case dict() as mapping:
                waiting.extend((*mapping, *mapping.values()))
            case list() as values:
                waiting.extend(values)
    return found
