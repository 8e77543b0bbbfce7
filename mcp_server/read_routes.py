"""HTTP routes that read the caller's list in pages, tasks by their ids, recent changes, batches, and numbers of tasks.

The page calls them every 1.5 seconds, so they are neither counted nor logged.
"""

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from fastmcp import FastMCP
from psycopg import Error as DatabaseError
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse

from common.clock import Clock, find_zone
from common.database import Database, DatabaseUnavailable, Transaction
from common.server.rate_limit import RateLimit
from common.telemetry import traces
from common.text import is_storable
from common.tool_server.calls import get_user_id
from common.tool_server.errors import CallError
from common.tool_server.simultaneous_calls import SimultaneousCalls
from mcp_server.arguments import MAX_ID
from mcp_server.caller import LIST_SECONDS, LOCAL_USER, MAX_BATCH_CHARS
from mcp_server.errors import explain_error
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.lists import batches, reads, views
from mcp_server.tasks.lists.views import ViewQuery
from mcp_server.tasks.results import Result, render_structured

BATCH, BATCHES, CHANGES, COUNTS = "/batch", "/batches", "/changes", "/counts"
DONE, LIST, TASKS = "/done", "/list", "/tasks"
PATHS = (BATCH, BATCHES, CHANGES, COUNTS, DONE, LIST, TASKS)
_DEFAULT_DAYS = 28
_AFTER = "after must be the whole number `last` of an earlier answer, or left out."
_BATCH = f"id must be the id of a batch, text of 1 to {MAX_BATCH_CHARS} characters on one line."
_DAYS = f"days must be a whole number from 1 to {reads.MAX_DAYS}, or left out."
_LIMIT = f"limit must be a whole number from 1 to {batches.MAX_BATCHES}, or left out."
_IDS = f"ids must be at most {reads.MAX_IDS} task ids, separated by commas."
_ZONE = "time_zone must be the name of a time zone, such as Europe/Berlin, or left out."
_TOO_FAST = "Too many requests. Try again in {} seconds."
_SOON = {"Retry-After": "1"}

Handler = Callable[[Request], Awaitable[JSONResponse]]


class InvalidQuery(Exception):
    """The text is a sentence that says what is allowed."""


