"""A conversation of a simulated user, who chooses ChatKit or the run API at random and retries until it works."""

import asyncio
import random
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from tests.chaos.apis.chatkit import DECIDED, RecordingChatKit, RunIncomplete
from tests.chaos.apis.runs import InputMode, OnRunning, RecordingRuns, answers_of
from tests.chaos.client_record import ClientRecord
from todo_client.connection import ApiError, ConnectionLost

T = TypeVar("T")
Json = dict[str, Any]
retry_seconds = 300.0  # `python -m tests.chaos` sets more; pytest ends a hanging test after 900 without a reason
_RETRY_PAUSE_SECONDS = 0.2
# Answers of the offline model if the database was down when it called a tool. "I could not find" is no failure: an
# earlier attempt, which was interrupted, may have deleted the task. The final checks look at each task.
_FAILED = re.compile("I could not (?!find)|did not work")
_OUTCOME_UNKNOWN = "It is unknown whether the first request"
_RUN_ENDED = ("has already ended", "has finished answering")


class Conversation:
    """`chat` is its id or name in the run API, `thread_id` its id in ChatKit."""

    def __init__(
        self, chatkit: RecordingChatKit, runs: RecordingRuns, record: ClientRecord, rng: random.Random, name: str
    ) -> None:
        self._chatkit = chatkit
        self._runs = runs
        self._record = record
        self._rng = rng
        self.chat = name
        self.thread_id = ""

    async def start(self, text: str) -> Json:
        """Creates the conversation with a first message, and returns its interaction when it is answered."""
        if self._choose_chatkit():
            self.thread_id = self.chat = await self._retry(lambda: self._chatkit.create_thread(text), text)
        else:
            await self.interact(text)
            self.thread_id = await self._retry(lambda: self._runs.find_chat_id(self.chat), self.chat)
        return await self.wait_for_answer(text)

    def _choose_chatkit(self) -> bool:
        return self._rng.random() < 0.5

    async def ask(self, text: str, *, approve: bool | None = False) -> Json:
        """Sends a message and waits for its answer; `approve` is explained at `wait_for_answer`."""
        if self._choose_chatkit():
            await self._send_through_chatkit(text, lambda: self._chatkit.add_message(self.thread_id, text))
        else:
            await self.interact(text)
        return await self.wait_for_answer(text, approve=approve)

    async def interact(self, text: str, on_running: OnRunning | None = None) -> None:
        """Sends a message through the run API; `on_running` is called while it is being answered."""
        key = _create_key()
        await self._retry(lambda: self._runs.interact(self.chat, text, key, on_running), text)

    async def edit(self, edited: Json, text: str) -> None:
        """Replaces the message of an interaction."""
        if self._choose_chatkit():
            edit = self._chatkit.edit
            await self._send_through_chatkit(text, lambda: edit(self.thread_id, edited["user_message"], text))
        else:
            key = _create_key()
            await self._retry(lambda: self._runs.edit(self.chat, edited["id"], text, key), text)

    async def _send_through_chatkit(self, text: str, send: Callable[[], Awaitable[None]]) -> None:
        """Sends a message without an idempotency key: each further attempt first checks whether it was stored."""

        async def attempt() -> bool | None:
            last = await self._runs.get_last_interaction(self.chat)
            if last is not None and last["user_message"] == text:
                return True
            try:
                await send()
            except RunIncomplete:  # the next attempt finds the message, unless it was never stored
                return None
            return True

        await self._retry(attempt, text)

    async def wait_for_answer(self, text: str, *, approve: bool | None = False) -> Json:
        """Returns the interaction of this message when it has completed; retries the message if it failed.

        Approvals are decided by `approve`; with None, the interaction is returned when it waits for one. Sometimes the
        retry comes while the run is still active; it is then rejected until the run's lease has expired.
        """
        retry_early = self._rng.random() < 0.3

        async def attempt() -> Json:
            interaction = await self._runs.get_last_interaction(self.chat)
            assert interaction is not None, self.chat
            message, status = interaction["user_message"], interaction["status"]
            assert message == text, f"the last message is {message!r}, but {text!r} was acknowledged"
            if status == "RUNNING" and not retry_early:
                await self._runs.follow(self.chat, interaction["id"])
            elif status == "WAITING_APPROVAL":
                if approve is None:
                    return interaction
                await self.decide(interaction, approve=approve)
            elif status == "COMPLETED" and _has_succeeded(interaction):
                return interaction
            else:
                # An edit with the same text would be another message, so the retry uses ChatKit.
                with suppress(RunIncomplete):
                    await self._chatkit.retry(self.thread_id, text)
            raise RunIncomplete(
                f"{interaction['id']} was {status}, {interaction.get('reason')}: {answers_of(interaction)}"
            )

        return await self._retry(attempt, text)

    async def wait_for_end(self) -> Json:
        """Returns the last interaction when it has ended or waits for an approval."""

        async def attempt() -> Json | None:
            interaction = await self._runs.get_last_interaction(self.chat)
            assert interaction is not None, self.chat
            if interaction["status"] != "RUNNING":
                return interaction
            await self._runs.follow(self.chat, interaction["id"])
            return None

        return await self._retry(attempt, "the end of an answer")

    async def decide(self, interaction: Json, *, approve: bool) -> None:
        """Decides all open approvals of an interaction."""
        for approval in interaction["approvals"]:
            if approval["approved"] is None:
                await self._decide(interaction["id"], approval["approval_id"], approve=approve)

    async def _decide(self, run_id: str, approval_id: str, *, approve: bool) -> None:
        attempts = 0
        key = _create_key() if self._rng.random() < 0.5 else None

        async def attempt() -> bool | None:
            nonlocal attempts, key
            attempts += 1
            try:
                if self._choose_chatkit():
                    await self._chatkit.decide(self.thread_id, approval_id, approved=approve)
                else:
                    await self._runs.decide(self.chat, run_id, approval_id, approved=approve, key=key)
            except ApiError as error:
                if _OUTCOME_UNKNOWN in str(error):  # the first response was lost: send it again without the key
                    key = None
                    return None
                if DECIDED not in str(error) or attempts == 1:  # nobody else decides
                    raise
            return True

        await self._retry(attempt, f"decision {approval_id}")
        self._record.decisions[approval_id] = approve
        if self._rng.random() < 0.2:
            await self._runs.check_decision_is_final(self.chat, run_id, approval_id, approved=approve)

    async def send_input(self, run_id: str, text: str, mode: InputMode) -> None:
        """Sends a steering message or follow-up to an interaction, unless it has ended."""
        self._record.input_runs[text] = run_id
        key = _create_key()
        await self._retry_unless_ended(lambda: self._runs.send_input(self.chat, run_id, text, mode, key), text)

    async def cancel(self, run_id: str) -> None:
        key = _create_key()
        await self._retry_unless_ended(lambda: self._runs.cancel(self.chat, run_id, key), "cancel")

    async def _retry_unless_ended(self, request: Callable[[], Awaitable[None]], what: str) -> None:
        async def attempt() -> bool:
            try:
                await request()
            except ApiError as error:
                if not any(sentence in str(error) for sentence in (*_RUN_ENDED, _OUTCOME_UNKNOWN)):
                    raise
            return True

        await self._retry(attempt, what)

    async def _retry(self, attempt: Callable[[], Awaitable[T | None]], what: str) -> T:
        """Returns the first result that is not None; raises errors that no kill and no active run explains."""
        deadline = time.monotonic() + retry_seconds
        last_error: Exception | None = None
        while time.monotonic() < deadline:
            try:
                if (result := await attempt()) is not None:
                    return result
                last_error = None
            except (ConnectionLost, RunIncomplete) as error:
                last_error = error
            except ApiError as error:
                if not ("still answering" in str(error) or error.status >= 500):
                    raise
                last_error = error
            await asyncio.sleep(_RETRY_PAUSE_SECONDS)
        raise AssertionError(f"{what} in {self.chat}: no result for {retry_seconds:.0f} s, last error: {last_error!r}")


def _has_succeeded(interaction: Json) -> bool:
    """Returns whether the work was done, or was not to be done because an approval was rejected."""
    rejected = any(approval["approved"] is False for approval in interaction["approvals"])
    return rejected or not any(map(_FAILED.search, answers_of(interaction)))


def _create_key() -> str:
    return secrets.token_hex(8)
