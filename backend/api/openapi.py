"""The OpenAPI document of all routes, and what FastAPI cannot see of a route: its errors and events of its streams."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, Field

from backend.api.dependencies import UserRoute
from backend.api.errors import OPENAPI_PATH
from backend.api.identity import TIME_ZONE_HEADER
from backend.api.page.routes import VIEWS
from backend.api.sse import MEDIA_TYPE
from backend.conversations.conversations import OPENAPI
from common import VERSION

Json = dict[str, Any]

_DESCRIPTION = """Every path with GET also takes HEAD. A request that fails is answered with `{"error": "…"}`, a path \
that does not exist too, unless a browser opens it as a page. Responses may have fields, and streams events, that \
this version does not know."""
_REASONS = {
    400: "The request is not valid.",
    401: "Nobody is signed in.",
    403: "The request comes from another website, or needs the secret of the directory's owner.",
    404: "This user has nothing with such an id.",
    405: "This path does not take the method. `Allow` has those that it takes.",
    409: "This is not possible now.",
    412: "It was changed since it was read.",
    413: "The request is too large.",
    415: "The body is not declared as JSON.",
    421: "This server does not answer to this host name.",
    422: "Notifications cannot be sent there.",
    428: "The request needs the header If-Match.",
    429: "A limit is reached.",
    500: "An unexpected error; `request_id` is also in the log.",
    502: "The model's server cannot be reached or answered with an error.",
    503: "The database or a service cannot be reached, or the server is too busy.",
    507: "The disk is full.",
}
_HTML = "text/html"
_PAGES = {
    "/": (_HTML, "The page.", ()),
    **{f"/{view}": (_HTML, "The page with a view of the list.", ()) for view in VIEWS},
    "/t/{task_id}": (_HTML, "The page with a task.", ("task_id",)),
    "/c/{chat_id}": (_HTML, "The page with a conversation.", ("chat_id",)),
    "/widget": (_HTML, "The page with OpenAI's chat.", ()),
    "/assets/{hash}/{path}": ("*/*", "A file of the page.", ("hash", "path")),
    "/manifest.json": ("application/manifest+json", "The page's manifest.", ()),
    "/service-worker.js": ("text/javascript", "The page's service worker.", ()),
}
"""The routes of the page, which are Starlette's: media type, description and parameters."""
_OF_EVERY_ROUTE = (405, 421, 500)
_OF_USERS = (400, 401, 403, 413, 429, 503)


class Error(BaseModel):
    error: str = Field(description="One sentence that says what to do next.")
    request_id: str | None = Field(default=None, description="Of an unexpected error, to find it in the log.")


def errors(*statuses: int) -> dict[int | str, Json]:
    """The `responses` of a route that fails with these statuses, beside those of every route."""
    return {status: {"model": Error, "description": _REASONS[status]} for status in statuses}


def content(media_type: str, description: str, status: int = 200, schema: Json | None = None) -> dict[int | str, Json]:
    """The `responses` of a route whose response is no JSON; its `response_class` must have no media type."""
    return {status: {"description": description, "content": {media_type: {"schema": schema or {"type": "string"}}}}}


def stream_of(model: type[BaseModel], media_type: str = MEDIA_TYPE) -> dict[int | str, Json]:
    """The `responses` of a route whose response is a stream; the schema is that of each event, or line, in it.

    The route's `response_class` must have no media type of its own, as `Response` has none.
    """
    return content(media_type, "Done.", schema=model.model_json_schema())


router = APIRouter()


def _generate(app: FastAPI, path: str) -> Json:
    document = get_openapi(
        title="todo-assistant",
        version=VERSION,
        openapi_version="3.1.0",
        description=_DESCRIPTION,
        routes=[*app.routes],
        servers=[{"url": path}] if path else None,
    )
    document["paths"] |= {path: {"get": _describe_page(*about)} for path, about in _PAGES.items()}
    for_users = {
        (route.path_format, method.lower())
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, UserRoute)
        for method in route.methods or ()
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            needs_json = method in ("post", "patch") and "requestBody" in operation
            _complete(operation, is_for_users=(path, method) in for_users, needs_json=needs_json)
    components = document["components"]
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    components["responses"] = {
        f"Error{status}": _render_error(status) for status in (*_OF_USERS, *_OF_EVERY_ROUTE, 404, 415)
    }
    components["parameters"] = {"TimeZone": _TIME_ZONE}
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "todo_session"},
    }
    return document


_TIME_ZONE = {
    "name": TIME_ZONE_HEADER,
    "in": "header",
    "description": "The user's time zone, of IANA's database; without it, the one that was sent last.",
    "schema": {"type": "string", "examples": ["Europe/Berlin"]},
}


def _complete(operation: Json, *, is_for_users: bool, needs_json: bool) -> None:
    """Adds what all routes of a kind have in common; FastAPI's own error 422 is 400 here."""
    responses = operation["responses"]
    responses.pop("422", None)
    for status in (*_OF_EVERY_ROUTE, *(_OF_USERS if is_for_users else ()), *((415,) if needs_json else ())):
        responses.setdefault(str(status), {"$ref": f"#/components/responses/Error{status}"})
    operation["security"] = [{}, {"token": []}, {"session": []}] if is_for_users else []
    if is_for_users:
        operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/TimeZone"})


def _describe_page(media_type: str, description: str, parameters: Sequence[str]) -> Json:
    text = {"type": "string"}
    named = [{"name": name, "in": "path", "required": True, "schema": text} for name in parameters]
    schema = {"type": "object"} if media_type.endswith("json") else text
    shown = {"description": description, "content": {media_type: {"schema": schema}}}
    missing = {"$ref": "#/components/responses/Error404"}
    return {"summary": description, "parameters": named, "responses": {"200": shown, "404": missing}}


def _render_error(status: int) -> Json:
    schema = {"$ref": f"#/components/schemas/{Error.__name__}"}
    described: Json = {"description": _REASONS[status], "content": {"application/json": {"schema": schema}}}
    if status == 405:
        described["headers"] = {"Allow": {"required": True, "schema": {"type": "string"}}}
    return described


@router.get(
    OPENAPI_PATH,
    response_class=Response,
    responses=content("application/json", "This document.", schema={"type": "object"}),
)
@router.get(f"/chats/{OPENAPI}", include_in_schema=False)  # its address up to version 0.2
async def get_document(request: Request) -> Response:
    app: FastAPI = request.app
    if app.state.openapi is None:
        app.state.openapi = json.dumps(_generate(app, request.scope.get("root_path", ""))).encode()
    return Response(app.state.openapi, media_type="application/json")
