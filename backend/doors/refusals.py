"""What a request is answered that could not be: one sentence, and a status that tells programs the same."""

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.requests import ClientDisconnect

from backend.calendar.feed import CalendarUnavailable
from backend.conversation.errors import BackendError, Busy, InvalidRequest, LimitReached, NotFound, Overloaded
from backend.doors.calendar.door import NoCalendar
from backend.doors.chatkit.checks import MessageTooLong
from backend.doors.chatkit.plain import SomebodyElse
from backend.doors.files.door import NoWorkspace
from backend.doors.identity import ForeignOrigin, Unauthorized
from backend.doors.memory import Changed, MemoryTooLong, NoVersion
from backend.doors.runs.door import NotShown, Over
from backend.doors.runs.once import NotKnown, OtherRequest
from backend.doors.tasks.door import NotNow
from backend.tools.tasks.tools import TasksUnavailable
from backend.tools.workspace.files import FileRefused, FileTooLarge, NoFile, NotCommitted
from backend.tools.workspace.tools import WorkspaceUnavailable
from backend.turn.afterwards.summaries import NoSummary
from backend.turn.inbox import NoRun, Read
from backend.turn.lifecycle.endings import explain
from backend.turn.waiting.decisions import DecidedAlready

STATUS = {
    InvalidRequest: 400,
    MessageTooLong: 400,
    Unauthorized: 401,
    ForeignOrigin: 403,
    SomebodyElse: 403,
    NotFound: 404,
    NoCalendar: 404,
    DecidedAlready: 400,
    Busy: 409,
    NotKnown: 409,
    NotShown: 409,
    OtherRequest: 409,
    Over: 409,
    NoRun: 409,
    NotNow: 409,
    Read: 409,
    LimitReached: 429,
    NoWorkspace: 404,
    NoFile: 404,
    FileRefused: 400,
    FileTooLarge: 413,
    MemoryTooLong: 413,
    Changed: 412,
    NoVersion: 428,
    NotCommitted: 409,
    CalendarUnavailable: 503,
    WorkspaceUnavailable: 503,
    NoSummary: 503,
    Overloaded: 503,
    TasksUnavailable: 503,
}
HEADERS = {
    Unauthorized: {"WWW-Authenticate": "Bearer"},
    NoCalendar: {"Cache-Control": "private, no-store"},
    CalendarUnavailable: {"Retry-After": "300"},
}


def add_to(app: FastAPI) -> None:
    """Let the application answer so."""

    @app.exception_handler(BackendError)
    async def refuse(_: Request, error: BackendError) -> Response:
        kind = type(error)
        headers = dict(HEADERS.get(kind, {}))
        if error.retry_seconds is not None:
            headers["Retry-After"] = str(error.retry_seconds)
        return JSONResponse({"error": str(error)}, status_code=STATUS.get(kind, 500), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def not_valid(_: Request, error: RequestValidationError) -> Response:
        problem = error.errors()[0]
        place = " ".join(str(part) for part in problem["loc"])
        return JSONResponse({"error": f"The request is not valid at {place}: {problem['msg']}."}, status_code=400)

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeout)
    async def no_database(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": explain(error).message}, status_code=503)

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # nobody reads it; without it, the server would log an error of its own
