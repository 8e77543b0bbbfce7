"""The answer to a request that fails: one sentence, and the status that tells programs the same."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import BackendError, InvalidRequest
from backend.runs.outcomes import sentence_of
from common.database import DatabaseUnavailable
from common.telemetry import logs, traces

logger = logging.getLogger(__name__)

NO_JSON = "The body is not JSON. Send an object with the fields of this request."
# Pydantic has other words for a value of Python than for the same one in JSON.
_IN_JSON = {
    "dict_type": "Input should be an object",
    "list_type": "Input should be a valid array",
    "model_attributes_type": "Input should be an object",
}


class Unauthorized(BackendError):
    """You are not signed in. Sign in on the page, or send a valid bearer token."""

    code, status = "unauthorized", 401
    headers: ClassVar = {"WWW-Authenticate": "Bearer"}


class ForeignOrigin(BackendError):
    """This request comes from another website. Open this server's own page and try again there."""

    code, status = "foreign_origin", 403


class ForeignHost(BackendError):
    """This server does not answer to this host name. Its operator can add it to ALLOWED_HOSTS."""

    code, status = "foreign_host", 421


class ForeignWebsite(BackendError):
    """This server does not accept requests from this website."""

    code, status = "foreign_website", 403


class BodyNotJson(BackendError):
    """Send the body as JSON with Content-Type: application/json."""

    code, status = "body_not_json", 415


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
        return render_error(InvalidRequest(_describe(error.errors()[0])))

    @app.exception_handler(psycopg.Error)
    @app.exception_handler(DatabaseUnavailable)
    async def handle_database_error(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": explain_unexpected(error)}, status_code=503)

    @app.exception_handler(ClientDisconnect)
    async def handle_disconnect(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # nobody reads it; without it, the server would log an error of its own


def explain_unexpected(error: Exception) -> str:
    """Logs an error and returns a sentence for the user, with a reference by which it is found in the log."""
    reference = secrets.token_hex(4)
    logger.error("request failed, reference %s\n%s", reference, logs.describe_error(error))
    code = "database_unreachable" if isinstance(error, DatabaseUnavailable) else "failed"
    return f"{sentence_of(code)} (Reference {reference})"


def render_error(error: BackendError) -> JSONResponse:
    traces.annotate({"error.type": error.code})
    headers = dict(error.headers)
    if error.retry_seconds is not None:
        headers["Retry-After"] = str(error.retry_seconds)
    return JSONResponse({"error": str(error)}, status_code=error.status, headers=headers)


def _describe(problem: Mapping[str, Any]) -> str:
    source, *path = map(str, problem["loc"])
    if source != "body":
        return f"The request is not valid at {' '.join((source, *path))}: {problem['msg']}."
    if not path and problem["type"] == "missing":
        return NO_JSON
    where = f" at {'.'.join(path)}" if path else ""
    return f"The request is not valid{where}: {_IN_JSON.get(problem['type'], problem['msg'])}."
