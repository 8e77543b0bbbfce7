"""The run API's schema, as it is published."""

from typing import Any

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from backend.doors.runs import shapes
from backend.doors.runs.stream import LINES, MEDIA_TYPE

_WHY = {
    400: "It is not valid.",
    401: "Nobody is signed in.",
    404: "There is no such chat, interaction or approval of this person's.",
    409: "It cannot be done now.",
    413: "It is too large.",
    429: "A limit is reached.",
    503: "What it needs cannot be reached, or there is no room for one more answer.",
}
_ALWAYS = (401, 413, 429)
_STREAMS = {"Streamed": MEDIA_TYPE, "Chunk": MEDIA_TYPE, shapes.LogLine.__name__: LINES}
"""Shapes that are sent one after the other."""
_REFERENCE = "#/components/schemas/{model}"
_referenced = dict[str, type[BaseModel]]()


def described(
    answers: type[BaseModel],
    *refusals: int,
    status: int = 200,
    asks: type[BaseModel] | None = None,
    failed: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """What FastAPI is told of a route: the shape that it answers, with what it refuses, and what it asks for.

    `failed` is what it answers of an interaction that failed.
    """
    content: dict[str, Any] = {"model": answers, "description": "Done."}
    sentence = _referring(shapes.Refused)
    refused = {code: {"content": sentence, "description": _WHY[code]} for code in sorted({*refusals, *_ALWAYS})}
    if failed is not None:
        refused[502] = {"model": failed, "description": "It was begun, and failed."}
    told: dict[str, Any] = {"responses": {status: content, **refused}, "status_code": status, "response_model": None}
    if asks is not None:
        told["openapi_extra"] = {"requestBody": {"required": True, "content": _referring(asks)}}
    return told


def _referring(shape: type[BaseModel]) -> dict[str, Any]:
    """Content of this shape, whose schema is made when it is asked for: FastAPI would make it now, for each route."""
    assert _referenced.setdefault(shape.__name__, shape) is shape, f"two shapes are called {shape.__name__}"
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=shape.__name__)}}}


def published(*routers: APIRouter) -> dict[str, Any]:
    """OpenAPI 3.1."""
    routes = [route for router in routers for route in router.routes]
    schema = get_openapi(title="todo-assistant: runs", version="1", openapi_version="3.1.0", routes=routes)
    for path in schema["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)  # FastAPI's own: here it is 400
            _as_streams(operation["responses"].get("200", {}).get("content", {}))
    for unused in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(unused, None)
    _, shapes_of_ours = models_json_schema(
        [(shape, "validation") for shape in _referenced.values()], ref_template=_REFERENCE
    )
    schema["components"]["schemas"] |= shapes_of_ours["$defs"]
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{}, {"token": []}]
    return schema


def _as_streams(content: dict[str, Any]) -> None:
    """A stream's schema is that of each event, or line, in it."""
    schema = content.get("application/json", {}).get("schema", {})
    if media_type := _STREAMS.get(schema.get("$ref", "").rpartition("/")[2]):
        content[media_type] = content.pop("application/json")
