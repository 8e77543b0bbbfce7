"""The paths of the backend but for the page's: who asks is told from the token, what they ask from the body."""

import asyncio
import time

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from backend.conversation import sessions
from backend.conversation.acting import Acting
from backend.conversation.errors import InvalidRequest
from backend.doors.chatkit import body
from backend.doors.chatkit.stream import check_pace
from backend.doors.identity import Identity, cookie_name
from backend.doors.parts import Parts, parts_of
from backend.doors.time_zone import time_zone_of
from backend.turn import reports
from service.database import schema
from service.telemetry import metrics


def chatkit(identity: Identity) -> APIRouter:
    """`POST /chatkit`."""
    router = APIRouter()

    @router.post("/chatkit")
    async def answer(request: Request) -> Response:
        parts = parts_of(request)
        acting = Acting(await identity.user_of(request, parts.engine), time_zone=time_zone_of(request))
        asked = body.parse(await request.body())
        if isinstance(asked, body.Plain):
            return await parts.plain.answer(asked, acting)
        return await parts.chatkit.answer(asked, acting)

    return router


def session(identity: Identity) -> APIRouter:
    """`POST /session` and `DELETE /session`: the page's cookie, in exchange for a token."""
    router = APIRouter()

    @router.post("/session")
    async def sign_in(request: Request) -> Response:
        if not identity.required:
            raise InvalidRequest("There is nobody to sign in: AUTH_MODE=none serves one local person.")
        person = await identity.sign_in(request)
        parts = parts_of(request)
        check_pace(parts.pace, person.user_id)  # or sessions that are ended would fill the database
        await sessions.tidy(parts.engine, person.user_id)
        response = JSONResponse({"user_id": person.user_id, "expires": person.expires})
        response.set_cookie(
            cookie_name(request),
            identity.session(person),
            max_age=max(0, person.expires - int(time.time())),
            httponly=True,
            secure=request.url.scheme == "https",
            samesite="strict",
        )
        return response

    @router.delete("/session")
    async def sign_out(request: Request) -> Response:
        await identity.sign_out(request, parts_of(request).engine)
        response = Response(status_code=204)
        secure = request.url.scheme == "https"
        response.delete_cookie(cookie_name(request), httponly=True, samesite="strict", secure=secure)
        return response

    return router


def operation() -> APIRouter:
    """`GET /health`, `/ready` and `/metrics`."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/ready")
    async def ready(request: Request) -> Response:
        return await readiness(parts_of(request))

    @router.get("/metrics")
    async def prometheus() -> Response:
        reports.TASKS.set(len(asyncio.all_tasks()))
        return metrics.response()

    return router


async def readiness(parts: Parts) -> Response:
    """200 when a turn could run now; the model, agents and other MCP servers are reported, not required."""
    found, tools_reason = await asyncio.gather(schema.look(parts.engine), parts.tools.problem())
    if reason := found.problem or tools_reason:
        return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)
    more = {"agents": parts.files.agents(), "unusable": parts.connectors.unusable(), "warning": found.warning}
    told = {name: value for name, value in more.items() if value}
    return JSONResponse({"status": "ready", "model": await parts.model.client.report(), **told})
