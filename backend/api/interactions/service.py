"""What the run API does with chats and interactions."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from backend.api.idempotency import find_started_run
from backend.api.interactions import schemas
from backend.api.interactions.render import (
    InteractionRenderer,
    records_up_to,
    render_chat_head,
    render_interaction,
)
from backend.context.render import render_input
from backend.conversation.errors import BackendError, NotFound
from backend.conversations import branches, conversations, timeline
from backend.conversations.conversations import Conversation
from backend.conversations.errors import NameTaken
from backend.conversations.idempotency import IdempotencyKey
from backend.conversations.ids import check_chat_id, is_generated
from backend.conversations.records import ENDED, Event, Run, Timeline
from backend.conversations.runs import Message, NewConversation, RunRequest
from backend.conversations.steering import Mode
from backend.conversations.tool_calls import Decision
from backend.runs.service import RunService
from service.database import new_id


@dataclass(frozen=True, slots=True)
class InteractionService:
    """`to_messages` renders input items of the Agents SDK as they are sent to the model."""

    runs: RunService
    to_messages: Callable[[list[Any]], list[dict[str, Any]]]
    time_zone: str

    # Reading

    async def list_chats(self, user_id: str, *, limit: int, after: str | None) -> schemas.Chats:
        database = self.runs.database
        last = await conversations.find(database, user_id, after) if after is not None else None
        found, has_more = await conversations.load_page(database, user_id, limit=limit, after=last.id if last else None)
        heads = [render_chat_head(one, one.id) for one in found]
        return schemas.Chats(chats=heads, has_more=has_more, after=heads[-1].chat_id if has_more else None)

    async def get_chat(self, user_id: str, chat_id: str, *, limit: int, before: str | None) -> schemas.Chat:
        conversation = await self.find_chat(user_id, chat_id)
        path = await self._path(user_id, conversation, conversation.head_run_id)
        end = len(path)
        if before is not None:
            end = next((position for position, run in enumerate(path) if run.id == before), -1)
            if end < 0:
                raise NotFound
        shown = path[max(0, end - limit) : end]
        known = await timeline.load_runs(self.runs.database, user_id, [run.id for run in path[:end]])
        interactions = [await self._render(user_id, run, known, path) for run in shown]
        has_more = end > len(shown)
        return schemas.Chat(
            **render_chat_head(conversation, chat_id).model_dump(),
            interactions=interactions,
            has_more=has_more,
            before=shown[0].id if has_more and shown else None,
        )

    async def get_interaction(self, user_id: str, chat_id: str, run_id: str, *, brief: bool) -> schemas.Interaction:
        conversation = await self.find_chat(user_id, chat_id)
        run = await self.runs.find(user_id, conversation.id, run_id)
        path = [run] if brief else await self._path(user_id, conversation, run_id)
        known = await timeline.load_runs(self.runs.database, user_id, [one.id for one in path])
        return await self._render(user_id, run, known, path, brief=brief)

    async def find_chat(self, user_id: str, chat_id: str) -> Conversation:
        check_chat_id(chat_id)
        return await conversations.find(self.runs.database, user_id, chat_id)

    async def _path(self, user_id: str, conversation: Conversation, run_id: str | None) -> list[Run]:
        return await branches.path_to(self.runs.database, user_id, conversation.id, run_id) if run_id else []

    async def _render(
        self, user_id: str, run: Run, known: Timeline, path: Sequence[Run], *, brief: bool = False
    ) -> schemas.Interaction:
        messages = None
        if run.status in ENDED and not brief:
            messages = self.to_messages(render_input(records_up_to(known, run, path)))
        siblings = await branches.alternatives(self.runs.database, user_id, run.id)
        return render_interaction(run, known.of_run(run.id), siblings=siblings, messages=messages, brief=brief)

    def follow(self, user_id: str, chat_id: str, run_id: str, *, after: int = 0) -> AsyncIterator[bytes]:
        """The server-sent events of an interaction after a number. Who stops reading stops nothing but this."""
        self.runs.streams.check_readers(user_id)
        return _render_frames(self.runs.follow(user_id, run_id, after=after), InteractionRenderer(chat_id, run_id))

    # Acting

    async def start(
        self, user_id: str, chat_id: str, message: Message, *, options: dict[str, Any], key: IdempotencyKey | None
    ) -> str:
        """The id of the run that answers a message; a name that is new makes a chat.

        The same request under the same key starts one run, whose id it returns each time.
        """
        check_chat_id(chat_id)
        self.runs.streams.check_readers(user_id)
        database = self.runs.database
        if (run_id := await find_started_run(database, user_id, key)) is not None:
            return run_id
        try:
            conversation = await conversations.find(database, user_id, chat_id)
            request = RunRequest(conversation.id, message, options=options, key=key)
        except NotFound:
            if is_generated(chat_id):
                raise
            new = NewConversation(name=chat_id)
            request = RunRequest(new_id("thr"), message, new, options=options, key=key)
        try:
            return await self._start(user_id, request)
        except NameTaken:  # another request has just made it
            conversation = await conversations.find(database, user_id, chat_id)
            return await self._start(user_id, replace(request, conversation_id=conversation.id, new=None))

    async def edit(
        self,
        user_id: str,
        chat_id: str,
        run_id: str,
        message: Message,
        *,
        options: dict[str, Any],
        key: IdempotencyKey | None,
    ) -> str:
        """The id of the run that answers another message in place of an interaction's, shown from then on."""
        conversation = await self.find_chat(user_id, chat_id)
        await self.runs.find(user_id, conversation.id, run_id)
        if (started := await find_started_run(self.runs.database, user_id, key)) is not None:
            return started
        request = RunRequest(conversation.id, message, replaces=run_id, options=options, key=key)
        return await self._start(user_id, request)

    async def _start(self, user_id: str, request: RunRequest) -> str:
        try:
            return (await self.runs.start(user_id, request)).run.id
        except BackendError:  # another request with this key may have been quicker
            run_id = await find_started_run(self.runs.database, user_id, request.key)
            if run_id is None:
                raise
            return run_id

    def create_message(self, text: str, time_zone: str | None) -> Message:
        """A message of now, in the time zone that its client names or else in the server's."""
        details = {"now": datetime.now(UTC).isoformat(timespec="seconds"), "time_zone": time_zone or self.time_zone}
        return Message(new_id("msg"), text, details)

    async def cancel(self, user_id: str, chat_id: str, run_id: str) -> schemas.Cancelling:
        await self.runs.cancel(await self.find_interaction(user_id, chat_id, run_id))
        message = "The interaction is being cancelled. What was said and done so far is kept."
        return schemas.Cancelling(interaction_id=run_id, message=message)

    async def decide(self, user_id: str, chat_id: str, run_id: str, body: schemas.Decision) -> schemas.Decided:
        """Approves or rejects a call; with the last decision the interaction continues."""
        await self.find_interaction(user_id, chat_id, run_id)
        decision = Decision(body.approved, text=body.reason)
        await self.runs.decide(user_id, body.approval_id, decision, run_id=run_id)
        return schemas.Decided(approval_id=body.approval_id, approved=body.approved)

    async def send_message(
        self, user_id: str, chat_id: str, run_id: str, message: Message, mode: Mode
    ) -> schemas.Queued:
        """Lets a running interaction read a message, or answers it afterwards."""
        await self.runs.send_message(await self.find_interaction(user_id, chat_id, run_id), message, mode)
        return schemas.Queued(input_id=message.id)

    async def show_branch(self, user_id: str, chat_id: str, run_id: str | None) -> schemas.Branched:
        """Shows the chat as it was after an interaction, or before its first."""
        conversation = await self.find_chat(user_id, chat_id)
        if run_id is not None:
            await self.runs.find(user_id, conversation.id, run_id)
        await branches.show(self.runs.database, user_id, conversation.id, run_id)
        return schemas.Branched(chat_id=chat_id, leaf=run_id)

    async def find_interaction(self, user_id: str, chat_id: str, run_id: str) -> Run:
        """An interaction of a chat that the user has started; raises `NotFound`."""
        conversation = await self.find_chat(user_id, chat_id)
        return await self.runs.find(user_id, conversation.id, run_id)


async def _render_frames(events: AsyncIterator[Event], renderer: InteractionRenderer) -> AsyncIterator[bytes]:
    async for event in events:
        if frames := renderer.render(event):
            yield frames
