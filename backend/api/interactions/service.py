"""What the run API does with chats and interactions. The front ends start their runs here, too."""

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
from backend.conversations import entries
from backend.conversations.conversations import check_chat_id, is_valid
from backend.conversations.errors import NotShown
from backend.conversations.records import Run
from backend.conversations.run_requests import RunRequest, UserMessage
from backend.errors import BackendError, NotFound
from backend.model.providers import ModelEndpoint
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
        """Creates a message; stores nothing. Raises `MessageTooLong`, and `InvalidRequest` for an invisible one."""
        content = parse_parts(message)
        check_content(content, most_chars=self.message_chars)
        content = await with_titles(content, self.tasks, user_id=user_id)
        return create_message(new_id("msg"), content, moment=self.runs.moment(time_zone))

    async def find_interaction(self, user_id: str, chat_id: str, run_id: str) -> Run:
        conversation = await self.reader.find(user_id, chat_id)
        if not is_valid(run_id):
            raise NotFound
        return await self.runs.find(user_id, conversation.id, run_id)

    async def get_chat(self, user_id: str, chat_id: str, *, limit: int, before: str | None) -> schemas.Chat:
        first = await self.find_interaction(user_id, chat_id, before) if before is not None else None
        if first is not None and not first.active:
            raise NotFound
        return await self.reader.get_chat(user_id, chat_id, limit=limit, before=first)

    async def follow(self, user_id: str, chat_id: str, run_id: str, *, after: int = 0) -> AsyncIterator[bytes]:
        """Yields the server-sent events of an interaction after a number."""
        renderer = InteractionRenderer(chat_id, run_id)
        async for event in self.runs.streams.follow(user_id, run_id, after=after):
            if frames := renderer.render(event):
                yield frames

    async def start(
        self,
        user_id: str,
        chat_id: str | None,
        message: UserMessage,
        *,
        options: dict[str, Any] | None = None,
        key: IdempotencyKey | None = None,
    ) -> str:
        """Starts a run that answers a message and returns its id; a name that is new makes a chat, and so does None."""
        if chat_id is not None:
            check_chat_id(chat_id)
        start = partial(self.runs.start_in_chat, user_id, chat_id, message, options=options, key=key)
        return await self._start_once(user_id, key, start)

    async def edit(
        self,
        run: Run,
        message: UserMessage | None,
        *,
        options: dict[str, Any] | None = None,
        key: IdempotencyKey | None = None,
    ) -> str:
        """Starts a run in place of another, which answers this message, or with None the same; returns its id."""
        request = RunRequest(run.conversation_id, message, replaces=run.id, options=options, key=key)

        async def start() -> LiveRun:
            if not run.active:
                raise NotShown
            return await self.runs.start(run.user_id, request)

        return await self._start_once(run.user_id, key, start)

    async def _start_once(
        self, user_id: str, key: IdempotencyKey | None, start: Callable[[], Awaitable[LiveRun]]
    ) -> str:
        if (run_id := await find_started_run(self.runs.database, user_id, key)) is not None:
            return run_id
        try:
            return (await start()).run.id
        except BackendError:  # another request with this key may have been quicker
            if (run_id := await find_started_run(self.runs.database, user_id, key)) is None:
                raise
            return run_id

    async def show_branch(self, user_id: str, chat_id: str, run_id: str | None) -> schemas.Branched:
        """Shows the chat as it was after an interaction, or before its first."""
        conversation = await self.reader.find(user_id, chat_id)
        if run_id is not None:
            await self.find_interaction(user_id, chat_id, run_id)
        await self.runs.show(user_id, conversation.id, run_id)
        text = f"/version {run_id}" if run_id is not None else "/version"
        await entries.add_command(self.runs.database, user_id, conversation.id, text, {"leaf": run_id})
        return schemas.Branched(chat_id=chat_id, leaf=run_id)

    async def compact(self, user_id: str, chat_id: str) -> schemas.Compacted:
        conversation = await self.reader.find(user_id, chat_id)
        messages = await self.summaries.compact(user_id, conversation.id)
        compacted = schemas.Compacted(status="compacted" if messages else "nothing to compact", messages=messages)
        await entries.add_command(self.runs.database, user_id, conversation.id, "/compact", compacted.model_dump())
        return compacted
