"""What the run API does with chats and interactions. The front ends start their runs here, too."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from backend.api.interactions import schemas
from backend.api.interactions.events import RenderedInteraction, RunApiRenderer
from backend.api.interactions.render import (
    parse_parts,
    render_chat_head,
    render_interaction,
    render_unread,
)
from backend.api.json_parts import JsonParts, serialize_in_parts
from backend.api.messages import check_content, create_message
from backend.context.render import render_records
from backend.context.summaries import Summaries
from backend.context.window import render_request
from backend.conversations import branches, conversations, steering, timeline
from backend.conversations.conversations import Conversation, check_chat_id, is_valid
from backend.conversations.errors import NotShown
from backend.conversations.history import load_noted_calls
from backend.conversations.records import ENDED, Record, Run, Timeline
from backend.conversations.run_requests import RunRequest, UserMessage
from backend.conversations.timeline import FOREVER, PAGE_BYTES
from backend.errors import NotFound
from backend.ids import new_id
from backend.model.chat_model import ChatModel
from backend.runs.service import RunService
from backend.runs.sub_agents import add_results
from backend.tools.task_tools import TaskTools
from backend.users.idempotency import IdempotencyKey, start_once

_RUNS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class InteractionService:
    runs: RunService
    model: ChatModel
    summaries: Summaries
    tasks: TaskTools
    message_chars: int

    async def create_message(
        self, user_id: str, message: str | Sequence[schemas.MessagePart], time_zone: str | None
    ) -> UserMessage:
        """Creates a message; stores nothing. Raises `MessageTooLong`, and `InvalidRequest` for an invisible one."""
        content = parse_parts(message)
        check_content(content, max_chars=self.message_chars)
        moment = self.runs.moment(time_zone)
        return await create_message(new_id("msg"), content, self.tasks, user_id=user_id, moment=moment)

    async def find(self, user_id: str, chat_id: str) -> Conversation:
        check_chat_id(chat_id)
        return await conversations.find(self.runs.database, user_id, chat_id)

    async def find_interaction(self, user_id: str, chat_id: str, run_id: str) -> Run:
        conversation = await self.find(user_id, chat_id)
        if not is_valid(run_id):
            raise NotFound.of("interaction", run_id)
        return await self.runs.find(user_id, conversation.id, run_id)

    def follow(self, user_id: str, chat_id: str, run_id: str, *, after: int = 0) -> AsyncIterator[bytes]:
        events = self.runs.streams.follow(user_id, run_id, after=after)
        return RunApiRenderer(RenderedInteraction(run_id, chat_id)).encode_stream(events)

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

        async def start() -> str:
            return (await self.runs.start_in_chat(user_id, chat_id, message, options=options, key=key)).run.id

        return await start_once(self.runs.database, user_id, key, start)

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

        async def start() -> str:
            if not run.active:
                raise NotShown
            return (await self.runs.start(run.user_id, request)).run.id

        return await start_once(self.runs.database, run.user_id, key, start)

    # Reading

    async def get_chat(self, user_id: str, chat_id: str, *, limit: int, before: str | None, brief: bool) -> JsonParts:
        """Serializes a chat with the newest interactions before one: at most `limit` and 1 MB, but at least one."""
        conversation = await self.find(user_id, chat_id)
        first = await self.find_interaction(user_id, chat_id, before) if before is not None else None
        if first is not None and not first.active:
            raise NotFound.of("interaction", first.id)
        end, database = first.seq if first is not None else FOREVER, self.runs.database
        path, has_more = await branches.load_shown(database, user_id, conversation.id, before=end, limit=limit)
        shown, first_id = list[JsonParts](), None
        bytes_left = PAGE_BYTES
        for last in range(len(path), 0, -_RUNS_AT_ONCE):
            runs = path[max(last - _RUNS_AT_ONCE, 0) : last]
            records: list[Record] = []
            if not brief:
                earlier = await timeline.load_shown(database, user_id, conversation.id, before=runs[0].seq)
                since = await timeline.load_shown(database, user_id, conversation.id, before=end, runs=len(runs))
                records = [*earlier.records, *(one for one in since.records if (one.seq or 0) > runs[0].seq)]
            ends = [*(run.seq for run in runs[1:]), end]
            async with aclosing(self._render(runs, records, ends, brief=brief)) as interactions:
                async for interaction in interactions:
                    serialized = await serialize_in_parts(interaction)
                    bytes_left -= serialized.size
                    if shown and bytes_left < 0:
                        break
                    shown.insert(0, serialized)
                    first_id = interaction.id
            if bytes_left < 0:
                break
            end = runs[0].seq
        has_more = has_more or len(shown) < len(path)
        unread = await steering.load_unread(database, user_id, conversation.id)
        chat = schemas.Chat(
            **render_chat_head(conversation, chat_id).model_dump(),
            interactions=[],
            has_more=has_more,
            before=first_id if has_more else None,
            unread=[render_unread(message) for message in unread],
        )
        return await serialize_in_parts({**dict(chat), "interactions": shown})

    async def get_interaction(self, run: Run, *, brief: bool) -> schemas.Interaction:
        """Renders an interaction; a `brief` one without its events and what the model knows after it."""
        records: list[Record] = []
        if run.status in ENDED and not brief:
            records = (await branches.load_path(self.runs.database, run)).records
        async with aclosing(self._render([run], records, [FOREVER], brief=brief)) as interactions:
            return await anext(interactions)

    async def _render(
        self, runs: Sequence[Run], records: list[Record], ends: Sequence[int], *, brief: bool
    ) -> AsyncGenerator[schemas.Interaction]:
        """Renders interactions of a chat, the newest first, each when it is asked for.

        After each, if it has ended, the model knows the records before its end.
        """
        user_id, ids = runs[0].user_id, [run.id for run in runs]
        tokens = self.model.endpoint.profile.history_tokens
        trees = await timeline.load_trees(self.runs.database, user_id, ids)
        siblings = await branches.load_alternatives(self.runs.database, user_id, ids)
        await add_results(self.runs.database, user_id, Timeline(records))
        noted = await load_noted_calls(self.runs.database, user_id, runs[0].conversation_id)
        # In a thread, as outputs of tools may have megabytes, whose characters are looked at and counted.
        rendered = [] if brief else await asyncio.to_thread(render_records, Timeline(records, noted), after=0)
        for run, end in reversed([*zip(runs, ends, strict=True)]):
            messages = None
            if run.status in ENDED and not brief:
                known = [one for one in rendered if (one.record.seq or 0) < end]
                before_end = Timeline([one.record for one in known], noted)
                items = await asyncio.to_thread(render_request, before_end, tokens=tokens, rendered=known)
                messages = self.model.messages(items)
            yield render_interaction(run, trees, siblings=siblings[run.id], messages=messages, brief=brief)
            await asyncio.sleep(0)  # others are served in between
