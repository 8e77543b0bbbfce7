"""The answer to a request that fails: one sentence, and the status that tells programs the same."""

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.api.page.renderer import PageRenderer
from backend.api.request_body import UNKNOWN_FIELD
from backend.errors import BackendError, InvalidRequest, LimitReached, NotFound, TooManyAtOnce, shorten
from backend.runs.outcomes import sentence_of
from common.database import DatabaseUnavailable, UserShareExceeded
from common.telemetry import logs, traces
from common.text import join_words

logger = logging.getLogger(__name__)

NO_JSON = "The body is not JSON. Send an object with the fields of this request."
# Pydantic has other words for a value of Python than for the same one in JSON.
_IN_JSON = {
    "dict_type": "Input should be an object",
    "list_type": "Input should be a valid array",
    "model_attributes_type": "Input should be an object",
}
OPENAPI_PATH = "/openapi.json"
_PATH_CHARS = 250  # names a chat, an interaction and a message
_MAX_NAMED_FIELDS = 10
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Unauthorized(BackendError):
    """You are not signed in. Sign in on the page, or send a valid bearer token."""

    code, status = "unauthorized", 401
    headers: ClassVar = {"WWW-Authenticate": "Bearer"}


class ScopeMissing(BackendError):
    """The token does not allow the request."""

    code, status = "scope_missing", 403
    headers: ClassVar = {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}


class ForeignOrigin(BackendError):
    """This request comes from another website. Open this server's own page and try again there."""

    code, status = "foreign_origin", 403


class MethodNotAllowed(BackendError):
    """This method is not allowed here."""

    code, status = "method_not_allowed", 405


class TooManyOpenResponses(LimitReached):
    """You have too many responses open. Read them to the end or close them, such as other tabs, and try again."""

    code = "too_many_open_responses"


class UnexpectedErrors:
    """Answers an unexpected error with a sentence and the request's id; the log has both, and the error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting_start)
        except Exception as error:
            if scope["type"] != "http" or has_started:
                raise
            content = {"error": explain_unexpected(error), "request_id": logs.request_id.get()}
            await JSONResponse(content, status_code=500)(scope, receive, send)


def add_error_handlers(app: FastAPI) -> None:
    app.add_middleware(UnexpectedErrors)

    @app.exception_handler(BackendError)
    async def handle_backend_error(_: Request, error: BackendError) -> Response:
        return render_error(error)

    @app.exception_handler(RequestValidationError)
    async def handle_invalid_request(_: Request, error: RequestValidationError) -> Response:
        return render_error(InvalidRequest(_describe(error.errors()[0], error.body)))

    @app.exception_handler(HTTPException)
    async def handle_http_exception(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and _is_navigation(request):
            page: PageRenderer = app.state.page
            return page.response(request, status=404)
        return _render_http_exception(request, error)

    @app.exception_handler(psycopg.Error)
    @app.exception_handler(DatabaseUnavailable)
    async def handle_database_error(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": explain_unexpected(error)}, status_code=503)

    @app.exception_handler(UserShareExceeded)
    async def handle_exceeded_share(_: Request, __: Exception) -> Response:
        return render_error(TooManyAtOnce())

    @app.exception_handler(ClientDisconnect)
    async def handle_disconnect(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # nobody reads it; without it, the server would log an error of its own


def explain_unexpected(error: Exception) -> str:
    """Logs an error and returns a sentence for the user, with a reference by which it is found in the log."""
    if isinstance(error, UserShareExceeded):
        return str(TooManyAtOnce())
    reference = secrets.token_hex(4)
    logger.error("request failed, reference %s\n%s", reference, logs.describe_error(error))
    code = "database_unreachable" if isinstance(error, DatabaseUnavailable) else "failed"
    return f"{sentence_of(code)} (Reference {reference})"


def render_error(error: BackendError, headers: Mapping[str, str] = {}) -> JSONResponse:
    traces.annotate({"error.type": error.code})
    headers = {**error.headers, **headers}
    if error.retry_seconds is not None:
        headers["Retry-After"] = str(error.retry_seconds)
    return JSONResponse({"error": str(error)}, status_code=error.status, headers=headers)


def _render_http_exception(request: Request, error: HTTPException) -> JSONResponse:
    """Renders what Starlette raises, mostly for a path or a method without a route."""
    path = shorten(request.scope["raw_path"].decode("latin-1"), most=_PATH_CHARS)
    if error.status_code == 404:
        schema = request.scope.get("root_path", "") + OPENAPI_PATH
        return render_error(NotFound(f"There is nothing at {path}. All paths are in the schema at {schema}."))
    if error.status_code == 405:
        methods = _list_methods(request)
        sentence = f"{shorten(request.method)} is not allowed at {path}. Use {join_words(methods, 'or')}."
        return render_error(MethodNotAllowed(sentence), {"Allow": ", ".join(methods)})
    if error.status_code == 400:  # FastAPI (0.165) could not parse the body
        return render_error(InvalidRequest(NO_JSON))
    other = InvalidRequest(f"{error.detail.rstrip('.')}.")
    other.status = error.status_code
    return render_error(other)


def _is_navigation(request: Request) -> bool:
    """Whether a browser opens the address as a page, by a header that older browsers do not send."""
    if request.method != "GET":
        return False
    mode = request.headers.get("sec-fetch-mode")
    return mode == "navigate" if mode is not None else "text/html" in request.headers.get("accept", "")


def _list_methods(request: Request) -> list[str]:
    """Lists the methods of a path, of which Starlette (1.10) only knows those of its first route."""
    path = get_route_path(request.scope)
    methods = {one for pattern, methods in _list_patterns(request.app) if pattern.match(path) for one in methods}
    found = [method for method in _METHODS if method in methods]
    return ["GET", "HEAD", *found[1:]] if "GET" in found else found


@lru_cache(maxsize=1)  # of the one application of a process
def _list_patterns(app: FastAPI) -> list[tuple[re.Pattern[str], set[str]]]:
    """Lists the pattern of each route's path with its methods."""
    return [(route.path_regex, route.methods or set()) for route in iter_route_contexts(app.routes)]


def _describe(problem: Mapping[str, Any], body: Any) -> str:
    source, *path = problem["loc"]
    kind: str = problem["type"]
    message: str = _IN_JSON.get(kind) or problem["msg"]
    if kind == UNKNOWN_FIELD:
        return message
    if source != "body":
        where = " ".join((source, *map(str, path)))
        return f"The request needs the {where}." if kind == "missing" else f"The {where} is not valid: {message}."
    if not path and kind == "missing":
        return NO_JSON
    place, value = _find_place(path, body)
    if kind == "missing":
        sent = [shorten(name) for name in value][:_MAX_NAMED_FIELDS] if isinstance(value, dict) else []
        return f"The request needs {'.'.join([*place, str(path[-1])])}. It has {join_words(sent) or 'no fields'}."
    return f"The request is not valid{f' at {where}' if (where := '.'.join(place)) else ''}: {message}."


def _find_place(path: Sequence[str | int], body: Any) -> tuple[list[str], Any]:
    """Follows a path of pydantic's into a body, without the names of alternatives that are in it.

    Returns the fields and positions that the body has, and the value there.
    """
    place: list[str] = []
    for part in path:
        match body:
            case dict() if part in body:
                body = body[part]
            case list() if isinstance(part, int):
                body = body[part]
            case _:
                continue
        place.append(str(part))
    return place, body
