"""Reads chats and their interactions for the run API."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from backend.api.interactions import schemas
from backend.api.interactions.render import render_chat_head, render_interaction, render_unread
from backend.api.interactions.steps import render_steps
from backend.context.window import render_request
from backend.conversations import branches, conversations, steering, timeline
from backend.conversations.conversations import Conversation, check_chat_id
from backend.conversations.history import load_noted_calls
from backend.conversations.records import ENDED, Record, Run, Timeline
from backend.conversations.timeline import FOREVER
from backend.runs.sub_agents import add_results
from common.database import Database

PAGE_BYTES = 1_048_576
_AT_ONCE = 10  # interactions that are read together
_KNOWN_RUNS = 200  # how many runs of a path the model may know


@dataclass(frozen=True, slots=True)
class ChatReader:
    """`to_messages` renders input items of the Agents SDK as they are sent, with at most `history_tokens`."""

    database: Database
    to_messages: Callable[[list[Any]], list[dict[str, Any]]]
    history_tokens: int

    async def find(self, user_id: str, chat_id: str) -> Conversation:
        check_chat_id(chat_id)
        return await conversations.find(self.database, user_id, chat_id)

    async def list_chats(self, user_id: str, *, limit: int, after: str | None, titled: str) -> schemas.Chats:
        last = await conversations.find(self.database, user_id, after) if after is not None else None
        found, has_more = await conversations.load_page(
            self.database, user_id, limit=limit, after=last.id if last else None, titled=titled
        )
        heads = [render_chat_head(one, one.id) for one in found]
        return schemas.Chats(chats=heads, has_more=has_more, after=heads[-1].chat_id if has_more else None)

    async def get_chat(self, user_id: str, chat_id: str, *, limit: int, before: Run | None) -> schemas.Chat:
        """Returns the newest shown interactions before one: at most `limit` and 1 MB, but at least one."""
        conversation = await self.find(user_id, chat_id)
        end = before.seq if before is not None else FOREVER
        path, has_more = await branches.load_shown(self.database, user_id, conversation.id, before=end, limit=limit)
        shown: list[schemas.Interaction] = []
        bytes_left = PAGE_BYTES
        for last in range(len(path), 0, -_AT_ONCE):
            runs = path[max(last - _AT_ONCE, 0) : last]
            earlier = await timeline.load_shown(self.database, user_id, conversation.id, before=runs[0].seq)
            since = await timeline.load_shown(self.database, user_id, conversation.id, before=end, runs=len(runs))
            records = [*earlier.records, *(one for one in since.records if (one.seq or 0) > runs[0].seq)]
            ends = [*(run.seq for run in runs[1:]), end]
            for interaction in reversed(await self._render(runs, records, ends)):
                bytes_left -= len(interaction.model_dump_json().encode())
                if shown and bytes_left < 0:
                    break
                shown.insert(0, interaction)
            if bytes_left < 0:
                break
            end = runs[0].seq
        has_more = has_more or len(shown) < len(path)
        unread = await steering.load_unread(self.database, user_id, conversation.id)
        return schemas.Chat(
            **render_chat_head(conversation, chat_id).model_dump(),
            interactions=shown,
            has_more=has_more,
            before=shown[0].id if has_more and shown else None,
            unread=[render_unread(message) for message in unread],
        )

    async def get_interaction(self, run: Run, *, brief: bool) -> schemas.Interaction:
        """Renders an interaction; a `brief` one without its events and what the model knows after it."""
        records: list[Record] = []
        if run.status in ENDED and not brief:
            path = await branches.path_to(self.database, run.user_id, run.conversation_id, run.id)
            before = await branches.find_next_shown(self.database, run) if run.active else FOREVER
            ids = [one.id for one in path[-_KNOWN_RUNS:]]
            known = await timeline.load_path(self.database, run.user_id, run.conversation_id, ids, before=before)
            records = known.records
        [interaction] = await self._render([run], records, [FOREVER], brief=brief)
        return interaction

    async def get_steps(self, run: Run, *, limit: int, after: int) -> schemas.Steps:
        tree = await timeline.load_events(self.database, run.user_id, run.id, after=0)
        steps = [step for step in render_steps(tree) if step.number > after]
        shown = steps[:limit]
        return schemas.Steps(steps=shown, after=shown[-1].number if len(steps) > limit else None)

    async def _render(
        self, runs: Sequence[Run], records: list[Record], ends: Sequence[int], *, brief: bool = False
    ) -> list[schemas.Interaction]:
        """Renders interactions of a chat; after each, if it has ended, the model knows the records before its end."""
        user_id, ids = runs[0].user_id, [run.id for run in runs]
        trees = await timeline.load_trees(self.database, user_id, ids)
        siblings = await branches.load_alternatives(self.database, user_id, ids)
        await add_results(self.database, user_id, Timeline(records))
        noted = await load_noted_calls(self.database, user_id, runs[0].conversation_id)
        rendered: list[schemas.Interaction] = []
        for run, end in zip(runs, ends, strict=True):
            messages = None
            if run.status in ENDED and not brief:
                known = Timeline([record for record in records if (record.seq or 0) < end], noted)
                messages = self.to_messages(render_request(known, tokens=self.history_tokens))
            rendered.append(render_interaction(run, trees, siblings=siblings[run.id], messages=messages, brief=brief))
            await asyncio.sleep(0)  # others are served in between
        return rendered
