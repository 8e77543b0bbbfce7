"""What is known of calls whose process died before their output was written: refusals, and the steps of agents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.agents import steps
from backend.conversation.agents.steps import Step
from backend.conversation.model_input.history import UNKNOWN_OUTCOME, content_of, outputs_of
from backend.conversation.reading import Recent
from backend.conversation.rows import StoredItem
from backend.conversation.runs import approvals
from backend.conversation.runs.approvals import Approval
from backend.tools.table import shown as of_tool
from backend.tools.workspace import shown
from backend.turn.run import Run
from backend.turn.waiting.decisions import refusal
from service.database import pipelined

_LONGEST = 4_000  # characters
_OUTCOME = 200  # characters of what a call answered


async def with_recorded(engine: AsyncEngine, run: Run, recent: Recent) -> Recent:
    """The same rows, and for each call without an output of which something is known one that tells it.

    Nothing is stored.
    """
    outputs = outputs_of(recent.rows)
    missing: dict[str, list[dict[str, str]]] = {}
    for row in recent.rows:
        if row.kind == "tool_calls" and (content := content_of(row)):
            calls = [call for call in content["calls"] if (row.id, call["call_id"]) not in outputs]
            missing |= {row.id: calls} if calls else {}
    if not missing:
        return recent
    async with pipelined(engine, run.user_id) as pipeline:
        wanted = {call["call_id"] for calls in missing.values() for call in calls if of_tool(call["name"]).agent}
        sent = await steps.of_calls(pipeline, run.conversation_id, wanted, user_id=run.user_id)
        refusing = await approvals.refused_of(pipeline, run.conversation_id, [*missing], user_id=run.user_id)
    found: dict[str, list[Step]] = {}
    for step in await steps.read(sent):
        found.setdefault(step.call_id, []).append(step)
    refused = await approvals.read(refusing)
    rows = [one for row in recent.rows for one in (row, *_outputs(row, missing.get(row.id, ()), found, refused))]
    return replace(recent, rows=rows)


def _outputs(
    row: StoredItem,
    calls: Sequence[Mapping[str, str]],
    found: Mapping[str, Sequence[Step]],
    refused: Sequence[Approval],
) -> list[StoredItem]:
    here = [one for one in refused if one.step_id == row.id]
    told = {one.call["call_id"]: refusal(one) for one in here if one.of_call is None}
    of_agents = [call["call_id"] for call in calls if of_tool(call["name"]).agent]
    told |= {call_id: _told(found[call_id], here) for call_id in of_agents if call_id in found}
    return [
        StoredItem(row.seq, f"{row.id}/{call_id}", "tool_output", {"content": _content(call_id, told[call_id])})
        for call_id in (call["call_id"] for call in calls)
        if call_id in told
    ]


def _content(call_id: str, text: str) -> dict[str, Any]:
    return {"kind": "tool_output", "output": {"type": "function_call_output", "call_id": call_id, "output": text}}


def _told(recorded: Sequence[Step], refused: Sequence[Approval]) -> str:
    """Of the last run that made a call of this id: what its agent wanted done, and what came of it."""
    last = [step for step in recorded if step.run_id == recorded[-1].run_id]
    told = {one.call["call_id"]: refusal(one) for one in refused if one.of_call == last[0].call_id}
    told |= {step.content["call_id"]: step.content["output"] for step in last if step.kind == "output"}
    calls = [call for step in last if step.kind == "step" for call in step.content["calls"]]
    lines = [f"- {_line(call)}: {_short(told.get(call['call_id'], 'outcome unknown'))}" for call in calls]
    listed = "\n".join(lines) or "- none"
    return f"{UNKNOWN_OUTCOME}\nThe steps that were recorded of the {last[0].agent}:\n{listed}"[:_LONGEST]


def _line(call: Mapping[str, str]) -> str:
    return shown.running(call["name"], call["arguments"], "")["title"].removesuffix("…")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _OUTCOME else line[:_OUTCOME] + "…"
