"""What the run API does with chats and interactions. The front ends start and decide their runs here, too."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from backend.api.idempotency import find_started_run
from backend.api.interactions import schemas
from backend.api.interactions.reader import ChatReader
from backend.api.interactions.render import InteractionRenderer, parse_parts
from backend.api.messages import check_content, create_message, with_titles
from backend.context.summaries import Summaries
from backend.conversations import entries, steering
from backend.conversations.approvals import Decision
from backend.conversations.conversations import check_chat_id, is_valid
from backend.conversations.errors import NotShown
from backend.conversations.records import Event, Run
from backend.conversations.run_requests import RunRequest, UserMessage
from backend.conversations.steering import Mode
from backend.errors import BackendError, NotFound
from backend.model.providers import ModelEndpoint, check_options
from backend.runs.live_run import LiveRun
from backend.runs.service import RunService
from backend.tools.task_tools import TaskTools
from backend.users.idempotency import IdempotencyKey
from common.ids import new_id


@dataclass(frozen=True, slots=True)
class InteractionService:
    runs: RunService
    reader: ChatReader
    summaries: Summaries
    tasks: TaskTools
    endpoint: ModelEndpoint
    message_chars: int

    async def create_message(
        self, user_id: str, message: str | Sequence[schemas.MessagePart], time_zone: str | None
    ) -> UserMessage:
        """Creates a message with the present time and the titles of its tasks; stores nothing.

        Raises `MessageTooLong`, and `InvalidRequest` for one in which nothing can be seen.
        """
        content = parse_parts(message)
        check_content(content, most_chars=self.message_chars)
        content = await with_titles(content, self.tasks, user_id=user_id)
        return create_message(new_id("msg"), content, moment=self.runs.moment(time_zone))

    def create_options(self, model: Any = None, temperature: Any = None) -> dict[str, Any]:
        """Returns the options of a run. Raises `InvalidRequest` for what the model's provider does not offer."""
        return check_options(model, temperature, endpoint=self.endpoint)

    async def find_interaction(self, user_id: str, chat_id: str, run_id: str) -> Run:
        """Loads an interaction of a user's chat, not a sub-agent's run. Raises `NotFound`."""
        conversation = await self.reader.find(user_id, chat_id)
        if not is_valid(run_id):
            raise NotFound
        return await self.runs.find(user_id, conversation.id, run_id)

    async def get_chat(self, user_id: str, chat_id: str, *, limit: int, before: str | None) -> schemas.Chat:
        """Returns a chat with its newest interactions before one.

        Raises `NotFound`, also for a `before` that is not shown.
        """
        first = await self.find_interaction(user_id, chat_id, before) if before is not None else None
        if first is not None and not first.active:
            raise NotFound
        return await self.reader.get_chat(user_id, chat_id, limit=limit, before=first)

    def follow(self, user_id: str, chat_id: str, run_id: str, *, after: int = 0) -> AsyncIterator[bytes]:
        """Yields the server-sent events of an interaction after a number; a reader who leaves does not stop it.

        Raises `LimitReached`.
        """
        self.runs.streams.check_readers(user_id)
        return _render_frames(
            self.runs.streams.follow(user_id, run_id, after=after), InteractionRenderer(chat_id, run_id)
        )

    async def start(
        self,
        user_id: str,
        chat_id: str | None,
        message: UserMessage,
        *,
        options: dict[str, Any] | None = None,
        key: IdempotencyKey | None = None,
    ) -> str:
        """Starts a run that answers a message and returns its id; a name that is new makes a chat, and so does None.

        The same request under the same key starts one run, whose id it returns each time.
        """
        if chat_id is not None:
            check_chat_id(chat_id)
        if (run_id := await find_started_run(self.runs.database, user_id, key)) is not None:
            return run_id
        start = partial(self.runs.start_in_chat, user_id, chat_id, message, options=options, key=key)
        return await self._start(user_id, key, start)

    async def edit(
        self,
        user_id: str,
        run: Run,
        message: UserMessage | None,
        *,
        options: dict[str, Any] | None = None,
        key: IdempotencyKey | None = None,
    ) -> str:
        """Starts a run that answers another message in place of an interaction's, or with None the same again; returns
        its id. It is shown from then on. Raises `NotShown` for an interaction of another branch.
        """
        if (started := await find_started_run(self.runs.database, user_id, key)) is not None:
            return started
        if not run.active:
            raise NotShown
        request = RunRequest(run.conversation_id, message, replaces=run.id, options=options, key=key)
        return await self._start(user_id, key, partial(self.runs.start, user_id, request))

    async def _start(self, user_id: str, key: IdempotencyKey | None, start: Callable[[], Awaitable[LiveRun]]) -> str:
        """Starts a run and returns its id; that of the run of another request with this key, if it was quicker."""
        try:
            return (await start()).run.id
        except BackendError:  # another request with this key may have been quicker
            run_id = await find_started_run(self.runs.database, user_id, key)
            if run_id is None:
                raise
            return run_id

    async def cancel(self, user_id: str, chat_id: str, run_id: str) -> schemas.Cancelling:
        """Requests that an interaction stop, without waiting for its end. Raises `NotFound` and `AlreadyEnded`."""
        await self.runs.cancel(await self.find_interaction(user_id, chat_id, run_id))
        message = "The interaction is being cancelled. What was said and done so far is kept."
        return schemas.Cancelling(interaction_id=run_id, message=message)

    async def decide(self, user_id: str, chat_id: str, run_id: str, body: schemas.Decision) -> schemas.Decided:
        """Approves or rejects a call; with the last decision the interaction continues."""
        await self.find_interaction(user_id, chat_id, run_id)
        decision = Decision(body.approved, text=body.reason)
        await self.runs.decide(user_id, body.approval_id, decision, run_id=run_id, always=body.always)
        return schemas.Decided(approval_id=body.approval_id, approved=body.approved)

    async def send_message(
        self, user_id: str, chat_id: str, run_id: str, message: UserMessage, mode: Mode
    ) -> schemas.Queued:
        """Lets a running interaction read a message, or answers it afterwards; returns the message's id and dropped
        follow-ups.
        """
        dropped = await self.runs.send_message(await self.find_interaction(user_id, chat_id, run_id), message, mode)
        return schemas.Queued(input_id=message.id, dropped=dropped)

    async def drop_message(self, user_id: str, chat_id: str, run_id: str, message_id: str) -> schemas.Dropped:
        """Deletes a message that no model has read, also if it waits for a later interaction by now.

        Raises `NotFound` and `MessageRead`.
        """
        conversation_id = await self._find_conversation(user_id, chat_id, run_id, message_id)
        await steering.drop(self.runs.database, user_id, conversation_id, message_id)
        return schemas.Dropped(input_id=message_id)

    async def steer_with(self, user_id: str, chat_id: str, run_id: str, message_id: str) -> schemas.Steering:
        """Turns a waiting follow-up into a steering message, which is read before the next model request.

        The interaction that it waits for now reads it, which may be a later one than the one named.

        Raises `NotFound`, `MessageRead` and `RunEnded`.
        """
        conversation_id = await self._find_conversation(user_id, chat_id, run_id, message_id)
        await steering.steer(self.runs.database, user_id, conversation_id, message_id)
        return schemas.Steering(input_id=message_id)

    async def _find_conversation(self, user_id: str, chat_id: str, run_id: str, message_id: str) -> str:
        """The id of the conversation of an interaction and a message to it."""
        run = await self.find_interaction(user_id, chat_id, run_id)
        if not is_valid(message_id):
            raise NotFound
        return run.conversation_id

    async def show_branch(self, user_id: str, chat_id: str, run_id: str | None) -> schemas.Branched:
        """Shows the chat as it was after an interaction, or before its first. Stores `/version` for the event log."""
        conversation = await self.reader.find(user_id, chat_id)
        if run_id is not None:
            await self.find_interaction(user_id, chat_id, run_id)
        await self.runs.show(user_id, conversation.id, run_id)
        text = f"/version {run_id}" if run_id is not None else "/version"
        await entries.add_command(self.runs.database, user_id, conversation.id, text, {"leaf": run_id})
        return schemas.Branched(chat_id=chat_id, leaf=run_id)

    async def compact(self, user_id: str, chat_id: str) -> schemas.Compacted:
        """Summarises all but the newest messages now, and stores `/compact` for the event log."""
        conversation = await self.reader.find(user_id, chat_id)
        messages = await self.summaries.compact(user_id, conversation.id)
        compacted = schemas.Compacted(status="compacted" if messages else "nothing to compact", messages=messages)
        await entries.add_command(self.runs.database, user_id, conversation.id, "/compact", compacted.model_dump())
        return compacted


async def _render_frames(events: AsyncIterator[Event], renderer: InteractionRenderer) -> AsyncIterator[bytes]:
    """Yields what a run's events become in the run API, as server-sent events; not those that it does not show."""
    async for event in events:
        if frames := renderer.render(event):
            yield frames
