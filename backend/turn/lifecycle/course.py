"""From a turn's first step to its end: it is answered, waits for its person, or ends with exactly one outcome."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.items import Hidden, Thought
from backend.conversation.runs.leases import Outcome
from backend.errors import BackendError, LeaseLost
from backend.turn import reports
from backend.turn.lifecycle import endings, outcomes
from backend.turn.lifecycle.endings import explain
from backend.turn.log import Done, Event, Failed, Paused
from backend.turn.turn import Turn, Work
from backend.turn.waiting import decisions

logger = logging.getLogger(__name__)

_AWAY = (OperationalError, InterfaceError, PoolTimeout, OSError)
_AGAIN_SECONDS = 0.1
_STEPS_OF_A_READER = 5
"""Of the event loop, until who waits for the beginning has been sent it; then work may take the processor."""


class TookTooLong(BackendError):
    """This answer took too long and was stopped. What was done so far is kept. Say what is still to be done."""

    code = "took_too_long"
    allow_retry = True

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{self.__doc__} The limit is {seconds:g} seconds (LIMIT_TURN_SECONDS).")


@dataclass(frozen=True)
class Course:
    """`longest_seconds` is how long an answer may take; what is left when its turn is over goes `in_background`.

    `published` is all that a turn has said, and what it says then, with its numbers, as it is published.
    """

    engine: AsyncEngine
    lease_seconds: float
    longest_seconds: float
    in_background: Callable[[Awaitable[None]], object]
    published: Callable[[Turn, Sequence[Event]], Sequence[tuple[int, str]]]

    async def run(self, turn: Turn, work: Work) -> None:
        """Answer, and answer what was said meanwhile, until the outcome is written or the run waits."""
        while True:
            outcome: Outcome | None = await self._work(turn, work)
            if outcome == "completed" and turn.asked:
                outcome = await self._wait(turn)
            turn.outcome = outcome
            if outcome is None or await self._end(turn, outcome):
                return
            assert turn.go_on is not None
            work = turn.go_on
            _begin_again(turn)

    async def _work(self, turn: Turn, work: Work) -> Outcome:
        try:
            async with turn.on_end:
                try:
                    for _ in range(_STEPS_OF_A_READER):
                        await asyncio.sleep(0)
                    await self._in_time(work(turn))
                finally:
                    turn.finishing = True
        except asyncio.CancelledError:
            outcome = turn.stopping or "interrupted"
            if outcome == "interrupted":
                turn.say(Failed(endings.INTERRUPTED, allow_retry=True))
            turn.ending = endings.cut(outcome)
            return outcome
        except Exception as error:  # noqa: BLE001 - the edge of the turn: it must end with an outcome
            turn.say(failure_of(error))
            return "failed"
        return "completed"

    async def _in_time(self, work: Awaitable[None]) -> None:
        limit = asyncio.timeout(self.longest_seconds)
        try:
            async with limit:
                await work
        except TimeoutError:
            if limit.expired():
                raise TookTooLong(self.longest_seconds) from None
            raise

    async def _wait(self, turn: Turn) -> Outcome | None:
        """Let the run wait for what is asked. Where it cannot, its calls are not made; then returns how it ends."""
        run = turn.run
        asking = [event for approval in turn.asked for event in decisions.asked_events(approval)]
        try:
            told = self.published(turn, [*asking, Paused()])
            if await self._stored(turn, told):
                reports.turn_waits(run, turn.usage or {}, turn.counted, calls=len(turn.asked))
                for event in asking:
                    turn.say(event)
                return None
        except Exception as error:  # noqa: BLE001 - as in `_end`: the conversation must be free again
            turn.say(failure_of(error))
            outcome: Outcome = "failed"
        else:
            turn.ending = endings.cut("cancelled")
            outcome = "cancelled"
        turn.unmade = turn.asked
        return outcome

    async def _stored(self, turn: Turn, told: Sequence[tuple[int, str]]) -> bool:
        """What is asked: tried again while the database is away and the lease lasts, unless it is to stop."""
        until = time.monotonic() + self.lease_seconds
        while True:
            try:
                return await decisions.wait(self.engine, turn.run.acting, turn.asked, usage=turn.usage, told=told)
            except _AWAY:
                if time.monotonic() > until or turn.stop_next is not None:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _end(self, turn: Turn, outcome: Outcome) -> bool:
        """Write down the end; returns False when there is more to answer: then only what was left to store is written.

        An answer that did not come to its end is followed by none: what waits stays, or is dropped with a stop.
        """
        run, ended = turn.run, turn.ended(outcome)
        left = [*turn.closing, *([turn.ending] if turn.ending else [])]
        failure: Failed | None = None
        has_ended = True
        goes_on = outcome == "completed" and turn.go_on is not None
        try:
            recorded = await outcomes.record(
                self.engine, run, ended, left, unmade=turn.unmade, tell=turn.say, if_read=goes_on
            )
            has_ended = recorded != "unread"
            if recorded == "lost":
                turn.outcome = "interrupted"
                failure = failure_of(LeaseLost())
        except Exception as error:  # noqa: BLE001 - whatever it is, the conversation must be free again
            logger.error("turn %s: its outcome %s could not be recorded yet", run.id, outcome)
            failure = failure_of(error)  # whose line has the error, without the texts that a database quotes
            away = isinstance(error, _AWAY)
            # What can be written later is kept for then; what is refused must not hold the conversation.
            is_less = bool(turn.closing or turn.unmade)
            alone = replace(ended, outcome="failed") if is_less else ended
            why = [turn.ending or endings.failed(failure)] if is_less or turn.ending else []
            if away or not await outcomes.record_alone(self.engine, run, alone, why):
                self.record_later(turn, outcome, if_read=goes_on)
                if outcome == "completed":
                    turn.outcome = "failed"  # nobody is told of an end that may not be written after all
        for item in turn.closing:
            if not isinstance(item, Thought | Hidden):  # of a thought the log told when it ended
                turn.say(Done(item))
        if failure is not None and (turn.closing or turn.unmade):
            turn.say(failure)
        return has_ended

    def record_later(self, turn: Turn, outcome: Outcome, *, if_read: bool = False) -> None:
        """Free the conversation as soon as the database is back."""
        left = [*turn.closing, *([turn.ending] if turn.ending else [])]
        ended = turn.ended(outcome)
        self.in_background(
            outcomes.record_later(
                self.engine,
                turn.run,
                ended,
                left,
                unmade=turn.unmade,
                if_read=if_read,
                within_seconds=self.lease_seconds,
            )
        )


def _begin_again(turn: Turn) -> None:
    """What was said before is stored, and told."""
    turn.closing, turn.unmade, turn.ending, turn.outcome, turn.finishing = [], (), None, None, False
    if turn.stop_next is not None:
        turn.stop(turn.stop_next)


def failure_of(error: Exception) -> Failed:
    """What is told of an error."""
    explanation = explain(error)
    return Failed(explanation.message, explanation.allow_retry)
