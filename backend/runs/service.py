"""What can be done with runs, whichever API asks for it."""

import time
from dataclasses import dataclass, replace
from typing import Any

from backend.cards.approvals import may_allow_always
from backend.conversations import approvals, branches, conversations, run_requests, runs, steering
from backend.conversations.approvals import Decision
from backend.conversations.conversations import is_generated
from backend.conversations.errors import AlreadyEnded, NameTaken
from backend.conversations.records import Run, ToolCall
from backend.conversations.run_requests import MessageTime, NewConversation, RunRequest, UserMessage
from backend.conversations.steering import Mode
from backend.errors import NotFound
from backend.ids import new_id
from backend.liveness import ProcessConnection
from backend.runs import metrics
from backend.runs.admission import AdmissionControl
from backend.runs.calls import DIRECTORY
from backend.runs.executor import Executor
from backend.runs.live_run import LiveRun
from backend.runs.stream import Streams
from backend.tools.table import find_tool
from backend.users.idempotency import IdempotencyKey, KeyedResponse
from backend.users.limits import UserLimits
from common.clock import Clock
from common.database import Database


@dataclass(frozen=True, slots=True)
class RunService:
    """`clock` and `time_zone`, of users whose clients name none, say when and where messages are written."""

    database: Database
    executor: Executor
    streams: Streams
    connection: ProcessConnection
    limits: UserLimits
    admission: AdmissionControl
    clock: Clock
    time_zone: str

    def moment(self, time_zone: str | None) -> MessageTime:
        return MessageTime(self.clock(), time_zone, self.time_zone)

    async def start(self, user_id: str, request: RunRequest) -> LiveRun:
        """Starts a run that answers a message. Raises the errors of `run_requests.start`, and `Overloaded`."""
        began = time.perf_counter()
        with self.admission.admit(running=len(self.executor.live)):
            started = await run_requests.start(
                self.database, user_id, request, process_id=self.connection.process_id, limits=self.limits
            )
            metrics.record_outside(user_id, request.conversation_id, started.cancelled, "cancelled")
            live = self.executor.launch(started)
            live.began, live.first_event_seconds = began, time.perf_counter() - began
            metrics.FIRST_EVENT.observe(live.first_event_seconds)
            return live

    async def start_in_chat(
        self,
        user_id: str,
        chat_id: str | None,
        message: UserMessage,
        *,
        options: dict[str, Any] | None = None,
        key: IdempotencyKey | None = None,
    ) -> LiveRun:
        """Starts a run in a chat; None or a new name creates it. Raises as `start`, and `NotFound` for an id."""
        new = RunRequest(new_id("thr"), message, NewConversation(chat_id), options=options, key=key)
        if chat_id is None:
            return await self.start(user_id, new)
        try:
            found = await conversations.find(self.database, user_id, chat_id)
        except NotFound:
            if is_generated(chat_id):
                raise
            try:
                return await self.start(user_id, new)
            except NameTaken:  # another request has just made it
                found = await conversations.find(self.database, user_id, chat_id)
        return await self.start(user_id, replace(new, conversation_id=found.id, new=None))

    async def decide(
        self,
        user_id: str,
        call_id: str,
        decision: Decision,
        *,
        run_id: str | None = None,
        always: bool = False,
    ) -> tuple[ToolCall, LiveRun | None]:
        """Approves or rejects a call once; after the last decision the run is continued in this process and returned
        too. With `always` the tool of an approved call needs no approval in the conversation any more, if it may be
        allowed so. Raises the errors of `approvals.decide`.
        """
        call, tree = await approvals.decide(
            self.database,
            user_id,
            call_id,
            decision,
            process_id=self.connection.process_id,
            run_id=run_id,
            most_running=self.limits.running,
        )
        if decision.approved:
            conversation_id = (await runs.load(self.database, user_id, call.run_id)).conversation_id
            if always and may_allow_always(call.tool):
                await approvals.allow(self.database, user_id, conversation_id, call.tool, reach=call.reach)
            if find_tool(call.tool).changes_files:
                directory = await conversations.find_directory(self.database, user_id, conversation_id)
                if directory is not None:
                    await approvals.allow(self.database, user_id, conversation_id, DIRECTORY, reach=directory)
        return call, await self.executor.resume(tree)

    async def send_message(
        self, run: Run, message: UserMessage, mode: Mode, *, response: KeyedResponse | None = None
    ) -> list[str]:
        """Lets a running run read a message, or answers it afterwards; returns the ids of follow-ups that it drops.

        Continues the run if it waited for approvals. Raises `RunEnded`, `LimitReached` and `KeyStored`.
        """
        process_id, limits = self.connection.process_id, self.limits
        resumed, dropped = await steering.add(
            self.database, run, message, mode, process_id=process_id, limits=limits, response=response
        )
        await self.executor.resume(resumed)
        return dropped

    async def cancel(self, run: Run) -> None:
        """Requests that a run stop, in whichever process it is executed, and returns at once. Raises `AlreadyEnded`."""
        was_running, cancelled = await runs.request_stop(self.database, run)
        if not was_running and not cancelled:
            raise AlreadyEnded
        metrics.record_outside(run.user_id, run.conversation_id, cancelled, "cancelled")
        self.streams.wake(run.id)

    async def show(self, user_id: str, conversation_id: str, run_id: str | None) -> None:
        cancelled = await branches.show(self.database, user_id, conversation_id, run_id)
        metrics.record_outside(user_id, conversation_id, cancelled, "cancelled")

    async def find(self, user_id: str, conversation_id: str, run_id: str) -> Run:
        run = await runs.load(self.database, user_id, run_id)
        if run.conversation_id != conversation_id or run.is_sub_agent:
            raise NotFound.of("interaction", run_id)
        return run
