"""Summaries of what a model does not read any more of a long conversation, made after the turn that left it out."""

import logging
from collections.abc import Awaitable, Callable, Mapping

from backend.conversation.acting import Acting
from backend.conversation.model_input import budget
from backend.conversation.store_adapter import PostgresStore
from backend.model.chat_model import ChatModel
from backend.turn.run import Run

Count = Callable[[Mapping[str, int]], Awaitable[None]]

logger = logging.getLogger(__name__)

_TOKENS = 600
_AT_ONCE = 20  # requests after one turn: an old conversation without a summary has thousands of rows


class Summaries:
    def __init__(self, store: PostgresStore, model: ChatModel) -> None:
        self._store = store
        self._model = model
        self._being_made: set[str] = set()

    async def make(self, run: Run, up_to: int, *, count: Count) -> None:
        """Summarise the rows up to a seq, as often as it takes; without a summary, a plain note stands in for them.

        Of turns that follow each other quickly only the first one's is made.
        """
        if run.conversation_id in self._being_made:
            return
        self._being_made.add(run.conversation_id)
        try:
            await self._make(run.conversation_id, Acting(run.user_id), up_to, count)
        except Exception as error:  # noqa: BLE001 - a job of its own: nobody waits for it, and the next turn tries again
            logger.warning("no summary of conversation %s: %s", run.conversation_id, type(error).__name__)
        finally:
            self._being_made.remove(run.conversation_id)

    async def _make(self, conversation: str, person: Acting, up_to: int, count: Count) -> None:
        for _ in range(_AT_ONCE):
            left_out = await self._store.left_out(conversation, up_to=up_to, context=person)
            request = budget.request_for_summary(left_out, tokens=self._model.endpoint.profile.history_tokens)
            if request is None:
                return
            text, usage = await self._model.complete(request.text, max_tokens=_TOKENS)
            await count(usage)
            if not text.strip():
                return
            await self._store.add_summary(conversation, text, covers=request.covers, context=person)
