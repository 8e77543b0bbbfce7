"""The event stream of a run: from memory in its own process, from its rows in any other."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable
from contextlib import suppress

from backend.conversations import timeline
from backend.conversations.records import ENDED, Entry, Event, EventRecord, ModelTurn, Run, ToolCall
from backend.conversations.runs import CHANGED
from backend.errors import NotFound
from common.database import NO_USER, Database, DatabaseUnavailable

FOLLOWED = "run_followed"
"""The channel on which a run's process hears that somebody in another process follows it."""

_LOOK_SECONDS = 1.0  # how long a follower waits for a notification, which may be lost


class RunStream:
    """The events of a tree of runs since it came to this process; `base` is the number of the last one before."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.events: list[Event] = []
        self.notified = 0  # of how many events followers in other processes have been notified
        self._changed = asyncio.Event()

    @property
    def last_number(self) -> int:
        return max((event.number for event in self.events if event.number is not None), default=self.base)

    def append(self, event: Event) -> None:
        self.events.append(event)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def read_events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yields events after a number until the run waits or ends; of an entry that is complete by then only its
        completion.
        """
        position, open_entries = 0, set[str]()
        while True:
            changed = self._changed
            while position < len(self.events):
                event = self.events[position]
                position += 1
                if _is_new(event, after, open_entries):
                    yield event
                if event.type in ("run_waiting", "run_ended"):
                    return
            await changed.wait()


def _is_new(event: Event, after: int, open_entries: set[str]) -> bool:
    """Whether a reader of what comes after a number gets this event.

    Of events without a number, those of an entry are read only if its start was read, which is noted in `open_entries`.
    """
    if event.number is not None:
        return event.number > after
    if isinstance(event.record, Entry):
        if event.type == "entry_started" and not event.record.complete:
            open_entries.add(event.record.id)
        return event.record.id in open_entries
    return True


