"""JSON that is serialized in parts is the JSON that pydantic makes at once."""

import json
from datetime import UTC, date, datetime
from typing import Any

from pydantic import BaseModel

from backend.api.json_parts import JsonPartsResponse, serialize_in_parts


class Step(BaseModel):
    text: str
    made: datetime | None = None
    day: date | None = None
    seconds: float = 0.5


class Page(BaseModel):
    steps: list[Step]
    first: Step
    details: dict[str, Any]
    names: list[str]
    left: float = float("inf")
    none: list[Step] = []


STEPS = [
    Step(text='"data":[]\u2028 ü\U0001f95b', made=datetime(2026, 11, 29, 9, tzinfo=UTC)),
    Step(text="", day=date(2026, 11, 29)),
]
PAGE = Page(steps=STEPS, first=STEPS[0], details={"ids": [1, None], "of": {"a": 1.5}}, names=["a", "b"])


async def test_model() -> None:
    assert b"".join(await serialize_in_parts(PAGE)) == PAGE.model_dump_json().encode()


async def test_fields_with_serialized_parts() -> None:
    steps = [await serialize_in_parts(step) for step in STEPS]
    parts = await serialize_in_parts({**dict(PAGE), "steps": steps})
    assert json.loads(b"".join(parts)) == json.loads(PAGE.model_dump_json())


async def test_response_has_its_length() -> None:
    long = Page(steps=[Step(text="x" * 999)] * 200, first=STEPS[0], details={}, names=[])
    response = JsonPartsResponse(await serialize_in_parts(long))
    sent = [piece async for piece in response.body_iterator if isinstance(piece, bytes)]
    assert b"".join(sent) == long.model_dump_json().encode()
    assert len(sent) > 2
    assert response.headers["content-length"] == str(sum(map(len, sent)))
