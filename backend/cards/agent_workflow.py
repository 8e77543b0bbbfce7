"""What a sub-agent does, as one item of the conversation: rendered from the call that started it and its run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from backend.cards.agent_steps import list_written_files, render_step
from backend.cards.widget import Json, Workflow
from backend.conversations.records import ENDED, Entry, Event, Record, Run, ToolCall
from backend.tools.approval_policy import arguments_of
from backend.tools.table import find_tool
from common.pauses import with_pauses


async def render_calls(records: Sequence[Record], folder_url: str) -> dict[str, Json]:
    """Renders calls as steps, by their ids; others are served in between."""
    calls = (record for record in records if isinstance(record, ToolCall))
    return {call.id: render_step(call, folder_url) async for call in with_pauses(calls)}


def render_workflow(call: ToolCall, run: Run, records: Sequence[Record], rendered: Mapping[str, Json]) -> Workflow:
    """Renders the work of a sub-agent, of whose calls the steps are `rendered`."""
    title = f"{run.agent.capitalize()}: {(arguments_of(call.arguments) or {}).get('task') or ''}"
    assignment: Json = {"title": title, "content": "", "icon": "agent", "state": "none"}
    steps = [assignment, *(_render_record(record, rendered) for record in _select_shown(records))]
    return Workflow(
        f"wf_{call.id}",
        run.seq,
        call.created_at or run.created_at,
        run.agent.capitalize(),
        steps,
        _render_summary(run, records, steps) if run.status in ENDED else None,
        is_waiting=run.status == "waiting",
    )


def find_call(records: Sequence[Record], number: int) -> ToolCall | None:
    """Returns the call that a step shows; None for a text, and for the assignment, which is step 0."""
    shown = [None, *_select_shown(records)]
    record = shown[number] if number < len(shown) else None
    return record if isinstance(record, ToolCall) else None


def _select_shown(records: Sequence[Record]) -> Iterator[Record]:
    """Yields the calls of a run and what was said between them."""
    with_calls = {record.model_turn for record in records if isinstance(record, ToolCall)}
    for record in records:
        if isinstance(record, ToolCall):
            if record.reason != "too_many":
                yield record
        elif record.kind == "assistant_message" and record.complete and record.model_turn in with_calls:
            yield record


def _render_record(record: Record, rendered: Mapping[str, Json]) -> Json:
    if isinstance(record, ToolCall):
        return rendered[record.id]
    return {"title": "", "content": record.text, "icon": None, "state": "none"}


def _render_summary(run: Run, records: Sequence[Record], steps: Sequence[Json]) -> str:
    done = sum(step["state"] == "done" for step in steps)
    ended = [one for one in records if isinstance(one, ToolCall) and one.state in ("done", "failed")]
    files = {path for call in ended for path in list_written_files(call.tool, call.details)}
    parts = [
        f"{run.agent.capitalize()}: {done} step{'' if done == 1 else 's'}",
        *([f"{len(files)} file{'' if len(files) == 1 else 's'} written"] if files else []),
        *(["stopped" if run.status == "cancelled" else run.status] if run.status != "completed" else []),
    ]
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class WorkflowChange:
    """What became of a sub-agent's item: steps with these `numbers` are new or have changed, or it has ended."""

    workflow: Workflow
    numbers: Sequence[int]
    has_ended: bool


@dataclass(slots=True)
class _Agent:
    call: ToolCall
    run: Run | None = None
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    steps: Sequence[Json] = ()
    ended_calls: dict[str, Json] = field(default_factory=dict[str, Json])
    """The steps of calls that change no more."""


@dataclass(slots=True)
class WorkflowStream:
    """The items of the sub-agents of a run, for one reader of its events."""

    folder_url: str = ""
    _agents: dict[str, _Agent] = field(default_factory=dict[str, _Agent])

    def apply_event(self, event: Event) -> WorkflowChange | None:
        run, record = event.run, event.record
        if run is not None and run.parent_call_id is not None:
            agent = self._agents.get(run.parent_call_id)
            if agent is None or (agent.steps and event.type in ("entry_started", "entry_delta", "progress")):
                return None
            if isinstance(record, ToolCall) or (isinstance(record, Entry) and event.type == "entry_completed"):
                agent.records[record.id] = record
            agent.run = run
            return self._find_change(agent, run)
        if isinstance(record, ToolCall) and find_tool(record.tool).agent is not None:
            agent = self._agents.setdefault(record.id, _Agent(record))
            if event.type == "call_completed" and agent.run is not None:
                del self._agents[record.id]
                return self._find_change(agent, agent.run, has_ended=True)
        return None

    def _find_change(self, agent: _Agent, run: Run, *, has_ended: bool = False) -> WorkflowChange | None:
        """Renders an item again and compares its steps with those before; None if nothing has changed."""
        records = [*agent.records.values()]
        rendered = dict[str, Json]()
        for call in records:
            if isinstance(call, ToolCall):
                rendered[call.id] = agent.ended_calls.get(call.id) or render_step(call, self.folder_url)
                if call.state in ("done", "failed"):
                    agent.ended_calls[call.id] = rendered[call.id]
        workflow = render_workflow(agent.call, run, records, rendered)
        before, agent.steps = agent.steps, workflow.steps
        numbers = [number for number, step in enumerate(agent.steps) if number >= len(before) or step != before[number]]
        return WorkflowChange(workflow, numbers, has_ended) if numbers or has_ended else None
