"""`POST /chatkit`: ChatKit's protocol, and plain messages."""

from chatkit.server import StreamingResult
from fastapi import APIRouter, Request, Response

from backend.api.chatkit.plain_messages import OtherUser, answer_plain_message
from backend.api.chatkit.requests import RequestContext, parse_plain_message
from backend.api.dependencies import AppServices, LimitedUser, UserRoute, check_json, check_owner
from backend.api.sse import EventStream

router = APIRouter(route_class=UserRoute)


@router.post("/chatkit")
async def process(request: Request, services: AppServices, user: LimitedUser) -> Response:
    body = await request.body()
    check_json(body)
    if (message := parse_plain_message(body)) is not None:
        # Without sign-in there is one user, whatever the body says.
        is_other = message.user_id not in (None, "") and str(message.user_id) != user.user_id
        if is_other and request.app.state.identity.required:
            raise OtherUser
        if message.conversation_id is not None:
            await check_owner(services.database, user, str(message.conversation_id))
        return await answer_plain_message(services.interactions, message, user.user_id, time_zone=user.time_zone)
    context = RequestContext(user.user_id, user.time_zone, user.is_guest)
    result = await services.chatkit.process(body, context)
    if isinstance(result, StreamingResult):
        return EventStream(result)
    return Response(result.json, media_type="application/json")