@dataclass(frozen=True)
class ReadRoutes:
    database: Database
    rate_limit: RateLimit
    at_once: SimultaneousCalls
    usual_zone: ZoneInfo
    clock: Clock

    def add_to(self, server: FastMCP) -> None:
        reads = {
            BATCH: self._get_batch,
            BATCHES: self._get_batches,
            CHANGES: self._get_changes,
            COUNTS: self._get_counts,
            DONE: self._get_completions,
            LIST: self._get_list,
            TASKS: self._get_tasks,
        }
        for path, read in reads.items():
            server.custom_route(path, methods=["GET"])(self._create_handler(read))

    def _create_handler(self, read: Callable[[str, Request], Awaitable[JSONResponse]]) -> Handler:
        async def handle(request: Request) -> JSONResponse:
            user_id = get_user_id() or LOCAL_USER
            if wait := math.ceil(self.rate_limit.wait(user_id)):
                return _reject(429, _TOO_FAST.format(wait), **{"Retry-After": str(wait)})
            attributes = {"http.request.method": "GET", "http.route": request.url.path}
            try:
                async with self.at_once.hold():
                    with traces.span(f"GET {request.url.path}", attributes, kind="SERVER", parent=request.headers):
                        return await read(user_id, request)
            except InvalidQuery as error:
                return _reject(400, str(error))
            except CallError as error:  # also `TooManyAtOnce`
                return reject_call(error)
            except (DatabaseUnavailable, DatabaseError) as error:
                return reject_call(explain_error(error, is_committing=False))

        return handle

    async def _get_batch(self, user_id: str, request: Request) -> JSONResponse:
        batch = request.query_params.get("id", "")
        if not 1 <= len(batch) <= MAX_BATCH_CHARS or not is_storable(batch):
            raise InvalidQuery(_BATCH)
        return JSONResponse(await reads.read_batch(self.database, user_id, batch))

    async def _get_changes(self, user_id: str, request: Request) -> JSONResponse:
        after = _read_number(request, "after", maximum=MAX_ID, sentence=_AFTER)
        return JSONResponse(await reads.read_changes(self.database, user_id, after))

    async def _get_batches(self, user_id: str, request: Request) -> JSONResponse:
        limit = _read_number(request, "limit", minimum=1, maximum=batches.MAX_BATCHES, sentence=_LIMIT)
        async with self._open_list(user_id) as tx:
            listed = await batches.read_batches(tx, self.clock(), limit or batches.MAX_BATCHES)
        return JSONResponse({"batches": listed})

    async def _get_completions(self, user_id: str, request: Request) -> JSONResponse:
        days = _read_number(request, "days", minimum=1, maximum=reads.MAX_DAYS, sentence=_DAYS)
        caller = self._create_caller(user_id, request)
        async with self.database.transaction(user_id) as tx:
            counts = await reads.count_completed_by_day(tx, caller, days or _DEFAULT_DAYS)
        return JSONResponse({"days": [{"day": day.isoformat(), "done": count} for day, count in counts]})

    async def _get_counts(self, user_id: str, request: Request) -> JSONResponse:
        async with self._open_list(user_id) as tx:
            return JSONResponse(await views.count_views(tx, self._create_caller(user_id, request)))

    async def _get_list(self, user_id: str, request: Request) -> JSONResponse:
        query, caller = _read_view_query(request), self._create_caller(user_id, request)
        failure: CallError | None = None
        page: Result = {}
        async with self._open_list(user_id) as tx:
            try:
                page = await views.list_view(tx, caller, query)
            except CallError as error:
                failure = error
                await tx.roll_back()
        if failure:
            raise failure
        return JSONResponse(render_structured(page))

    def _open_list(self, user_id: str) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(user_id, statement_seconds=LIST_SECONDS)

    def _create_caller(self, user_id: str, request: Request) -> Caller:
        zone_name = request.query_params.get("time_zone")
        zone = find_zone(zone_name) if zone_name else None
        if zone_name and zone is None:
            raise InvalidQuery(_ZONE)
        return Caller(user_id, zone=zone, usual_zone=self.usual_zone, clock=self.clock)

    async def _get_tasks(self, user_id: str, request: Request) -> JSONResponse:
        ids = request.query_params.get("ids", "").split(",")
        if len(ids) > reads.MAX_IDS:
            raise InvalidQuery(_IDS)
        numbers = {_parse_number(part, maximum=MAX_ID, sentence=_IDS) for part in ids}
        tasks = await reads.read_by_ids(self.database, Caller(user_id, clock=self.clock), numbers)
        return JSONResponse(render_structured(tasks))


def _read_view_query(request: Request) -> ViewQuery:
    try:
        return ViewQuery.model_validate(dict(request.query_params))
    except ValidationError as error:
        names = {str(problem["loc"][0]): None for problem in error.errors(include_url=False, include_input=False)}
        raise InvalidQuery("; ".join(f"{name} must be {views.RULES[name]}" for name in names) + ".") from None


def _read_number(request: Request, name: str, *, minimum: int = 0, maximum: int, sentence: str) -> int | None:
    value = request.query_params.get(name)
    return None if value is None else _parse_number(value, minimum=minimum, maximum=maximum, sentence=sentence)


def _parse_number(value: str, *, minimum: int = 0, maximum: int, sentence: str) -> int:
    if not (
        value.isascii() and value.isdigit() and len(value) <= len(str(maximum)) and minimum <= int(value) <= maximum
    ):
        raise InvalidQuery(sentence)
    return int(value)


def _reject(status: int, sentence: str, **headers: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)


def reject_call(error: CallError) -> JSONResponse:
    """Renders an error of a tool call as the response of a route."""
    if error.kind == "limit":
        return _reject(429, str(error), **_SOON)
    return _reject(503 if error.kind == "unavailable" else 400, str(error))
