"""What is stored of a run, as a log tells it: for who comes when the log itself is not held any more."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from backend.conversation import rows
from backend.conversation.items import Ending, Hidden
from backend.conversation.rows import StoredItem
from backend.conversation.runs.leases import Outcome
from backend.turn import endings
from backend.turn.log import Answered, Called, Done, Ended, Event, Failed, Notice


def events_of(stored: Iterable[StoredItem], outcome: Outcome, told: Collection[str] | None = None) -> Iterator[Event]:
    """Each item as it stays, and each call, or with `told` only the items without these ids; and how the run ended."""
    tools: dict[str, str] = {}
    failure: Failed | None = None
    for row in stored:
        match rows.to_value(row):
            case Hidden(content=content):
                if told is None:
                    yield from _step(content, tools)
            case Ending() as ending:
                failure = Failed(ending.sentence, allow_retry=ending.next == "ask again")
            case None:
                pass
            case item if told is None or item.id not in told:
                yield Done(item)
    yield from _end(failure, outcome)
    yield Ended(outcome)


def _step(content: dict[str, Any], tools: dict[str, str]) -> Iterator[Event]:
    match content:
        case {"kind": "tool_calls", "calls": list(calls)}:
            for call in calls:
                tools[call["call_id"]] = call["name"]
                yield Called(call["call_id"], call["name"], call["arguments"])
        case {"kind": "tool_output", "output": {"call_id": call_id, "output": output}}:
            yield Answered(call_id, tools.get(call_id, ""), _text(output))
        case _:
            pass


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.get("text", "") for part in output)


def _end(failure: Failed | None, outcome: Outcome) -> Iterator[Event]:
    if outcome == "interrupted":
        yield Failed(endings.INTERRUPTED, allow_retry=True)
    elif failure is not None and outcome == "failed":
        yield failure
    elif failure is not None and outcome == "completed":
        yield Notice(failure.message)
