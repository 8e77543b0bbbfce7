"""Renders the rows of runs, and what sub-agents did, as objects of the run API."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from chatkit.types import UserMessageContent, UserMessageTagContent, UserMessageTextContent

from backend.api.interactions import schemas
from backend.api.interactions.events import STATUS, AgentEvent, Question, RenderedInteraction, changes_of, render_events
from backend.api.interactions.schemas import MessagePart, Step, TaskPart, TextPart
from backend.api.messages import Content, content_of
from backend.context.render import output_of
from backend.conversations.conversations import Conversation
from backend.conversations.records import ENDED, Entry, ModelTurn, Record, Run, Timeline, ToolCall
from backend.conversations.steering import UnreadMessage
from backend.conversations.timeline import events_of
from backend.runs.outcomes import sentence_of, sentence_of_notice
from backend.runs.sub_agents import render_result


def render_interaction(
    run: Run, trees: Timeline, *, siblings: list[str], messages: list[dict[str, Any]] | None, brief: bool
) -> schemas.Interaction:
    """Renders a run of these trees; `messages` are what the model is sent after it."""
    tree, own = [one for one in trees.runs if one.top_run_id == run.id], trees.of_run(run.id)
    message, events = own.find_first("user_message"), [] if brief else events_of(own)
    of = RenderedInteraction(run.id, run.conversation_id)
    agent_events: list[Any] = [
        one for event in events for one in render_events(event, of) if isinstance(one, AgentEvent)
    ]
    calls = [(call, one) for one in tree for call in trees.of_run(one.id).calls if call.approval_seq]
    calls.sort(key=lambda pair: pair[0].approval_seq or 0)
    return schemas.Interaction(
        id=run.id,
        status=STATUS[run.status],
        reason=render_reason(run, own) if run.status in ENDED else None,
        user_message=message.text if message is not None else "",
        created_at=run.created_at,
        completed_at=run.ended_at,
        usage=_render_usage(run, tree),
        steering_messages=[
            _render_steering_message(entry, run)
            for entry in own.entries
            if entry.kind == "user_message" and entry is not message and entry.seq is not None
        ],
        agent_events=agent_events,
        approvals=[_render_approval(call, one) for call, one in calls],
        **changes_of(next(iter(own.runs), None)),
        siblings=siblings,
        final_agent_state=schemas.AgentState(messages=messages) if messages is not None else None,
    )


def render_reason(run: Run, timeline: Timeline) -> str | None:
    """Returns why a run did not simply complete: the sentence of its last notice."""
    if (notice := timeline.find_last("notice")) is not None:
        return sentence_of_notice(notice)
    return sentence_of("interrupted") if run.status == "interrupted" else None


def _render_usage(run: Run, tree: Sequence[Run]) -> schemas.Usage | None:
    total, by_agent = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for one in tree:
        counts = {name: count for name, count in (one.usage or {}).items() if isinstance(count, int)}
        total.update(counts)
        if one.is_sub_agent:
            by_agent[one.agent].update(counts)
    if not total:
        return None
    model, temperature = (run.usage or {}).get("model"), run.options.get("temperature")
    parts = {agent: schemas.TokenCounts(**counts) for agent, counts in by_agent.items()}
    return schemas.Usage(model=model, temperature=temperature, by_agent=parts, **total)


def _render_steering_message(entry: Entry, run: Run) -> schemas.SteeringMessage:
    parts = _render_parts(content_of(entry.text, entry.details))
    created_at = entry.created_at or run.created_at
    return schemas.SteeringMessage(input_id=entry.id, text=entry.text, parts=parts, created_at=created_at)


def _render_approval(call: ToolCall, run: Run) -> schemas.Approval:
    approved = None if call.decision_seq is None else call.state != "rejected"
    question = Question.of_call(call, run.sub_agent)
    return schemas.Approval(**dict(question), approved=approved, reason=call.decision_text)


def render_chat_head(conversation: Conversation, path_id: str) -> schemas.ChatHead:
    return schemas.ChatHead(
        id=path_id,
        chat_id=conversation.id,
        name=conversation.name,
        title=conversation.title,
        created_at=conversation.created_at,
        leaf=conversation.head_run_id,
        answering=conversation.answering,
    )


def render_unread(message: UnreadMessage) -> schemas.UnreadMessage:
    return schemas.UnreadMessage(
        input_id=message.id,
        interaction_id=message.run_id,
        text=message.text,
        parts=_render_parts(content_of(message.text, message.details)),
        mode=message.mode,
        is_queued=message.is_queued,
        created_at=message.created_at,
    )


def _render_parts(content: Content) -> list[MessagePart]:
    return [
        TaskPart(type="task", task_id=int(part.id), title=part.text)
        if part.type == "input_tag"
        else TextPart(type="text", text=part.text)
        for part in content
        if part.type == "input_tag" or part.text
    ]


def parse_parts(message: str | Sequence[MessagePart]) -> list[UserMessageContent]:
    if isinstance(message, str):
        return [UserMessageTextContent(text=message)]
    return [
        UserMessageTagContent(id=str(part.task_id), text="", data={})
        if part.type == "task"
        else UserMessageTextContent(text=part.text)
        for part in message
    ]


def render_steps(trees: Timeline) -> list[Step]:
    steps = [step for run in trees.runs if run.is_sub_agent for step in _render_steps_of_run(run, trees)]
    return sorted(steps, key=lambda step: step.number)


def _render_steps_of_run(run: Run, trees: Timeline) -> Iterator[Step]:
    step = partial(Step, call_id=run.parent_call_id or "", agent=run.agent, details=None, created_at=run.created_at)
    own = trees.of_run(run.id)
    for event in events_of(own):
        number = event.number or 0
        match event.type, event.record:
            case "entry_completed", Entry(kind="user_message") as entry:
                content = {"task": entry.text, "task_id": (entry.details or {}).get("task_id")}
                yield step(number=number, kind="task", content=content, created_at=entry.created_at or run.created_at)
            case "model_turn_ended", ModelTurn() as turn:
                details = {**(turn.usage or {}), "model": turn.model, "seconds": round(turn.seconds, 3)}
                yield step(number=number, kind="step", content=_render_model_turn(own.records, turn), details=details)
            case "call_completed", ToolCall() as call:
                content = {"call_id": call.id, "output": output_of(call)}
                details = {"ok": call.state == "done", **(call.details or {})}
                yield step(number=number, kind="output", content=content, details=details)
            case _:
                pass
    if run.status in ENDED and run.end_seq is not None:
        read = [one for one in trees.records if one.run_id == run.id or _is_message(one, run.top_run_id)]
        result = render_result(run, Timeline(read))
        content = {"outcome": run.status, "output": result}
        yield step(number=run.end_seq, kind="end", content=content, created_at=run.ended_at or run.created_at)


def _is_message(record: Record, run_id: str) -> bool:
    return isinstance(record, Entry) and record.run_id == run_id and record.kind == "user_message"


def _render_model_turn(records: list[Record], turn: ModelTurn) -> dict[str, Any]:
    of_turn = [record for record in records if record.model_turn == turn.model_turn]
    texts = [one.text for one in of_turn if isinstance(one, Entry) and one.kind == "assistant_message"]
    calls = [one for one in of_turn if isinstance(one, ToolCall)]
    return {
        "text": "\n".join(texts),
        "calls": [{"call_id": one.id, "name": one.tool, "arguments": one.arguments} for one in calls],
    }