class Streams:
    """The event streams of this process's runs, and the readers that follow a run here."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.live: dict[str, RunStream] = {}
        """Those of the runs that this process executes, by the ids of the runs."""
        self._is_leaving = False
        self.followed: set[str] = set()
        """Runs of this process that are followed from another one."""
        self._followers: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def wake(self, top_run_id: str) -> None:
        for follower in self._followers.get(top_run_id, ()):
            follower.set()

    def leave(self) -> None:
        self._is_leaving = True
        for run_id in self._followers:
            self.wake(run_id)

    def is_left(self, top_run_id: str) -> bool:
        return self._is_leaving and top_run_id not in self.live

    def add_follower(self, top_run_id: str) -> None:
        if top_run_id in self.live:
            self.followed.add(top_run_id)

    async def notify_followers(self, unstored: Collection[str]) -> None:
        """Lets followers in other processes look at the runs that have changed since they were notified, except for
        those that are `unstored`, of which they could not read the change yet.
        """
        changed = list[str]()
        for run_id in self.followed.difference(unstored):
            stream = self.live.get(run_id)
            if stream is None:
                self.followed.discard(run_id)
            elif stream.notified == len(stream.events):
                continue
            else:
                stream.notified = len(stream.events)
            changed.append(run_id)
        if not changed:
            return
        with suppress(DatabaseUnavailable):  # they look at the rows every second
            async with self._database.transaction(NO_USER) as tx:
                for run_id in changed:
                    await tx.notify(CHANGED, run_id)

    async def follow(
        self, user_id: str, top_run_id: str, *, after: int = 0, while_waiting: bool = True
    ) -> AsyncGenerator[Event, None]:
        """Every event of a tree of runs after a number, in order, up to its end.

        A message that is being written is read from its beginning. A model turn's start has no number: a reader who
        comes later gets it before the first event of the turn. With `while_waiting` false it ends where the run
        waits for approval. Raises `NotFound` where there is no such run of this user.
        """
        woken = asyncio.Event()
        self._followers[top_run_id].add(woken)
        follower = _Follower(self, self._database, user_id, top_run_id, after, woken)
        try:
            async for event in follower.events():
                for read in follower.add_missed_start(event):
                    yield read
                if event.type == "run_waiting" and not while_waiting:
                    return
        finally:
            self._followers[top_run_id].discard(woken)
            if not self._followers[top_run_id]:
                del self._followers[top_run_id]


class _Follower:
    def __init__(
        self, streams: Streams, database: Database, user_id: str, top_run_id: str, after: int, woken: asyncio.Event
    ) -> None:
        self._streams, self._database, self._woken = streams, database, woken
        self._user_id, self._top_run_id, self._after = user_id, top_run_id, after
        self._read_length: dict[str, int] = {}  # of each message that is being written
        self._ended_turn = 0  # the last one of the top run whose end was read
        self._is_in_turn = False
        self._status = ""

    def add_missed_start(self, event: Event) -> list[Event]:
        """Returns the event, after the start of its model turn if that was not read; only the top run's are counted.

        The start of a turn whose end was read is left out. Calls come after the end of their turn.
        """
        if event.sub_agent is not None or isinstance(event.record, ToolCall):
            return [event]
        model_turn = getattr(event.record, "model_turn", 0)
        if model_turn <= self._ended_turn:
            return [event] if event.type != "model_turn_started" else []
        is_missed = not self._is_in_turn and event.type != "model_turn_started"
        self._is_in_turn = event.type != "model_turn_ended"
        if not self._is_in_turn:
            self._ended_turn = model_turn
        return [Event("model_turn_started", run=event.run), event] if is_missed else [event]

    def _note_ended_turns(self, turns: Iterable[EventRecord | None]) -> None:
        """Notes which of these model turns the reader has read before, to the end."""
        read = [
            turn.model_turn
            for turn in turns
            if isinstance(turn, ModelTurn) and turn.run_id == self._top_run_id and 0 < (turn.seq or 0) <= self._after
        ]
        self._ended_turn = max(self._ended_turn, *read, 0)

    async def events(self) -> AsyncIterator[Event]:
        while self._status not in ENDED and not self._streams.is_left(self._top_run_id):
            self._woken.clear()
            stream = self._streams.live.get(self._top_run_id)
            if stream is not None and self._after >= stream.base:
                self._note_ended_turns(event.record for event in stream.events)
                async for event in stream.read_events(self._after):
                    self._after = max(self._after, event.number or 0)
                    if event.run is not None and event.type in ("run_waiting", "run_ended"):
                        self._status = event.run.status
                    yield event
                continue
            # What happened before the run came to this process, or all of a run of another one.
            for event in await self._from_rows(stream.base if stream else None):
                yield event
            if stream is not None:
                self._after = max(self._after, stream.base)
            elif self._status not in ENDED:
                await self._wait()

    async def _from_rows(self, until: int | None) -> list[Event]:
        """Reads the events since the last one from rows, up to the number `until`; raises `NotFound`.

        Without `until`, also the text of entries that grow, and that the run waits or has ended.
        """
        database, user_id, top_run_id = self._database, self._user_id, self._top_run_id
        tree = await timeline.load_trees(database, user_id, [top_run_id], after=self._after)
        runs = {run.id: run for run in tree.runs}
        if (top := runs.get(top_run_id)) is None:
            raise NotFound.of("interaction", top_run_id)
        self._note_ended_turns(tree.model_turns)
        found = timeline.events_of(tree, self._after)
        if self._after == 0:
            found = timeline.with_summary(found, await timeline.load_new_summary(database, user_id, top_run_id))
        events: list[Event] = []
        for event in found:
            if until is None or (event.number or 0) <= until:
                events += self._add_unread_text(event)
                self._after = max(self._after, event.number or 0)
        if until is not None:
            return events
        for entry in tree.entries:
            if not entry.complete:
                events += self._render_growth(entry, runs.get(entry.run_id))
        if top.status == "waiting" and self._status != "waiting":
            events.append(Event("run_waiting", run=top))
        if top.status in ENDED and (top.end_seq is None or top.end_seq > self._after):
            events.append(Event("run_ended", number=top.end_seq, run=top))
        self._status = top.status
        return events

    def _add_unread_text(self, event: Event) -> list[Event]:
        if isinstance(event.record, Entry):
            length = self._read_length.pop(event.record.id, None)
            if length is not None and (rest := event.record.text[length:]):
                return [Event("entry_delta", event.record, text=rest, run=event.run), event]
        return [event]

    def _render_growth(self, entry: Entry, run: Run | None) -> list[Event]:
        length = self._read_length.get(entry.id)
        self._read_length[entry.id] = len(entry.text)
        started = [Event("entry_started", entry, run=run)] if length is None else []
        text = entry.text[length or 0 :]
        return [*started, Event("entry_delta", entry, text=text, run=run)] if text else started

    async def _wait(self) -> None:
        """Waits for a change of the run for a while, and tells its process that the run is followed."""
        if self._status == "running":
            async with self._database.transaction(self._user_id) as tx:
                await tx.notify(FOLLOWED, self._top_run_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._woken.wait()
