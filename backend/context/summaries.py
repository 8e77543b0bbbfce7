"""Lets the model summarise what it does not read any more of a long conversation.

Summaries are made after a run that left something out, or when the user asks for one. The run that reads one first
tells of it.
"""

import logging

from backend.context.completions import complete_after_run
from backend.context.window import covered_by_next_summary, request_summary
from backend.conversations import branches
from backend.conversations.history import add_summary, load_history, load_uncovered
from backend.conversations.records import ENDED, Run
from backend.errors import BackendError, Busy
from backend.ids import new_id
from backend.model.chat_model import ChatModel
from backend.model.failures.errors import ModelError
from backend.users.limits import UserLimits, send_request
from common.database import Database

logger = logging.getLogger(__name__)

_TOKENS = 600
_MAX_REQUESTS = 20  # after one run: an old conversation without a summary has thousands of rows


class NoSummary(BackendError):
    """The model could not summarise this conversation. Nothing is lost. Try again in a moment."""

    code, status = "no_summary", 503
    allow_retry = True


class Summaries:
    def __init__(self, database: Database, model: ChatModel, limits: UserLimits) -> None:
        self._database, self._model, self._limits = database, model, limits
        self._tokens = model.endpoint.profile.history_tokens
        self._in_progress: set[str] = set()  # conversations

    async def make(self, run: Run, *, up_to: int) -> None:
        """Summarises all up to a number after a run has ended; errors are only logged, as a note stands for it."""
        if run.conversation_id in self._in_progress:
            return
        try:
            await self._make(run, up_to)
        except Exception as error:  # noqa: BLE001 - nobody waits for it, and the next run tries again
            logger.warning("no summary of conversation %s: %s", run.conversation_id, type(error).__name__)

    async def compact(self, user_id: str, conversation_id: str) -> int:
        """Summarises all but the newest four messages; returns how many messages, 0 where there was nothing to do.

        Raises `LimitReached`, `Busy` while a run is running or waits, and `NoSummary`.
        """
        if conversation_id in self._in_progress:
            raise Busy("This conversation is being summarised already. Try again in a moment.")
        runs_shown, _ = await branches.load_shown(self._database, user_id, conversation_id, limit=1)
        if not runs_shown:
            return 0
        [run] = runs_shown
        if run.status not in ENDED:
            raise Busy
        history = await load_history(self._database, user_id, conversation_id)
        if (up_to := covered_by_next_summary(history, tokens=self._tokens)) is None:
            return 0
        async with self._database.transaction(user_id) as tx:
            await send_request(tx, self._limits, is_new=False)
        try:
            return await self._make(run, up_to)
        except ModelError as error:
            raise NoSummary from error

    async def _make(self, run: Run, up_to: int) -> int:
        self._in_progress.add(run.conversation_id)
        entry_id, messages = new_id("sum"), 0
        try:
            for _ in range(_MAX_REQUESTS):
                found = await load_uncovered(self._database, run.user_id, run.conversation_id, up_to=up_to)
                request = request_summary(found, tokens=self._tokens)
                if request is None:
                    break
                text, tokens_today = await complete_after_run(
                    self._database, self._model, run, request.text, max_tokens=_TOKENS
                )
                if not text.strip():
                    raise NoSummary
                count = messages + request.messages
                if not await add_summary(self._database, run, entry_id, text, covers=request.covers, messages=count):
                    break
                messages = count
                if not self._limits.allow_tokens(tokens_today):
                    break
        finally:
            self._in_progress.discard(run.conversation_id)
        return messages
