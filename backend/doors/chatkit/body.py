"""The body of a request: one that ChatKit knows, or a message without its words."""

from chatkit.types import ChatKitReq
from pydantic import BaseModel, StrictInt, StrictStr, TypeAdapter, ValidationError

from backend.api.body import check_json
from backend.errors import InvalidRequest

_REQUEST = TypeAdapter[ChatKitReq](ChatKitReq)


class Plain(BaseModel):
    """What a program without a ChatKit library sends."""

    message: StrictStr
    conversation_id: StrictInt | StrictStr | None = None
    user_id: StrictInt | StrictStr | None = None


def parse(body: bytes) -> ChatKitReq | Plain:
    """The request in a body; raises `InvalidRequest` with a sentence that says what is wrong with it."""
    check_json(body)
    try:
        return _REQUEST.validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] == "union_tag_invalid":
            raise InvalidRequest("ChatKit has no request of this type.") from None
        if problem["type"] == "union_tag_not_found" and b'"message"' in body:
            return _plain(body)
        if problem["type"] in ("json_invalid", "union_tag_not_found"):
            raise InvalidRequest("The body is not a ChatKit request. Send JSON with type and params.") from None
        place = ".".join(str(part) for part in problem["loc"])
        raise InvalidRequest(f"The ChatKit request is not valid at {place}: {problem['msg']}.") from None


def _plain(body: bytes) -> Plain:
    try:
        return Plain.model_validate_json(body)
    except ValidationError:
        raise InvalidRequest(
            "A request without a type needs message, a text. conversation_id and user_id are optional, and are texts "
            "or whole numbers."
        ) from None
