"""The lines of one conversation, of its rows in their order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backend.conversation import rows
from backend.conversation.items import Ending, Json, Message, Said
from backend.conversation.model_input.history import content_of, plain
from backend.conversation.rows import StoredItem
from backend.conversation.runs.abandoned import CUT
from backend.transcript import calls
from backend.transcript.calls import Step
from backend.transcript.lines import Line, figures, line
from backend.transcript.runs import Run, Runs

KINDS = ("user_message", "assistant_message", "tool_calls", "tool_output", "task")
"""Of the rows of a conversation, those that are told."""
ASSISTANT = "assistant"
_BEHIND = 2**63  # all rows


@dataclass(frozen=True)
class Head:
    """A conversation; `left_id` is the one that it was begun in place of, if there is one."""

    id: str
    created_at: datetime
    left_id: str | None
    leaf_run_id: str | None


@dataclass(frozen=True)
class Row:
    seq: int
    id: str
    run_id: str | None
    kind: str
    item: Json
    usage: Json | None
    created_at: datetime


Steps = Mapping[tuple[str | None, str], Sequence[Step]]
"""What agents did, by the run and the id of the call that started them."""


class Transcript:
    def __init__(self, head: Head, runs: Iterable[Run]) -> None:
        self._head = head
        self._runs = Runs(runs, head.id)
        self._said: list[tuple[Row, str]] = []  # by the assistant, whose request may have gone on with calls
        self._calls: dict[tuple[str | None, str], tuple[str, str]] = {}  # the line of the newest, and its tool
        self._started: Counter[tuple[str | None, str]] = Counter()
        self._failed: set[tuple[str | None, str]] = set()  # calls whose agent did not come to its end
        self._explained: set[str | None] = set()  # runs that say why they did not

    def begin(self) -> Line:
        head = self._head
        return self._line("session_start", head.created_at, id=head.id, parent_id=head.left_id, actor="system")

    def of(self, row: Row, steps: Steps) -> Iterator[Line]:
        """The lines of a row, and below its calls those of the agents that they started."""
        if row.kind == "tool_calls":
            yield from self._step(row, steps)
            return
        if row.kind != "assistant_message":
            yield from self._spoken()
        if row.kind == "tool_output":
            yield from self._result(row)
            return
        match rows.to_value(StoredItem(row.seq, row.id, row.kind, row.item)):
            case Said(text=text):
                yield self._add(row, "user_message", actor="user", input=text)
            case Message(text=text):
                if self._said and self._said[0][0].run_id != row.run_id:
                    yield from self._spoken()
                self._said.append((row, text))
            case Ending(sentence=sentence):
                self._explained.add(row.run_id)
                level = "ERROR" if self._runs.went_wrong(row.run_id) else "WARNING"
                yield self._add(row, "error", level=level, actor="system", error=sentence)
            case _:
                pass

    def end(self, cleared: Iterable[tuple[str, datetime]]) -> Iterator[Line]:
        """What comes behind all rows; `cleared` are the conversations that were begun in place of this one."""
        yield from self._spoken()
        for run in self._runs.went_wrong_without(self._explained):
            row = Row(_BEHIND, f"{run.id}/end", run.id, "task", {}, None, run.ended_at or self._head.created_at)
            yield self._add(row, "error", level="ERROR", actor="system", error=CUT)
        last = self._runs.before(self._head.leaf_run_id)
        for other, at in cleared:
            own = f"{self._head.id}/{other}"
            yield self._line("session_clear", at, id=own, parent_id=last, actor="user", output=other)

    def _spoken(self, usage: Json | None = None) -> Iterator[Line]:
        """What the assistant said, and with the last of it what its request took."""
        said, self._said = self._said, []
        for number, (row, text) in enumerate(said, 1):
            took = row.usage or (usage if number == len(said) else None)
            yield self._asked(row, text, took)

    def _asked(self, row: Row, text: str | None, usage: Json | None) -> Line:
        """The model was asked, and said this."""
        took = figures(usage, model=self._runs.model(row.run_id))
        return self._add(row, "assistant_message", actor=ASSISTANT, agent=ASSISTANT, output=text, **took)

    def _step(self, row: Row, steps: Steps) -> Iterator[Line]:
        if self._said and self._said[0][0].run_id == row.run_id:
            yield from self._spoken(row.usage)
        else:
            yield from self._spoken()
            yield self._asked(row, None, row.usage)
        asking = self._runs.before(row.run_id)
        made = calls.of(row.item.get("content"))
        for call in made:
            own = f"{row.id}/{call.id}"
            self._calls[row.run_id, call.id] = own, call.name
            who: dict[str, Any] = {"actor": ASSISTANT, "agent": ASSISTANT, "parent_id": asking}
            yield self._add(row, calls.event(call.name, "call"), id=own, **who, **call.told)
        for call in made:
            of_call = row.run_id, call.id
            works = calls.works(steps.get(of_call, ()))
            number, self._started[of_call] = self._started[of_call], self._started[of_call] + 1
            for work in works[number : number + 1]:
                model = self._runs.model(row.run_id)
                for told in calls.of_agent(work, f"{row.id}/{call.id}", model=model):
                    yield told | {"session_id": self._head.id, "turn": self._runs.turn(row.run_id)}
                if not calls.has_completed(work):
                    self._failed.add(of_call)

    def _result(self, row: Row) -> Iterator[Line]:
        content = content_of(StoredItem(row.seq, row.id, row.kind, row.item))
        if content is None or (of_call := (row.run_id, content["output"]["call_id"])) not in self._calls:
            return
        text = plain(content["output"]["output"])
        own, name = self._calls[of_call]
        error = text if of_call in self._failed or calls.is_refusal(name, text) else None
        self._failed.discard(of_call)
        told = calls.answered(name, text, error)
        yield self._add(row, calls.event(name, "result"), agent=ASSISTANT, parent_id=own, **told)

    def _add(self, row: Row, event: str, *, id: str | None = None, parent_id: str | None = None, **more: Any) -> Line:
        """A line of a run, after which the next goes on."""
        own, before = id or row.id, parent_id or self._runs.before(row.run_id)
        self._runs.add(row.run_id, row.seq, own, is_message=row.kind == "user_message")
        where = {"parent_id": before, "run_id": row.run_id, "turn": self._runs.turn(row.run_id)}
        return self._line(event, row.created_at, id=own, **where, **more)

    def _line(self, event: str, at: datetime, **more: Any) -> Line:
        return line(event, at, session_id=self._head.id, **more)
