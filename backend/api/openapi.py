"""The OpenAPI document, and what FastAPI cannot see of a route: its errors and the events of its streams."""

from functools import cache
from typing import Any

from fastapi import APIRouter, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from backend.api.sse import MEDIA_TYPE
from common import VERSION

_REASONS = {
    400: "The request is not valid.",
    401: "Nobody is signed in.",
    403: "The request comes from another website, or needs the secret of the directory's owner.",
    404: "This user has no such chat, interaction or approval.",
    409: "This is not possible now.",
    413: "The request is too large.",
    429: "A limit is reached.",
    503: "The database or the task service cannot be reached, or the server is too busy.",
}
_OF_EVERY_ROUTE = (400, 401, 403, 413, 429)


class Error(BaseModel):
    error: str = Field(description="One sentence that says what to do next.")


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that fails with these statuses, beside those of every route."""
    return {
        status: {"model": Error, "description": _REASONS[status]} for status in sorted({*statuses, *_OF_EVERY_ROUTE})
    }


def stream_of(model: type[BaseModel], media_type: str = MEDIA_TYPE) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route whose response is a stream; the schema is that of each event, or line, in it.

    The route's `response_class` must have no media type of its own, as `Response` has none.
    """
    return {200: {"description": "Done.", "content": {media_type: {"schema": model.model_json_schema()}}}}


def create_openapi_router(path: str, *routers: APIRouter) -> APIRouter:
    router = APIRouter()

    @cache
    def generate() -> dict[str, Any]:
        routes = [route for described in routers for route in described.routes]
        document = get_openapi(title="todo-assistant: runs", version=VERSION, openapi_version="3.1.0", routes=routes)
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)  # FastAPI's own: here it is 400
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"token": []}]
        return document

    @router.get(path, include_in_schema=False)
    async def get_document() -> Response:
        return JSONResponse(generate())

    return router
