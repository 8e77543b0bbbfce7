"""Tool calls as the model has written them: their idempotency keys, and which of them are not made."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from agents.items import ItemHelpers
from openai.types.responses import ResponseFunctionToolCall

from backend.conversations.records import Run, ToolCall
from backend.model.tool_calls import is_object, storable
from backend.tools.connection import FailedOutput

MAX_CALLS = 6
"""How many calls of one response are made."""


EqualCalls = Counter[tuple[str, str]]
"""How often a run has made a call, by its tool and its arguments, however they are written."""


def count_calls(calls: Iterable[ToolCall]) -> EqualCalls:
    return Counter((call.tool, _normalize(call.arguments)) for call in calls)


def create_calls(
    items: Iterable[ResponseFunctionToolCall], run: Run, model_turn: int, *, seed: str, made: EqualCalls
) -> list[ToolCall]:
    """Creates the calls of a model turn, and counts them in `made`.

    Idempotency keys are derived from the `seed`, the id of the message that the run answers.
    """
    calls: list[ToolCall] = []
    for item in items:
        arguments = _normalize(item.arguments)
        count = made[item.name, arguments]
        made[item.name, arguments] += 1
        key = hashlib.sha256(json.dumps([seed, item.name, arguments, count]).encode()).hexdigest()
        calls.append(ToolCall(run.id, item.call_id, model_turn, item.name, item.arguments, "requested", key))
    return calls


def limit_calls(calls: Sequence[ToolCall], *, is_cut_off: bool, max_tokens: int | None) -> None:
    """Notes the reason of calls that are not made: those beyond the limit, and one that the output limit cut off."""
    if is_cut_off and not is_object(calls[-1].arguments):
        calls[-1].reason, calls[-1].details = "over_limit", {"max_tokens": max_tokens}
    for call in calls[MAX_CALLS:]:
        call.reason, call.details = "too_many", None


def add_result(call: ToolCall, item: ResponseFunctionToolCall, result: Any, seconds: float) -> None:
    """Adds what a tool returned to a call that was made; what failed without an error has its state already."""
    call.seconds = seconds
    call.details = _make_storable(call.details)
    call.output = storable(get_text(ItemHelpers.tool_call_output_item(item, result)["output"]))
    if call.state != "failed":
        call.state = "failed" if isinstance(result, FailedOutput) else "done"


def _normalize(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return arguments


def _make_storable(value: Any) -> Any:
    """Returns the JSON value without characters that PostgreSQL cannot store: programs write any bytes."""
    match value:
        case str():
            return storable(value)
        case list():
            return [_make_storable(one) for one in value]
        case dict():
            return {storable(str(name)): _make_storable(one) for name, one in value.items()}
        case _:
            return value


def get_text(output: str | Sequence[Any]) -> str:
    return output if isinstance(output, str) else "\n".join(part.get("text", "") for part in output)
