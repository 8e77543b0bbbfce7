"""Renders a run as `POST /chat` answers it: the answer, and each action of each agent that led to it."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import count
from typing import Literal

from pydantic import BaseModel, Field

from backend.api.interactions.events import Changes, Named, Question, Unread, changes_of
from backend.api.interactions.render import render_reason
from backend.cards.approvals import as_question
from backend.cards.task_lists import render_list_text
from backend.conversations.records import Entry, Event, Record, Run, Timeline, ToolCall
from backend.model.responses.text_responses import NO_ANSWER
from backend.tools.table import find_tool

Action = Literal["use_tool", "delegate", "final"]
Status = Literal["completed", "waiting_approval", "cancelled", "failed"]

MAX_STEPS = "[MAX STEPS REACHED - No final answer provided]"
_STAND_INS = {"too_many_model_turns": MAX_STEPS, "empty_answer": NO_ANSWER}
"""What the protocol answers, with HTTP 200, where a run failed as its model gave no answer; by error code."""
_ORCHESTRATOR = "orchestrator"
_STATUS: dict[str, Status] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "waiting": "waiting_approval",
}


class StepEvent(BaseModel):
    """`step` is the model's request that wanted it, counted over all agents; one may want several things."""

    step: int
    agent: str
    action: Action
    tool: str | None = None
    target_agent: str | None = None
    thought: str = ""


class ChatResponse(BaseModel):
    answer: str
    events: list[StepEvent]
    thread_id: str = Field(alias="threadId")
    interaction_id: str = Field(alias="interactionId")
    status: Status
    reason: str | None = Field(description="Why it did not complete.")
    changes: Changes
    named: Named = None
    unread: Unread = False
    approvals: list[Question] = Field(description="The calls to decide before it continues.")


class FailedChatResponse(ChatResponse):
    error: str = Field(description="One sentence that says what to do next.")


async def collect(events: AsyncGenerator[Event]) -> Timeline:
    """Reads the events of a tree of runs from the first to the last, and returns its runs and records."""
    runs, records = dict[str, Run](), dict[tuple[str, str], Record]()
    async with aclosing(events):
        async for event in events:
            if event.run is not None:
                runs[event.run.id] = event.run
            if isinstance(event.record, Entry | ToolCall) and event.type not in ("entry_started", "entry_delta"):
                records[event.record.run_id, event.record.id] = event.record
    return Timeline(
        sorted(records.values(), key=lambda record: record.seq or 0),
        runs=sorted(runs.values(), key=lambda run: run.seq),
    )


def is_error(run: Run) -> bool:
    """Whether a run has failed, and no stand-in takes the place of its answer."""
    return run.status in ("failed", "interrupted") and run.error_code not in _STAND_INS


async def render_answer(run: Run, trees: Timeline, thread: str | None) -> ChatResponse:
    own = trees.of_run(run.id)
    calls = [(one, call) for one in trees.runs for call in trees.of_run(one.id).calls]
    waiting = [(one, call) for one, call in calls if run.status == "waiting" and call.state == "awaiting_approval"]
    events = [*_render_actions(trees, run, count(1))]
    if run.error_code == "empty_answer":
        events.append(StepEvent(step=events[-1].step + 1 if events else 1, agent=_ORCHESTRATOR, action="final"))
    return ChatResponse(
        answer=await _render_text(run, own.records, [call for _, call in waiting]),
        events=events,
        threadId=thread or run.conversation_id,
        interactionId=run.id,
        status=_STATUS.get(run.status, "failed"),
        reason=render_reason(run, own),
        **changes_of(run),
        approvals=[Question.of_call(call, one.sub_agent) for one, call in waiting],
    )


async def _render_text(run: Run, records: Sequence[Record], waiting: Sequence[ToolCall]) -> str:
    if waiting:
        return "\n\n".join(as_question(call.approval_text or "") for call in waiting)
    if (stand_in := _STAND_INS.get(run.error_code or "")) is not None:
        return stand_in
    last_call = max((position for position, one in enumerate(records) if isinstance(one, ToolCall)), default=-1)
    last = [one for one in records[last_call + 1 :] if isinstance(one, Entry) and one.kind == "assistant_message"]
    answer = "\n".join(entry.text for entry in last)
    if run.status != "completed":
        return answer
    return "\n\n".join(filter(str.strip, [answer, await render_list_text(records)])) or NO_ANSWER


def _render_actions(trees: Timeline, run: Run, steps: Iterator[int]) -> Iterator[StepEvent]:
    """Renders a run's actions, and its sub-agents'; `steps` numbers the model turns over all agents."""
    records = trees.of_run(run.id).records
    turns = sorted({record.model_turn for record in records if record.model_turn})
    agent = run.agent if run.is_sub_agent else _ORCHESTRATOR
    for turn in turns:
        of_turn = [record for record in records if record.model_turn == turn]
        calls = [record for record in of_turn if isinstance(record, ToolCall)]
        if not calls and turn == turns[-1] and run.status != "completed":
            continue  # it was cut off
        if any(isinstance(one, Entry) and one.kind == "withdrawn" for one in of_turn):
            continue
        thoughts = [one.text for one in of_turn if isinstance(one, Entry) and one.kind == "reasoning"]
        step, thought = next(steps), "\n".join(thoughts)
        for call in calls:
            target = find_tool(call.tool).agent
            yield StepEvent(
                step=step,
                agent=agent,
                action="use_tool" if target is None else "delegate",
                tool=call.tool if target is None else None,
                target_agent=target,
                thought=thought,
            )
        for call in calls:
            for sub_agent in trees.runs:
                if (sub_agent.parent_run_id, sub_agent.parent_call_id) == (run.id, call.id):
                    yield from _render_actions(trees, sub_agent, steps)
        if not calls:
            yield StepEvent(step=step, agent=agent, action="final", thought=thought)
