"""Follows a run from any process and from any number on: the same for every reader, however often they come back."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import chats
from backend.conversation.rows import StoredItem
from backend.conversation.runs import events as statements
from backend.conversation.runs import interactions, leases
from backend.conversation.runs.abandoned import Abandoned
from backend.conversation.runs.events import State
from backend.conversation.runs.interactions import Interaction
from backend.errors import NotFound
from backend.turn.following import stored
from backend.turn.following.payloads import from_payload, to_payload
from backend.turn.following.places import Place, Places
from backend.turn.following.publisher import Numbered, Publisher
from backend.turn.lifecycle import outcomes
from backend.turn.log import Ended, Event, Paused, Reset
from service.database import pipelined, transaction

logger = logging.getLogger(__name__)

_MOST = 500  # events at a time
_A_MOMENT = 0.01  # seconds


class Following:
    """What runs say, whichever process they are in; and the publisher of those in this one."""

    def __init__(
        self,
        engine: AsyncEngine,
        follow: Callable[[str], object],
        *,
        every_seconds: float = 0.1,
        look_seconds: float = 1,
        waiting_look_seconds: float = 5,
        grace_seconds: float = 1.5,
        most_readers: int = 20,
    ) -> None:
        """`follow` lets a run be published, if it is in this process; that is done every `every_seconds`.

        `look_seconds` is how often a run is looked at of which nothing is heard, and `waiting_look_seconds` while it
        waits; `grace_seconds` is how long after its end the rest of it may still come. One person has at most
        `most_readers` at once.
        """
        self.publisher = Publisher(engine, every_seconds=every_seconds, published=self.heard)
        self._engine = engine
        self._follow = follow
        self._look_seconds = look_seconds
        self._waiting_look_seconds = waiting_look_seconds
        self._grace_seconds = grace_seconds
        self._places = Places(most_readers)
        self._leaving = False
        self._readers: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def heard(self, run_ids: Iterable[str]) -> None:
        """More was published of these."""
        for run_id in run_ids:
            for news in self._readers.get(run_id, ()):
                news.set()

    def leave(self) -> None:
        """The process ends: what nothing is heard of has no readers here any more, who may go on in another one."""
        self._leaving = True
        self.heard(list(self._readers))

    def place(self, user_id: str) -> Place:
        """The place of one more reader, for `events`; raises `LimitReached` where the person has too many."""
        return self._places.take(user_id)

    def events(
        self, run_id: str, user_id: str, after: int = 0, *, while_waiting: bool = True, place: Place | None = None
    ) -> AsyncGenerator[Numbered, None]:
        """The events after the number `after`, up to `Ended`.

        The run's process is asked to publish it from its beginning, if it does not yet. Where what was published before
        is not held any more, `Reset` is the first, of number 0, and all that is held follows from number 1 on. Raises
        `NotFound` for a run that is not the person's. Without `while_waiting` the events end where the run waits.

        Without a `place` one is taken at once, as `place` does. It is left with the last event.
        """
        return self._events(run_id, place or self.place(user_id), after, while_waiting)

    async def _events(
        self, run_id: str, place: Place, after: int, while_waiting: bool
    ) -> AsyncGenerator[Numbered, None]:
        user_id = place.user_id
        with place, self._listening(run_id) as news:
            here = self.publisher.published_after(run_id, user_id, after) is not None
            state = None if here else await self._ask(run_id, user_id)
            lost, is_reset = state is not None and after > state.last, False
            last: Event | None = None
            since = _now()
            while True:
                if lost:
                    yield Numbered(0, Reset())
                    after, lost, is_reset = 0, False, True
                news.clear()
                state, found = await self._look(run_id, user_id, after)
                for numbered in found:
                    yield numbered
                    after, last, since = numbered.seq, numbered.event, _now()
                    if isinstance(last, Ended):
                        return
                if len(found) == _MOST:
                    continue
                if state is not None and not found:
                    if state.long_over and not (state.conversation_id and self.publisher.has_end(run_id)):
                        lost = after > state.last and not is_reset  # by a crash of the database
                        rest = None if lost else await self._rest(run_id, user_id, after, state, is_reset=is_reset)
                        if rest is None:
                            continue
                        for numbered in rest:
                            yield numbered
                        return
                    silent = _now() - since > self._grace_seconds
                    waits_alone = state.status == "waiting" and not while_waiting
                    if (self._leaving and silent) or (waits_alone and (silent or isinstance(last, Paused))):
                        return
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause(state, while_waiting)):
                        await news.wait()

    def _pause(self, state: State | None, while_waiting: bool) -> float:
        """How long news is waited for: what goes on after it waited is heard of, the death of a process is not."""
        if state is not None and state.lease_left is not None:
            return min(self._look_seconds, max(state.lease_left, 0) + _A_MOMENT)
        waits = state is not None and state.status == "waiting" and not self._leaving
        return self._waiting_look_seconds if waits and while_waiting else self._look_seconds

    @contextmanager
    def _listening(self, run_id: str) -> Iterator[asyncio.Event]:
        news = asyncio.Event()
        self._readers[run_id].add(news)
        try:
            yield news
        finally:
            self._readers[run_id].discard(news)
            if not self._readers[run_id]:
                del self._readers[run_id]

    async def _ask(self, run_id: str, user_id: str) -> State:
        """Ask for the run to be published; raises `NotFound` for one that is not the person's."""
        async with transaction(self._engine, user_id) as session:
            await leases.request_following(session, run_id, user_id=user_id)
        state, _ = await self._read(run_id, user_id, 0, most=0)
        if state is None:
            raise NotFound
        if state.status != "ended":
            self._follow(run_id)
        return state

    async def _look(self, run_id: str, user_id: str, after: int) -> tuple[State | None, Sequence[Numbered]]:
        """What there is after a number, and where the run is; no state for one that is published here."""
        here = self.publisher.published_after(run_id, user_id, after)
        if here is not None:
            return None, here
        try:
            state, found = await self._read(run_id, user_id, after, most=_MOST)
            if state is not None and state.lease_left is not None and state.lease_left < 0:  # no sweep was there before
                await outcomes.end_abandoned(self._engine, Abandoned(run_id, state.conversation_id, user_id))
        except (DBAPIError, PoolTimeout, OSError) as error:  # it comes back, or the reader does
            logger.warning("the run %s cannot be followed now: %s", run_id, type(error).__name__)
            return None, ()
        return state or _FORGOTTEN, found

    async def _read(
        self, run_id: str, user_id: str, after: int, *, most: int
    ) -> tuple[State | None, Sequence[Numbered]]:
        async with pipelined(self._engine, user_id) as pipeline:
            news = await statements.send_news(pipeline, run_id, user_id=user_id, after=after, most=most)
            where = await statements.send_state(pipeline, run_id, user_id=user_id, grace_seconds=self._grace_seconds)
        row = await where.fetchone()
        found = [Numbered(one["seq"], from_payload(one["payload"])) for one in await news.fetchall()]
        return State(**row) if row else None, found

    async def _rest(
        self, run_id: str, user_id: str, after: int, state: State, *, is_reset: bool
    ) -> list[Numbered] | None:
        """What is stored of a run that is over and was not published; None when there is more to be read by now.

        It is published as far as the run's events are held, so that whoever reads it goes on from the same numbers.
        """
        where = {"user_id": user_id}
        async with pipelined(self._engine, user_id) as pipeline:
            await statements.lock(pipeline, run_id, **where)
            newest = await statements.send_newest(pipeline, run_id, **where)
            telling = await statements.send_told(pipeline, run_id, **where)
            growing = await statements.send_grown(pipeline, run_id, **where)
            conversation = state.conversation_id or ""
            storing = await statements.send_stored(pipeline, run_id, conversation_id=conversation, **where)
            row = await newest.fetchone()
            items = [StoredItem(**one) for one in await storing.fetchall()]
            if row is not None:
                if row["seq"] > after:
                    return None
                if row["event"] == Ended.__name__:
                    return []
                told = {one["id"] for one in await telling.fetchall()}
                grown = {(one["item"], one["part"]): one["text"] for one in await growing.fetchall()}
                rest = [*stored.events_of(items, state.outcome, told, grown)]
                payloads = [to_payload(event) for event in rest]
                appended = await statements.append(pipeline, run_id, payloads, **where)
                if await appended.fetchone() is not None:
                    return None
                return [Numbered(number, event) for number, event in enumerate(rest, after + 1)]
        found = await self._interaction(run_id, user_id, state)
        beside: dict[str, Any] = {"asked": found.asked, "news": found.news} if found else {}
        rest = stored.events_of(items, state.outcome, **beside)
        reset = [] if is_reset else [Numbered(0, Reset())]
        return [*reset, *(Numbered(number, event) for number, event in enumerate(rest, 1))]

    async def _interaction(self, run_id: str, user_id: str, state: State) -> Interaction | None:
        """What is stored of it for its person; None when its conversation was deleted."""
        chat = await chats.find(self._engine, state.conversation_id or "", user_id=user_id)
        if chat is None:
            return None
        head = await interactions.find(self._engine, chat, run_id, user_id=user_id)
        [found] = await interactions.load(self._engine, chat, [head], leaf=run_id, user_id=user_id)
        return found


_FORGOTTEN = State(None, "ended", "cancelled", 0, long_over=True, lease_left=None)
"""Of a run that was deleted while it was followed."""


def _now() -> float:
    return asyncio.get_running_loop().time()
