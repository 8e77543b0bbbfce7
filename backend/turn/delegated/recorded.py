"""What is known of an agent whose process died: its call has no output, but its steps were written down."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.agents import steps
from backend.conversation.agents.steps import Step
from backend.conversation.model_input.history import UNKNOWN_OUTCOME, content_of, outputs_of
from backend.conversation.reading import Recent
from backend.conversation.rows import StoredItem
from backend.tools.table import shown as of_tool
from backend.tools.workspace import shown
from backend.turn.run import Run
from service.database import pipelined

_LONGEST = 4_000  # characters
_OUTCOME = 200  # characters of what a call answered


async def with_recorded(engine: AsyncEngine, run: Run, recent: Recent) -> Recent:
    """The same rows, and for each agent's call that has no output one that tells of its steps; nothing is stored."""
    outputs = outputs_of(recent.rows)
    missing: dict[str, list[str]] = {}
    for row in recent.rows:
        if row.kind == "tool_calls" and (content := content_of(row)):
            ids = [call["call_id"] for call in content["calls"] if of_tool(call["name"]).agent]
            missing[row.id] = [call_id for call_id in ids if (row.id, call_id) not in outputs]
    if not any(missing.values()):
        return recent
    async with pipelined(engine, run.user_id) as pipeline:
        wanted = {call_id for ids in missing.values() for call_id in ids}
        sent = await steps.of_calls(pipeline, run.conversation_id, wanted, user_id=run.user_id)
    found: dict[str, list[Step]] = {}
    for step in await steps.read(sent):
        found.setdefault(step.call_id, []).append(step)
    rows = [one for row in recent.rows for one in (row, *_outputs(row, missing.get(row.id, ()), found))]
    return replace(recent, rows=rows)


def _outputs(row: StoredItem, ids: Sequence[str], found: Mapping[str, Sequence[Step]]) -> list[StoredItem]:
    told = [(call_id, _told(found[call_id])) for call_id in ids if call_id in found]
    return [
        StoredItem(row.seq, f"{row.id}/{call_id}", "tool_output", {"content": _content(call_id, text)})
        for call_id, text in told
    ]


def _content(call_id: str, text: str) -> dict[str, Any]:
    return {"kind": "tool_output", "output": {"type": "function_call_output", "call_id": call_id, "output": text}}


def _told(recorded: Sequence[Step]) -> str:
    """Of the last run that made a call of this id: what its agent wanted done, and what came of it."""
    last = [step for step in recorded if step.run_id == recorded[-1].run_id]
    outputs = {step.content["call_id"]: step.content["output"] for step in last if step.kind == "output"}
    calls = [call for step in last if step.kind == "step" for call in step.content["calls"]]
    lines = [f"- {_line(call)}: {_short(outputs.get(call['call_id'], 'outcome unknown'))}" for call in calls]
    listed = "\n".join(lines) or "- none"
    return f"{UNKNOWN_OUTCOME}\nThe steps that were recorded of the {last[0].agent}:\n{listed}"[:_LONGEST]


def _line(call: Mapping[str, str]) -> str:
    return shown.running(call["name"], call["arguments"], "")["title"].removesuffix("…")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _OUTCOME else line[:_OUTCOME] + "…"
