"""`POST /chatkit`: ChatKit's protocol, and plain messages."""

from collections.abc import AsyncIterator

from chatkit.server import StreamingResult
from chatkit.types import ErrorEvent, is_streaming_req
from fastapi import APIRouter, Request, Response

from backend.api.chatkit.context import RequestContext
from backend.api.chatkit.requests import parse_plain_message
from backend.api.chatkit.stream import frame
from backend.api.dependencies import LimitedUser, check_owner
from backend.api.messages import MessageTooLong
from backend.api.routing import UserRoute
from backend.api.services import AppServices
from backend.api.sse import EventStream
from backend.errors import BackendError, Busy, LimitReached, Overloaded

router = APIRouter(route_class=UserRoute)


@router.post("/chatkit")
async def process(request: Request, services: AppServices, user: LimitedUser) -> Response:
    """Processes a request of ChatKit or a plain message; responds with a stream or JSON.

    A streaming request that meets a limit gets its error in the stream, as OpenAI's widget does not show a status.
    """
    body = await request.body()
    if (message := parse_plain_message(body)) is not None:
        if not request.app.state.identity.required:  # there is one user, whatever the body says
            message.user_id = None
        if message.conversation_id is not None:
            await check_owner(services.database, user, str(message.conversation_id))
        return await services.plain_messages.answer(message, user.user_id, time_zone=user.time_zone)
    context = RequestContext(user.user_id, user.time_zone, user.is_guest)
    try:
        result = await services.chatkit.process(body, context)
    except (Busy, LimitReached, MessageTooLong, Overloaded) as error:
        if context.request is None or not is_streaming_req(context.request):
            raise
        return EventStream(_rejection(error))  # which OpenAI's widget shows, as it does not show a status
    if isinstance(result, StreamingResult):
        return EventStream(result)
    return Response(result.json, media_type="application/json")


async def _rejection(error: BackendError) -> AsyncIterator[bytes]:
    """Yields the error as the only event of a stream."""
    event = ErrorEvent(message=str(error), allow_retry=error.allow_retry)
    yield frame(event.model_dump_json(by_alias=True, exclude_none=True).encode())
