"""`POST /chatkit`: ChatKit's protocol, and plain messages, for a program that has only curl."""

from typing import Any

from chatkit.server import StreamingResult
from fastapi import APIRouter, Request, Response

from backend.api.chatkit.plain_messages import answer_plain_message
from backend.api.chatkit.requests import PlainMessage, RequestContext, parse_request
from backend.api.dependencies import AppServices, LimitedUser, UserRoute, check_json
from backend.api.openapi import errors
from backend.api.sse import MEDIA_TYPE, EventStream
from backend.errors import BackendError

_REQUEST = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}, "params": {"type": "object"}, "metadata": {"type": "object"}},
    "description": "A request of the protocol of openai-chatkit, such as `threads.create`.",
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"anyOf": [_REQUEST, PlainMessage.model_json_schema()]}}},
    }
}
_EVENT = {"type": "object", "required": ["data"], "properties": {"data": {"type": "string", "description": "JSON."}}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The protocol's response, or its events, which also tell of limits and of failed answers.",
        "content": {"application/json": {"schema": {"type": "object"}}, MEDIA_TYPE: {"schema": _EVENT}},
    }
}

router = APIRouter(route_class=UserRoute)


class ForeignUserId(BackendError):
    """This user_id is not your own. Leave it out: your sign-in says who you are."""

    code, status = "other_user", 403


@router.post("/chatkit", response_class=Response, responses=_RESPONSES | errors(404, 409), openapi_extra=_BODY)
async def process(request: Request, services: AppServices, user: LimitedUser) -> Response:
    body = await request.body()
    check_json(body)
    parsed = parse_request(body)
    if isinstance(parsed, PlainMessage):
        # Without sign-in there is one user, whatever the body says.
        is_other = parsed.user_id not in (None, "") and str(parsed.user_id) != user.user_id
        if is_other and request.app.state.identity.required:
            raise ForeignUserId
        return await answer_plain_message(services, parsed, user)
    context = RequestContext(parsed, user)
    result = await services.chatkit.process(body, context)
    if isinstance(result, StreamingResult):
        return EventStream(result)
    return Response(result.json, media_type="application/json")
