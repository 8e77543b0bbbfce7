"""What is stored of a run, as a log tells it: for who comes when the log itself is not held any more."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from backend.conversation import rows
from backend.conversation.items import Ending, Hidden, Item, Json, Message, Summarised, Thought
from backend.conversation.rows import StoredItem
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.leases import Outcome
from backend.turn.lifecycle import endings
from backend.turn.log import Answered, Asked, Called, Compacted, Decided, Done, Event, Failed, Grown, Notice, end_with
from backend.turn.waiting.decisions import NEVER_MADE


def events_of(
    stored: Iterable[StoredItem],
    outcome: Outcome | None,
    told: Collection[str] | None = None,
    grown: Mapping[tuple[str, int], str] = MappingProxyType({}),
    *,
    asked: Iterable[Approval] = (),
    news: Summarised | None = None,
) -> Iterator[Event]:
    """Each item as it stays, and each call, or with `told` only the items without these ids; and how the run ended.

    Of what an item's parts had `grown` to, the rest is told before it: who joins what grows has the whole item.

    `asked` is what the run asked its person for, and `news` the summary that it was the first to read. One that has not
    ended has no outcome.
    """
    steps = _Steps(asked)
    failure: Failed | None = None
    if news is not None and told is None:
        yield Compacted(news)
    for row in stored:
        match rows.to_value(row):
            case Hidden(content=content):
                if told is None:
                    yield from steps.events(row.id, content)
            case Ending() as ending:
                failure = Failed(ending.sentence, allow_retry=ending.next == "ask again")
            case None | Summarised():  # made after the run's end: the next one tells of it
                pass
            case item if told is None:
                yield Done(item)
            case item if item.id not in told:
                yield from _rest_of(item, grown)
                yield Done(item)
    yield from steps.rest()
    if outcome is not None:
        yield from _end(failure, outcome)
        yield from end_with(outcome)


class _Steps:
    """The calls of each step, one after the other: those that were asked for come last, after what was decided.

    What an agent asked is told after the call that it worked for had begun.
    """

    def __init__(self, asked: Iterable[Approval]) -> None:
        self._asked = list(asked)
        self._calls: dict[str, Json] = {}  # of the last step, without an outcome yet
        self._waiting: list[Approval] = []  # of the last step, not told yet
        self._inside: list[Approval] = []  # of its agents

    def events(self, step_id: str, content: Json) -> Iterator[Event]:
        match content:
            case {"kind": "tool_calls", "calls": list(calls)}:
                yield from self.rest()
                self._calls = {call["call_id"]: call for call in calls}
                asked = [one for one in self._asked if one.step_id == step_id]
                self._waiting = [one for one in asked if one.of_call is None]
                self._inside = [one for one in asked if one.of_call is not None]
            case {"kind": "tool_output", "output": {"call_id": call_id, "output": output}}:
                if any(one.call["call_id"] == call_id for one in self._waiting):
                    yield from self._decisions()
                if call := self._calls.pop(call_id, None):
                    if (text := _text(output)) in NEVER_MADE:
                        return
                    yield from self._begun(call)
                    yield Answered(call_id, call["name"], text)
            case _:
                pass

    def rest(self) -> Iterator[Event]:
        """What is left of the last step: calls that wait, or whose outcome is not known."""
        yield from self._decisions()
        for call in self._calls.values():
            yield from self._begun(call)
        self._calls = {}

    def _decisions(self) -> Iterator[Event]:
        waiting, self._waiting = self._waiting, []
        yield from _asked(waiting)
        decided = [one for one in waiting if one.decided_at is not None]
        for one in waiting:
            # It was not made, and its output is what the model was told; or it waits until the others are decided, too.
            if one.decision != "approved" or len(decided) < len(waiting):
                self._calls.pop(one.call["call_id"], None)

    def _begun(self, call: Json) -> Iterator[Event]:
        yield Called(call["call_id"], call["name"], call["arguments"])
        yield from _asked([one for one in self._inside if one.of_call == call["call_id"]])


def _asked(asked: Sequence[Approval]) -> Iterator[Event]:
    """What was asked, and then what was decided of it, for each time that the run waited."""
    for _, together in groupby(asked, key=lambda one: one.of_call and one.created_at):
        waiting = [*together]
        for one in waiting:
            call = one.call
            yield Asked(one.id, call["call_id"], call["name"], call["arguments"], one.text, one.agent)
        decided = [one for one in waiting if one.decided_at is not None]
        for one in sorted(decided, key=lambda one: one.decided_at or one.created_at):
            yield Decided(one.id, one.decision == "approved", one.reason)


def _rest_of(item: Item, grown: Mapping[tuple[str, int], str]) -> Iterator[Grown]:
    texts = item.parts if isinstance(item, Message) else [item.text] if isinstance(item, Thought) else []
    for part, text in enumerate(texts):
        before = grown.get((item.id, part), "")
        if text != before and text.startswith(before):
            yield Grown(item.id, part, text.removeprefix(before))


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "\n".join(part.get("text", "") for part in output)


def _end(failure: Failed | None, outcome: Outcome) -> Iterator[Event]:
    if outcome == "interrupted":
        yield Failed(endings.INTERRUPTED, allow_retry=True)
    elif failure is not None and outcome == "failed":
        yield failure
    elif failure is not None and outcome == "completed":
        yield Notice(failure.message)
