"""Agents that wait for their person with their run, and are ended with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from backend.conversation.acting import Acting
from backend.conversation.agents import steps
from backend.conversation.agents.steps import Kind, Step
from backend.conversation.items import Json, Work
from backend.conversation.model_input.history import NOT_MADE
from backend.conversation.runs.approvals import Approval
from backend.tools.table import TOOLS
from backend.turn.delegated.transcript import clean, of_call, recorded
from backend.turn.log import Answered, Event, Replaced
from service.database import Pipeline


@dataclass(frozen=True)
class Stopped:
    """What is shown of an agent's work by then, and what the assistant's model reads of its call."""

    call_id: str
    work: Work
    text: str

    def events(self) -> Iterator[Event]:
        tool = next(name for name, shown in TOOLS.items() if shown.agent == self.work.agent)
        yield Answered(self.call_id, tool, self.text)
        yield Replaced(self.work)


async def end(
    pipeline: Pipeline,
    conversation_id: str,
    asked: Sequence[tuple[Approval, str]],
    acting: Acting,
    *,
    reason: str,
    status: str,
) -> list[Stopped]:
    """End the agents of a run of this `status`, each of whose calls is `asked` with what its model would read of it.

    Their steps are written; the rest is returned. Asks the database before the pipeline's end, if there are any.
    """
    if not asked:
        return []
    assert acting.run_id is not None
    sent = await steps.of_run(pipeline, conversation_id, acting.run_id, user_id=acting.user_id)
    found, works = await sent.found()
    numbers = count(max(step.seq for step in found) + 1)
    ended: list[Stopped] = []
    for call_id in dict.fromkeys(one.of_call for one, _ in asked if one.of_call is not None):
        did = recorded(of_call(found, call_id), works)
        own = {one.call["call_id"]: (one.decision, text) for one, text in asked if one.of_call == call_id}
        rows: list[tuple[Kind, Json, Json | None]] = []
        for call in did.stopped:
            decision, text = own.get(call.call_id, (None, NOT_MADE))
            rows.append(("output", did.output(call, text), {"ok": False}))
            did.leave(call, text, why="refused" if decision == "refused" else "not made")
        text = did.told(f"The {did.agent} was stopped. {reason} What it did before:\n{did.so_far()}")
        did.work.ended = did.summary("stopped")
        for kind, content, details in [*rows, ("end", {"outcome": "stopped", "output": text}, None)]:
            step = Step(acting.run_id, call_id, next(numbers), did.agent, kind, clean(content), details=details)
            await steps.add(pipeline, conversation_id, step, acting, status=status)
        ended.append(Stopped(call_id, did.work, text))
    return ended
