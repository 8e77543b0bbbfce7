"""The arguments of `add_schedule`: their schema, whether a call can be made, and how its card shows them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ValidationError

from backend.errors import InvalidRequest
from backend.users.schedule_plans import Plan, read_plan

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)  # each rule that does not end before 2000 has a time after it
_UNREADABLE = "The call was not made: it needs text, repeat and time, each a text."


SCHEMA: dict[str, Any] = {  # without the titles that pydantic adds, which cost tokens
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("text", "repeat", "time")},
    "required": ["text", "repeat", "time"],
    "additionalProperties": False,
}


class ScheduleArguments(BaseModel):
    text: str
    repeat: str
    time: str


def read_arguments(given: Mapping[str, Any], *, now: datetime, zone: ZoneInfo) -> Plan:
    """Raises `InvalidRequest` with the sentence that the model reads."""
    try:
        arguments = ScheduleArguments.model_validate(given)
    except ValidationError:
        raise InvalidRequest(_UNREADABLE) from None
    return read_plan(arguments.text, arguments.repeat, arguments.time, now=now, zone=zone)


def is_possible(given: Mapping[str, Any]) -> bool:
    return _read(given) is not None


def describe(given: Mapping[str, Any]) -> Mapping[str, str]:
    plan = _read(given)
    return {"when": plan.describe(), "do": plan.text} if plan else {name: str(value) for name, value in given.items()}


def _read(given: Mapping[str, Any]) -> Plan | None:
    try:
        return read_arguments(given, now=_LONG_AGO, zone=ZoneInfo("UTC"))
    except InvalidRequest:
        return None
