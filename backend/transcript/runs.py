"""The tree of a conversation's runs: which turn each is, and what its first line goes on from."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Run:
    id: str
    parent_run_id: str | None
    edits_run_id: str | None
    kept_seq: int | None
    message_id: str | None
    outcome: str | None
    usage: dict[str, Any] | None
    ended_at: datetime | None


class Runs:
    """`begin` is the id of the line before all others."""

    def __init__(self, runs: Iterable[Run], begin: str) -> None:
        self.by_id = {run.id: run for run in runs}
        self._begin = begin
        self._lines: defaultdict[str | None, list[tuple[int, str]]] = defaultdict(list)
        self._messages: set[str] = set()
        self._turns: dict[str, int] = {}

    def add(self, run_id: str | None, seq: int, line_id: str, *, is_message: bool = False) -> None:
        """A line of a run, made of the row `seq` or of what came after it."""
        self._lines[run_id].append((seq, line_id))
        if is_message:
            self._messages.add(line_id)

    def before(self, run_id: str | None) -> str:
        """The line that the next one of a run goes on from."""
        if lines := self._lines.get(run_id):
            return lines[-1][1]
        run = self.by_id.get(run_id or "")
        if run is None:
            return self._begin
        if run.message_id in self._messages:  # an answer beside another, to the same message
            return run.message_id or ""
        if run.edits_run_id is not None and run.kept_seq is not None:
            lines = self._lines[run.edits_run_id]
            if kept := bisect_right(lines, run.kept_seq, key=lambda line: line[0]):
                return lines[kept - 1][1]
        return self.before(self._with_lines(run.parent_run_id))

    def _with_lines(self, run_id: str | None) -> str | None:
        """The run, or the nearest before it that has said anything."""
        while run_id is not None and not self._lines.get(run_id):
            run = self.by_id.get(run_id)
            run_id = run.parent_run_id if run else None
        return run_id

    def turn(self, run_id: str | None) -> int | None:
        """Its place on its path, from 1."""
        path: list[str] = []
        while run_id is not None and run_id not in self._turns and (run := self.by_id.get(run_id)):
            path.append(run_id)
            run_id = run.parent_run_id
        before = self._turns.get(run_id or "", 0)
        self._turns |= {one: number for number, one in enumerate(reversed(path), before + 1)}
        return before + len(path) or None

    def model(self, run_id: str | None) -> str | None:
        """The one that it was counted under, for requests that say none themselves."""
        run = self.by_id.get(run_id or "")
        return ((run and run.usage) or {}).get("model")

    def went_wrong(self, run_id: str | None) -> bool:
        """Whether it failed, or its process was gone."""
        run = self.by_id.get(run_id or "")
        return run is not None and run.outcome in ("failed", "interrupted")

    def went_wrong_without(self, explained: Collection[str | None]) -> list[Run]:
        """Those that did, and are not among these."""
        return [run for run in self.by_id.values() if self.went_wrong(run.id) and run.id not in explained]
