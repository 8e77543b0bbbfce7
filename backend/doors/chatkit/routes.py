"""`POST /chatkit`."""

from fastapi import APIRouter, Request, Response

from backend.api.dependencies import User
from backend.api.routing import UserRoute
from backend.doors.chatkit.body import Plain, parse
from backend.doors.parts import Services

router = APIRouter(route_class=UserRoute)


@router.post("/chatkit")
async def answer(request: Request, services: Services, user: User) -> Response:
    body = parse(await request.body())
    if not isinstance(body, Plain):
        return await services.chatkit.answer(body, user)
    if not request.app.state.identity.required:  # there is one user, whatever the body says
        body = body.model_copy(update={"user_id": None})
    return await services.plain.answer(body, user)
