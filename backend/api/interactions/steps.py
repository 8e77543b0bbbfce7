"""Renders what the sub-agents of an interaction did, step by step."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from backend.api.interactions.schemas import Step
from backend.context.render import output_of
from backend.conversations.records import ENDED, Entry, Event, ModelTurn, Record, Run, Timeline, ToolCall
from backend.conversations.timeline import TreeEvents
from backend.runs.sub_agents import render_result


def render_steps(tree: TreeEvents) -> list[Step]:
    steps = [step for run in tree.runs if run.is_sub_agent for step in _render_steps_of_run(run, tree.events)]
    return sorted(steps, key=lambda step: step.number)


def _render_steps_of_run(run: Run, events: list[Event]) -> Iterator[Step]:
    step = partial(Step, call_id=run.parent_call_id or "", agent=run.agent, details=None, created_at=run.created_at)
    records = {event.record.id: event.record for event in events if isinstance(event.record, Entry | ToolCall)}
    own = [record for record in records.values() if record.run_id == run.id]
    for event in events:
        number = event.number or 0
        match event.type, event.record:
            case _, record if record is None or record.run_id != run.id:
                continue
            case "entry_completed", Entry(kind="user_message") as entry:
                content = {"task": entry.text, "task_id": (entry.details or {}).get("task_id")}
                yield step(number=number, kind="task", content=content, created_at=entry.created_at or run.created_at)
            case "model_turn_ended", ModelTurn() as turn:
                details = {**(turn.usage or {}), "model": turn.model, "seconds": round(turn.seconds, 3)}
                yield step(number=number, kind="step", content=_render_turn(own, turn), details=details)
            case "call_completed", ToolCall() as call:
                content = {"call_id": call.id, "output": output_of(call)}
                details = {"ok": call.state == "done", **(call.details or {})}
                yield step(number=number, kind="output", content=content, details=details)
            case _:
                pass
    if run.status in ENDED and run.end_seq is not None:
        read = [one for one in records.values() if one.run_id == run.id or _is_message(one, run.top_run_id)]
        result = render_result(run, Timeline(sorted(read, key=lambda record: record.seq or 0)))
        content = {"outcome": run.status, "output": result}
        yield step(number=run.end_seq, kind="end", content=content, created_at=run.ended_at or run.created_at)


def _is_message(record: Record, run_id: str) -> bool:
    return isinstance(record, Entry) and record.run_id == run_id and record.kind == "user_message"


def _render_turn(records: list[Record], turn: ModelTurn) -> dict[str, Any]:
    of_turn = [record for record in records if record.model_turn == turn.model_turn]
    texts = [one.text for one in of_turn if isinstance(one, Entry) and one.kind == "assistant_message"]
    calls = [one for one in of_turn if isinstance(one, ToolCall)]
    return {
        "text": "\n".join(texts),
        "calls": [{"call_id": one.id, "name": one.tool, "arguments": one.arguments} for one in calls],
    }
