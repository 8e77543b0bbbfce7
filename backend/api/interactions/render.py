"""Renders events and rows of a run, and what its sub-agents did, as the run API's events and objects."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from chatkit.types import UserMessageContent, UserMessageTagContent, UserMessageTextContent

from backend.api.interactions import schemas
from backend.api.interactions.schemas import MessagePart, Name, Status, Step, TaskPart, TextPart
from backend.api.messages import Content, content_of
from backend.api.sse import format_event
from backend.context.render import output_of
from backend.conversations.conversations import Conversation
from backend.conversations.records import ENDED, Entry, Event, ModelTurn, Record, Run, Timeline, ToolCall
from backend.conversations.steering import UnreadMessage
from backend.conversations.timeline import events_of
from backend.runs.outcomes import CUT_OFF_CODES, may_retry, sentence_of, sentence_of_notice
from backend.runs.sub_agents import render_result

_STATUS: dict[str, Status] = {
    "running": "RUNNING",
    "waiting": "WAITING_APPROVAL",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
    "interrupted": "FAILED",
}
# Of an entry that is complete, and of one that grows.
_ENTRIES: dict[str, tuple[Name, Name]] = {
    "assistant_message": ("answer", "answer_delta"),
    "reasoning": ("thinking", "thinking_delta"),
}

# What an agent did and said: the events that are kept in an interaction, and that are also shown of its sub-agents.
_AGENT_EVENTS: tuple[Name, ...] = ("tool_call", "tool_result", "answer", "thinking")
_APPROVAL_EVENTS: tuple[Name, ...] = ("approval_required", "approved", "rejected")

# A call that was left open when its run ended has none of these, and no result.
_UNMADE_REASONS = ("too_many", "over_limit", "not_shown", "reach_changed")

_NO_FAILURES = ("cancelled", *CUT_OFF_CODES)

Rendered = tuple[Name, dict[str, Any]]


def render_frames(event: Event, chat_id: str, interaction_id: str) -> bytes:
    """Renders an event as server-sent events; only the last has its number, so that a reader goes on after all."""
    rendered = _render_events(event, chat_id, interaction_id)
    frames = [format_event(data, event=name) for name, data in rendered[:-1]]
    frames += [format_event(data, event=name, id=event.number) for name, data in rendered[-1:]]
    return b"".join(frames)


def _render_events(event: Event, chat_id: str, interaction_id: str) -> list[Rendered]:
    if event.sub_agent is not None:
        return _render_sub_agent_event(event, event.sub_agent)
    of = {"interaction_id": interaction_id}
    match event.type, event.record:
        case "model_turn_started", _:
            return [("turn_start", of)]
        case "model_turn_ended", _:
            return [("turn_end", of)]
        case "run_ended", _ if event.run is not None:
            return [("interaction_complete", {**of, **_render_outcome(event.run)})]
        case "entry_completed", Entry(details={"code": "cancelled"}):
            return [("cancelled", of)]
        case "entry_completed", Entry(kind="user_message", details=details) if (details or {}).get("mode") != "steer":
            return [("interaction_started", {**of, "chat_id": chat_id})]
        case _:
            return render_event(event)


def _has_result(call: ToolCall) -> bool:
    """Whether a call has returned, or was not made for a reason that the model reads while its run goes on."""
    return call.state in ("done", "failed") or (call.state == "not_made" and call.reason in _UNMADE_REASONS)


def render_event(event: Event) -> list[Rendered]:
    """Renders an event under its name in the run API; an empty list for what the API does not show."""
    match event.type, event.record:
        case "entry_delta", Entry(kind=kind) if kind in _ENTRIES:
            return [(_ENTRIES[kind][1], {"content": event.text})]
        case "entry_completed", Entry(kind=kind) as entry if kind in _ENTRIES:
            name = _ENTRIES[kind][0]
            return [(name, {"type": name.upper(), "content": entry.text})]
        case "entry_completed", Entry(kind="summary", details={"messages": messages}) if messages:
            return [("compaction", {"messages": messages})]
        case "entry_completed", Entry(kind="notice", details={"code": code}) as notice if code not in _NO_FAILURES:
            return [("error", {"error": sentence_of_notice(notice), "allow_retry": may_retry(code), "code": code})]
        case "call_requested", ToolCall() as call if not call.needs_approval:
            return [_render_call(call)]
        case "call_completed", ToolCall() as call if _has_result(call):
            data = {"type": "TOOL_RESULT", "id": call.id, "tool_name": call.tool, "tool_output": output_of(call)}
            return [("tool_result", {**data, "is_error": call.state != "done", "details": call.details})]
        case "approval_requested", ToolCall() as call:
            return [("approval_required", render_question(call, event.sub_agent).model_dump())]
        case "approval_decided", ToolCall() as call:
            decision = {"approval_id": call.id, "reason": call.decision_text}
            return (
                [("rejected", decision)] if call.state == "rejected" else [("approved", decision), _render_call(call)]
            )
        case _:
            return []


def _render_call(call: ToolCall) -> Rendered:
    return "tool_call", {"type": "TOOL_CALL", "id": call.id, "tool_name": call.tool, "tool_input": call.arguments}


def _render_sub_agent_event(event: Event, agent: str) -> list[Rendered]:
    return [
        (name, {**data, "agent": agent} if name in _AGENT_EVENTS else data)
        for name, data in render_event(event)
        if name in _AGENT_EVENTS or name in _APPROVAL_EVENTS
    ]


def _render_outcome(run: Run) -> dict[str, Any]:
    reason = {"reason": sentence_of("interrupted")} if run.status == "interrupted" else {}
    following = {"next_interaction_id": run.next_run_id} if run.next_run_id else {}
    return {"status": _STATUS[run.status], **reason, **following}


def render_interaction(
    run: Run, trees: Timeline, *, siblings: list[str], messages: list[dict[str, Any]] | None, brief: bool
) -> schemas.Interaction:
    """Renders a run of these trees; `messages` are what the model is sent after it."""
    tree, own = [one for one in trees.runs if one.top_run_id == run.id], trees.of_run(run.id)
    message, events = own.find_first("user_message"), [] if brief else events_of(own)
    agent_events: list[Any] = [data for event in events for name, data in render_event(event) if name in _AGENT_EVENTS]
    calls = [(call, one) for one in tree for call in trees.of_run(one.id).calls if call.approval_seq]
    calls.sort(key=lambda pair: pair[0].approval_seq or 0)
    return schemas.Interaction(
        id=run.id,
        status=_STATUS[run.status],
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
    question = render_question(call, run.sub_agent)
    return schemas.Approval(**dict(question), approved=approved, reason=call.decision_text)


def render_question(call: ToolCall, sub_agent: str | None) -> schemas.Question:
    return schemas.Question(
        approval_id=call.id,
        agent=sub_agent,
        tool_name=call.tool,
        tool_input=call.arguments,
        text=call.approval_text or "",
    )


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
