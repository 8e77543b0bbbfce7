"""Summaries of what a model does not read any more of a long conversation.

They are made after the turn that left it out, or when the person asks for one. Beside each stands a line that people
see: when they load the conversation, or with the next answer in it, whose log tells of it.
"""

import logging
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.acting import Acting
from backend.conversation.items import Summarised
from backend.conversation.model_input import budget
from backend.conversation.runs import compaction, limits
from backend.conversation.runs.limits import Limits
from backend.conversation.store_adapter import PostgresStore
from backend.errors import BackendError, Busy
from backend.model.chat_model import ChatModel
from backend.model.errors import ModelError
from backend.turn.lifecycle import outcomes
from service.database import pipelined

logger = logging.getLogger(__name__)

_TOKENS = 600
_AT_ONCE = 20  # requests after one turn: an old conversation without a summary has thousands of rows


class NoSummary(BackendError):
    """The model could not summarise this conversation. Nothing is lost. Try again in a moment."""

    code, status = "no_summary", 503
    allow_retry = True


class Summaries:
    def __init__(self, engine: AsyncEngine, store: PostgresStore, model: ChatModel, limits: Limits) -> None:
        self._engine = engine
        self._store = store
        self._model = model
        self._limits = limits
        self._being_made: set[str] = set()

    async def make(self, conversation_id: str, ended: Acting, up_to: int) -> None:
        """Summarise the rows up to a seq, as often as it takes; without a summary, a plain note stands in for them.

        `ended` is the turn after which it is made. Of turns that follow each other quickly only the first one's is.
        """
        if conversation_id in self._being_made:
            return
        try:
            await self._make(conversation_id, ended, up_to)
        except Exception as error:  # noqa: BLE001 - a job of its own: nobody waits for it, and the next turn tries again
            logger.warning("no summary of conversation %s: %s", conversation_id, type(error).__name__)

    async def compact(self, conversation_id: str, user_id: str) -> int:
        """Summarise all but the newest four messages now; returns how many were, 0 where there was nothing to do.

        It is one of the person's turns where those are limited. Raises `NotFound`, `LimitReached`, `Busy` while an
        answer runs or waits for consent, and `NoSummary`.
        """
        if conversation_id in self._being_made:
            raise Busy("This conversation is being summarised already. Try again in a moment.")
        tokens = self._model.endpoint.profile.history_tokens
        async with pipelined(self._engine, user_id) as pipeline:
            await limits.check(pipeline, self._limits, user_id=user_id, is_new=False)
            found = await compaction.look(pipeline, conversation_id, user_id=user_id)
            if found.answering:
                raise Busy
            up_to = budget.before_the_newest(found.recent, tokens=tokens)
            if up_to is None:
                return 0
            await compaction.ask(pipeline, user_id=user_id, model=self._model.endpoint.model)
        try:
            return await self._make(conversation_id, Acting(user_id, found.run_id), up_to)
        except ModelError as error:
            raise NoSummary from error

    async def _make(self, conversation_id: str, ended: Acting, up_to: int) -> int:
        """How many messages were summarised; raises what the model's client raises, and `NoSummary` for no text."""
        self._being_made.add(conversation_id)
        line = Summarised(messages=0)
        try:
            for _ in range(_AT_ONCE):
                left_out = await self._store.left_out(conversation_id, up_to=up_to, context=ended)
                request = budget.request_for_summary(left_out, tokens=self._model.endpoint.profile.history_tokens)
                if request is None:
                    break
                text, usage = await self._model.complete(request.text, max_tokens=_TOKENS)
                await outcomes.count(self._engine, ended, usage)
                if not text.strip():
                    raise NoSummary
                told = replace(line, messages=line.messages + request.messages)
                shown = told if told.messages else None
                covers = request.covers
                if not await self._store.add_summary(conversation_id, text, covers=covers, context=ended, line=shown):
                    break
                line = told
        finally:
            self._being_made.discard(conversation_id)
        return line.messages
