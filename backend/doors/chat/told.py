"""An interaction as `/chat` answers it: made of what is stored of it, its agents' steps among that."""

from collections.abc import Iterator, Sequence
from typing import Any

from backend.api.frontends import schemas as shapes
from backend.cards.approval_card import question
from backend.conversation import rows
from backend.conversation.agents.steps import Step
from backend.conversation.agents.story import Story
from backend.conversation.items import Ending, Hidden, Message, Said, Thought
from backend.conversation.runs.abandoned import CUT
from backend.conversation.runs.approvals import Approval
from backend.doors.task_list_text import last_list
from backend.model.text_responses import NO_ANSWER
from backend.tools.table import shown
from backend.turn.answers import EmptyAnswer
from backend.turn.following.stored import events_of
from backend.turn.lifecycle.endings import OUT_OF_STEPS

MOST_STEPS = "[MAX STEPS REACHED - No final answer provided]"
STAND_INS = (MOST_STEPS, NO_ANSWER)
"""What the protocol answers, with HTTP 200, where a run failed as its model gave no answer."""
ORCHESTRATOR = "orchestrator"
_STATUS: dict[str | None, shapes.Status] = {
    "completed": "completed",
    "cancelled": "cancelled",
    None: "waiting_approval",
}


def answered(story: Story, thread: str | None) -> shapes.Answered:
    """For who names the chat so; with None, it is named by its id."""
    items = [rows.to_value(row) for row in story.rows]
    reason = next((item.sentence for item in reversed(items) if isinstance(item, Ending)), None)
    if reason is None and story.outcome == "interrupted":
        reason = CUT
    steps = _Steps(story.by_agents)
    events = [*steps.events(items, ended=story.outcome == "completed")]
    status, answer = _STATUS.get(story.outcome, "failed"), steps.answer
    waiting = [one for one in story.asked if one.decision is None] if story.status == "waiting" else []
    if waiting:
        answer = "\n\n".join(question(one.text) for one in waiting)
    elif reason is not None and reason.startswith(OUT_OF_STEPS):
        answer = MOST_STEPS
    elif reason is not None and reason.startswith(str(EmptyAnswer())):
        events.append(steps.final())
        answer = NO_ANSWER
    elif status == "completed":
        listed = last_list(events_of(story.rows, story.outcome))
        answer = "\n\n".join(filter(str.strip, [answer, listed])) or NO_ANSWER
    return shapes.Answered(
        answer=answer,
        events=events,
        threadId=thread or story.conversation_id,
        interactionId=story.run_id,
        status=status,
        reason=reason,
        approvals=[_approval(one) for one in waiting],
    )


class _Steps:
    def __init__(self, by_agents: Sequence[Step]) -> None:
        self._by_agents: dict[str, list[Step]] = {}
        for step in by_agents:
            self._by_agents.setdefault(step.call_id, []).append(step)
        self._step = 0
        self._thoughts: list[str] = []
        self._said: list[str] = []  # since the last calls

    @property
    def answer(self) -> str:
        return "\n".join(self._said)

    def events(self, items: Sequence[Any], *, ended: bool) -> Iterator[shapes.StepEvent]:
        for item in items:
            match item:
                case Thought(text=text):
                    self._thoughts.append(text)
                case Message(text=text):
                    self._said.append(text)
                case Said() if self._said:  # that came when an answer had come to its end
                    yield self.final()
                    self._said = []
                case Hidden(content={"kind": "tool_calls", "calls": calls}):
                    yield from self._calls(calls)
                    self._said = []
                case _:
                    pass
        if ended and self._said:
            yield self.final()

    def final(self) -> shapes.StepEvent:
        self._step += 1
        return shapes.StepEvent(step=self._step, agent=ORCHESTRATOR, action="final", thought=self._thought())

    def _calls(self, calls: Sequence[Any]) -> Iterator[shapes.StepEvent]:
        self._step += 1
        yield from _wanted(self._step, ORCHESTRATOR, self._thought(), calls)
        for call in calls:
            for step in self._by_agents.pop(call["call_id"], ()):
                self._step += 1
                yield from _wanted(self._step, step.agent, _thought_of(step), step.content["calls"])

    def _thought(self) -> str:
        thought, self._thoughts = "\n".join(self._thoughts), []
        return thought


def _wanted(step: int, agent: str, thought: str, calls: Sequence[Any]) -> Iterator[shapes.StepEvent]:
    for call in calls:
        if (target := shown(call["name"]).agent) is not None:
            yield shapes.StepEvent(step=step, agent=agent, action="delegate", target_agent=target, thought=thought)
        else:
            yield shapes.StepEvent(step=step, agent=agent, action="use_tool", tool=call["name"], thought=thought)
    if not calls:
        yield shapes.StepEvent(step=step, agent=agent, action="final", thought=thought)


def _thought_of(step: Step) -> str:
    parts = [part for item in step.content["reasoning"] for part in item.get("content") or item.get("summary") or ()]
    return "\n".join(part.get("text", "") for part in parts)


def _approval(asked: Approval) -> shapes.Question:
    call = asked.call
    return shapes.Question(
        approval_id=asked.id,
        agent=asked.agent,
        tool_name=call["name"],
        tool_input=call["arguments"],
        text=asked.text,
    )
