"""JSON responses of megabytes: serialized in parts, between which others are served."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from pydantic_core import to_json

from common.pauses import with_pauses

_SENT_BYTES = 65_536  # at once, as far as a part is not larger


class JsonParts(list[bytes]):
    """A serialized value."""

    @property
    def size(self) -> int:
        return sum(map(len, self))


async def serialize_in_parts(value: Any) -> JsonParts:
    """Serializes as pydantic does a model, or the fields of one, of which a list may also have `JsonParts`."""
    parts = _serialize_fields(value) if isinstance(value, dict) else _serialize(value)
    return JsonParts([part async for part in with_pauses(parts)])


def _serialize(value: Any) -> Iterator[bytes]:
    match value:
        case JsonParts():
            yield from value
        case list():
            items: list[Any] = value
            yield b"["
            yield from _join(map(_serialize, items))
            yield b"]"
        case BaseModel():
            fields = dict(value)
            if any(isinstance(one, list | BaseModel) for one in fields.values()):
                yield from _serialize_fields(fields)
            else:
                yield value.model_dump_json().encode()
        case _:
            yield to_json(value, inf_nan_mode="null")


def _serialize_fields(fields: Mapping[str, Any]) -> Iterator[bytes]:
    yield b"{"
    yield from _join(_serialize_field(name, value) for name, value in fields.items())
    yield b"}"


def _serialize_field(name: str, value: Any) -> Iterator[bytes]:
    yield to_json(name) + b":"
    yield from _serialize(value)


def _join(values: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    for number, parts in enumerate(values):
        if number:
            yield b","
        yield from parts


class JsonPartsResponse(StreamingResponse):
    def __init__(self, parts: JsonParts) -> None:
        headers = {"Content-Length": str(parts.size)}
        super().__init__(_send_together(parts), headers=headers, media_type="application/json")


async def _send_together(parts: JsonParts) -> AsyncIterator[bytes]:
    waiting = bytearray()
    for part in parts:
        waiting += part
        if len(waiting) >= _SENT_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)
