"""What people write while they are answered: read by the model before its next request, or after the answer's end."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import statements
from backend.conversation.items import Hidden, Said
from backend.conversation.model_input import history
from backend.conversation.rows import StoredItem, from_item
from backend.conversation.runs import inbox, limits
from backend.conversation.runs.inbox import Input, Mode
from backend.conversation.runs.limits import Limits
from backend.errors import BackendError, LimitReached
from backend.turn.log import Done
from backend.turn.turn import Turn, Work
from backend.turn.turns import Turns
from service.database import pipelined

_TRIES = 3  # a run may begin to wait, or go on, between two looks


class NoRun(BackendError):
    """The assistant has finished answering. Send this as a new message."""

    code, status = "run_ended", 409


class Read(BackendError):
    """The assistant has already read this message."""

    code, status = "message_read", 409


@dataclass(frozen=True)
class Queued:
    """A message that waits; `overtaken` are the follow-ups that were dropped for it, if it is a steer."""

    input_id: str
    run_id: str
    overtaken: tuple[str, ...]


class Inbox:
    """The inboxes of all runs, in whichever process they answer."""

    def __init__(self, engine: AsyncEngine, turns: Turns, limits: Limits) -> None:
        self._engine = engine
        self._turns = turns
        self._limits = replace(limits, running=None)  # what it is told is read by a turn that runs already

    async def add(
        self,
        said: Said,
        mode: Mode,
        *,
        user_id: str,
        conversation_id: str,
        run_id: str | None = None,
        resume: Work | None = None,
    ) -> Queued:
        """Let the conversation's running run, or this run, read what was said; a steer drops waiting follow-ups.

        One that waits for its person goes on, with `resume`, which is `Answers.resume`: what it asked is refused, and
        whatever the mode the message is read before the model's next request. `input_id` is the id of the message, then
        and later. Raises `NoRun` when there is none, and `LimitReached` when too much waits or came in the last minute;
        then nothing is stored.
        """
        where = {"user_id": user_id, "conversation_id": conversation_id}
        for _ in range(_TRIES if resume else 1):
            with suppress(NoRun):
                return await self._add(said, mode, run_id=run_id, **where)
            if resume and (turn := await self._turns.overtake(resume, said, run_id=run_id, **where)) is not None:
                return Queued(said.id, turn.run.id, ())
        raise NoRun

    async def _add(self, said: Said, mode: Mode, *, user_id: str, conversation_id: str, run_id: str | None) -> Queued:
        where = {"user_id": user_id, "conversation_id": conversation_id}
        async with pipelined(self._engine, user_id) as pipeline:
            await limits.check(pipeline, self._limits, user_id=user_id, is_new=False)
            sent = await inbox.send_said(pipeline, said, mode, run_id=run_id, **where)
        added = await inbox.added(sent)
        if added.run_id is None:
            raise NoRun
        if added.input_id is None:
            raise LimitReached(inbox.TOO_MANY)
        if mode == "steer":
            self._turns.hear(added.run_id)
        return Queued(added.input_id, added.run_id, added.overtaken)

    async def send_now(self, input_id: str, *, user_id: str, conversation_id: str) -> None:
        """Let a message that waits for the answer's end be read before the model's next request.

        Raises `Read` when it does not wait any more.
        """
        async with pipelined(self._engine, user_id) as pipeline:
            sent = await inbox.send_now(pipeline, input_id, user_id=user_id, conversation_id=conversation_id)
        if (row := await sent.fetchone()) is None:
            raise Read
        self._turns.hear(row["run"])

    async def drop(self, input_id: str, *, user_id: str, conversation_id: str) -> None:
        """Take a message back that was not read yet; raises `Read` when there is none."""
        async with pipelined(self._engine, user_id) as pipeline:
            sent = await inbox.drop(pipeline, input_id, user_id=user_id, conversation_id=conversation_id)
        if await sent.fetchone() is None:
            raise Read

    async def waiting(self, conversation_id: str, *, user_id: str) -> list[Input]:
        """What waits in a conversation, and what was left unsent because its run ended early, in order."""
        async with pipelined(self._engine, user_id) as pipeline:
            sent = await inbox.send_waiting(pipeline, conversation_id, user_id=user_id)
        return await inbox.waiting(sent)


async def take(engine: AsyncEngine, turn: Turn, *, at_end: bool) -> list[StoredItem]:
    """What the model reads from here on, stored and told of: each message, and before it the note of its time.

    It is read once, whoever else looks: in one transaction it is taken out of the inbox and becomes an item.
    """
    run = turn.run
    items: list[Hidden | Said] = []
    async with pipelined(engine, run.user_id) as pipeline:
        said = await inbox.take(
            pipeline, user_id=run.user_id, conversation_id=run.conversation_id, run_id=run.id, at_end=at_end
        )
        for one in said:
            items += [turn.note_of_now(), one]
        if items:
            await statements.send_items(pipeline, run.conversation_id, items, run.acting)
    for one in said:
        turn.say(Done(one))
    return [_stored(run.conversation_id, item, turn) for item in items]


class Steering:
    """What the model is told in the middle of an answer, at its place in each later request of one run of the SDK's.

    So each request stays the beginning of the next one.
    """

    def __init__(self, engine: AsyncEngine, turn: Turn, before: Callable[[list[Any]], Awaitable[None]]) -> None:
        """`before` stores what comes before a message that is read: outputs in the model's input that no row holds."""
        self._engine = engine
        self._turn = turn
        self._before = before
        self._told: list[tuple[int, list[Any]]] = []

    async def steered(self, items: list[Any]) -> list[Any]:
        """The model's input, with what was said meanwhile."""
        if self._turn.has_news:
            self._turn.has_news = False  # before it is looked: what comes meanwhile is news again
            await self._before(items)
            if taken := await take(self._engine, self._turn, at_end=False):
                self._told.append((len(items), await history.to_model_input(taken)))
        steered, done = list[Any](), 0
        for place, told in self._told:
            steered += [*items[done:place], *told]
            done = place
        return [*steered, *items[done:]]


def _stored(conversation_id: str, item: Hidden | Said, turn: Turn) -> StoredItem:
    row = from_item(conversation_id, item, turn.run.acting)
    return StoredItem(0, row["id"], row["kind"], row["item"])
