"""What is read of one's own tasks without a tool: some by their ids, what changed since, how much was done by day.

A page asks every second and a half: no call is counted and no line is written for it.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from zoneinfo import ZoneInfo

from fastmcp import FastMCP
from psycopg import Error as DatabaseError
from starlette.requests import Request
from starlette.responses import JSONResponse

from common.clock import Clock, find_zone
from common.database import Database, DatabaseUnavailable
from common.rate_limit import RateLimit
from common.telemetry import traces
from common.tool_server.calls import get_user_id
from mcp_server.arguments import MAX_ID
from mcp_server.caller import LOCAL_USER
from mcp_server.errors import explained
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.lists import reads

CHANGES, DONE, TASKS = "/changes", "/done", "/tasks"
PATHS = (CHANGES, DONE, TASKS)
_MONTH = 28  # days
_AFTER = "after must be the whole number `last` of an earlier answer, or left out."
_DAYS = f"days must be a whole number from 1 to {reads.MOST_DAYS}, or left out."
_IDS = f"ids must be at most {reads.MOST_IDS} task ids, separated by commas."
_ZONE = "time_zone must be the name of a time zone, such as Europe/Berlin, or left out."
_TOO_FAST = "Too many requests. Try again in {} seconds."

Handler = Callable[[Request], Awaitable[JSONResponse]]


class Invalid(Exception):
    """With the sentence that says what is allowed."""


@dataclass(frozen=True)
class ReadRoutes:
    database: Database
    rate_limit: RateLimit
    usual_zone: ZoneInfo
    clock: Clock

    def add_to(self, server: FastMCP) -> None:
        server.custom_route(CHANGES, methods=["GET"])(self._answering(self._changes))
        server.custom_route(DONE, methods=["GET"])(self._answering(self._done))
        server.custom_route(TASKS, methods=["GET"])(self._answering(self._tasks))

    def _answering(self, read: Callable[[str, Request], Awaitable[JSONResponse]]) -> Handler:
        """For the user of the token, or for the local user where nobody signs in."""

        async def answer(request: Request) -> JSONResponse:
            user_id = get_user_id() or LOCAL_USER
            if wait := math.ceil(self.rate_limit.wait(user_id)):
                return _refused(429, _TOO_FAST.format(wait), **{"Retry-After": str(wait)})
            about = {"http.request.method": "GET", "http.route": request.url.path}
            try:
                with traces.span(f"GET {request.url.path}", about, kind="SERVER", parent=request.headers):
                    return await read(user_id, request)
            except Invalid as refusal:
                return _refused(400, str(refusal))
            except (DatabaseUnavailable, DatabaseError) as error:
                return _refused(503, str(explained(error, committing=False)))

        return answer

    async def _changes(self, user_id: str, request: Request) -> JSONResponse:
        after = _number(request, "after", most=MAX_ID, otherwise=_AFTER)
        return JSONResponse((await reads.read_changes(self.database, user_id, after))._asdict())

    async def _done(self, user_id: str, request: Request) -> JSONResponse:
        days = _number(request, "days", least=1, most=reads.MOST_DAYS, otherwise=_DAYS)
        named = request.query_params.get("time_zone")
        zone = find_zone(named) if named else None
        if named and zone is None:
            raise Invalid(_ZONE)
        caller = Caller(user_id, zone=zone, usual_zone=self.usual_zone, clock=self.clock)
        async with self.database.transaction(user_id) as tx:
            found = await reads.count_completed_by_day(tx, caller, days or _MONTH)
        return JSONResponse({"days": [{"day": day.isoformat(), "done": many} for day, many in found]})

    async def _tasks(self, user_id: str, request: Request) -> JSONResponse:
        ids = request.query_params.get("ids", "").split(",")
        if len(ids) > reads.MOST_IDS:
            raise Invalid(_IDS)
        numbers = {_whole(part, most=MAX_ID, otherwise=_IDS) for part in ids}
        found = await reads.read_by_ids(self.database, Caller(user_id, clock=self.clock), numbers)
        return JSONResponse({"tasks": found.tasks, "last_changes": [asdict(change) for change in found.last_changes]})


def _number(request: Request, name: str, *, least: int = 0, most: int, otherwise: str) -> int | None:
    given = request.query_params.get(name)
    return None if given is None else _whole(given, least=least, most=most, otherwise=otherwise)


def _whole(given: str, *, least: int = 0, most: int, otherwise: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= len(str(most)) and least <= int(given) <= most):
        raise Invalid(otherwise)
    return int(given)


def _refused(status: int, sentence: str, **headers: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)
