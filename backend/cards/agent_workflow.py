"""What a sub-agent does, as one item of the conversation: rendered from the call that started it and its run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from backend.cards.agent_steps import list_written_files, render_step
from backend.cards.widget import Json, Workflow
from backend.conversations.records import ENDED, Entry, Event, Record, Run, ToolCall
from backend.tools.approval_policy import arguments_of
from backend.tools.table import find_tool


def render_workflow(call: ToolCall, run: Run, records: Sequence[Record], *, folder_url: str = "") -> Workflow:
    title = f"{run.agent.capitalize()}: {(arguments_of(call.arguments) or {}).get('task') or ''}"
    assignment: Json = {"title": title, "content": "", "icon": "agent", "state": "none"}
    steps = [assignment, *(step for step, _ in _render_steps(records, folder_url))]
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
    calls = [None, *(call for _, call in _render_steps(records, ""))]
    return calls[number] if number < len(calls) else None


def _render_steps(records: Sequence[Record], folder_url: str) -> Iterator[tuple[Json, ToolCall | None]]:
    """Yields the calls of a run and what was said between them as steps, each with its call if it has one."""
    with_calls = {record.model_turn for record in records if isinstance(record, ToolCall)}
    for record in records:
        if isinstance(record, ToolCall):
            if record.reason != "too_many":
                yield render_step(record, folder_url), record
        elif record.kind == "assistant_message" and record.complete and record.model_turn in with_calls:
            yield {"title": "", "content": record.text, "icon": None, "state": "none"}, None


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
        workflow = render_workflow(agent.call, run, [*agent.records.values()], folder_url=self.folder_url)
        before, agent.steps = agent.steps, workflow.steps
        numbers = [number for number, step in enumerate(agent.steps) if number >= len(before) or step != before[number]]
        return WorkflowChange(workflow, numbers, has_ended) if numbers or has_ended else None
