"""What a sub-agent reads of its assignment and of its user, and what the assistant reads of a sub-agent's run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from backend.cards.agent_steps import list_written_files, render_step
from backend.conversations.records import UNKNOWN_OUTCOME, CallReason, Entry, Record, Run, Timeline, ToolCall
from backend.conversations.timeline import load_trees
from backend.runs.calls import Approvals
from backend.runs.outcomes import sentence_of
from backend.tools.table import find_tool
from common.database import Database

_MAX_RESULT_BYTES = 8_192
_MAX_OUTPUT_CHARS = 200  # of what a call returned
_STOPPED_BECAUSE = {
    "other_message": "The person wrote something else instead. ",
    "reach_changed": "What it can reach has changed since the person was asked. ",
}
OVER_LIMIT = (
    "The call was not made: this person has started {most} agents within a day, which is the limit. Say so, and do "
    "what you can without one."
)
_NOTHING_CHANGED = "It made no call that can change anything: whatever it says, nothing was changed."
_REPEATED = "Here the answer of the {agent} was ended, because it repeated itself."
_READ_MESSAGES = "\n\nIt has read what the person wrote while it worked."


def render_history(run: Run, timeline: Timeline, *, notes: str = "") -> Timeline:
    assignment = timeline.of_run(run.id).find_first("user_message")
    assert assignment is not None
    before = [entry for entry in timeline.entries if entry.run_id != run.id and (entry.seq or 0) < run.seq]
    text = _render_assignment(assignment, before[-1] if before else None)
    records: list[Record] = [replace(assignment, text=text + notes, details=None)]
    for record in timeline.records:
        if record.run_id == run.id and record is not assignment:
            records.append(record)
        elif _is_steering(record, run):
            records.append(render_steering(record))
    return Timeline(records)


def _is_steering(record: Record, run: Run) -> TypeGuard[Entry]:
    """Whether a record is a message that the user wrote while the run of a sub-agent went on."""
    return isinstance(record, Entry) and record.run_id != run.id and (record.seq or 0) >= run.seq


def _render_assignment(assignment: Entry, message: Entry | None) -> str:
    task_id = (assignment.details or {}).get("task_id")
    number = f" (task {task_id} of the person's list)" if task_id is not None else ""
    wrote = json.dumps(message.text, ensure_ascii=False) if message and message.text else ""
    belongs_to = f"\n\nThe person's own message, to which this belongs: {wrote}" if wrote else ""
    return f"Your work{number}: {assignment.text}{belongs_to}"


def render_steering(message: Entry) -> Entry:
    return replace(message, text=f"The person writes while you work: {message.text}", details=None)


async def add_results(database: Database, user_id: str, timeline: Timeline) -> None:
    """Gives calls in the timeline whose sub-agents were ended without an output how far these came."""
    calls = {
        (call.run_id, call.id): call
        for call in timeline.records
        if isinstance(call, ToolCall) and call.output is None and call.result_seq and find_tool(call.tool).agent
    }
    if not calls:
        return
    trees = await load_trees(database, user_id, list({run_id for run_id, _ in calls}), only_sub_agents=True)
    for run in trees.runs:
        call = calls.get((run.parent_run_id or "", run.parent_call_id or ""))
        if call is not None and run.ended_at is not None:
            call.output = render_result(run, trees.of_run(run.id))


def find_reason_to_end(call: ToolCall, run: Run, history: Timeline, approvals: Approvals) -> CallReason | None:
    """Returns why a sub-agent that waited does not go on; None if it does."""
    if approvals.has_reach_of_agent_changed(call):
        return "reach_changed"
    calls = history.of_run(run.id).calls
    newest = [one for one in calls if one.model_turn == calls[-1].model_turn]
    return "other_message" if any(one.reason == "other_message" for one in newest) else None


def render_result(run: Run, timeline: Timeline) -> str:
    """Renders what the assistant reads of a sub-agent's run that has ended: its answer, or why there is none and what
    it did, and the files that it changed, within 8 KB.
    """
    calls = timeline.of_run(run.id).calls
    if run.status == "interrupted":
        lines = [
            f"- {_describe_call(call, is_ended=False)}: {_shorten(call.output or 'outcome unknown')}" for call in calls
        ]
        text = f"{UNKNOWN_OUTCOME}\nThe steps that were recorded of the {run.agent}:\n" + ("\n".join(lines) or "- none")
    else:
        text = _render_end(run, timeline, calls)
        if any(_is_steering(record, run) for record in timeline.records):
            text += _READ_MESSAGES
    files = _render_files(calls)
    encoded, room = text.encode(), _MAX_RESULT_BYTES - len(files.encode()) - 8
    cut = text if len(encoded) <= room else encoded[:room].decode(errors="ignore") + " …"
    return f"{cut}\n\n{files}"


def _render_end(run: Run, timeline: Timeline, calls: Sequence[ToolCall]) -> str:
    did = "\n".join(f"- {_describe_call(call)}" for call in calls if call.state in ("done", "unknown")) or "- nothing"
    notice = timeline.of_run(run.id).find_last("notice")
    values = ((notice and notice.details) or {}).get("values", {})
    match run.status, run.error_code:
        case "completed", _:
            answer = timeline.find_last("assistant_message")
            text = answer.text if answer is not None else ""
            code = ((notice and notice.details) or {}).get("code")
            notes = {"nothing_changed": _NOTHING_CHANGED, "answer_repeated": _REPEATED.format(agent=run.agent)}
            return f"{text}\n\n{notes[code]}".strip() if code in notes else text
        case "failed", "empty_answer":
            return f"The {run.agent} gave no answer."
        case "failed", "too_many_model_turns":
            most = f"the agents of a message have {values.get('most')} model steps, and they are used up"
            return f"The {run.agent} was ended: {most}. It did not finish. What it did:\n{did}"
        case "failed", code:
            sentence = sentence_of(code or "failed", values)
            return f"The {run.agent} could not finish. {sentence} What it did before:\n{did}"
        case _, code:
            if any(call.reason == "other_message" for call in calls):  # the run's row says only that it was cancelled
                code = "other_message"
            why = _STOPPED_BECAUSE.get(code or "", "")
            return f"The {run.agent} was stopped. {why}What it did before:\n{did}"


def _describe_call(call: ToolCall, *, is_ended: bool = True) -> str:
    """Returns a call in a few words: what it did, and if it did not come to its end, what it was doing."""
    if is_ended and call.state in ("done", "unknown"):
        return render_step(call)["title"]
    return render_step(replace(call, state="running"))["title"].removesuffix("…")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_OUTPUT_CHARS else line[:_MAX_OUTPUT_CHARS] + "…"


def _render_files(calls: Sequence[ToolCall]) -> str:
    files: dict[str, int | None] = {}
    for call in calls:
        if call.state == "done":
            files |= list_written_files(call.tool, call.details)
    if not files:
        return "Files changed: none."
    sizes = {path: f" ({size:,} bytes)" if isinstance(size, int) else "" for path, size in files.items()}
    listed = "\n".join(f"- {path}{size}" for path, size in sizes.items())
    return f"Files changed:\n{listed}" if len(listed) < _MAX_RESULT_BYTES // 4 else f"Files changed: {len(sizes)}."
