"""Interactions as they are stored, in the shapes of the API."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.api.interactions import schemas as shapes
from backend.context import fitting
from backend.context import hidden_context as hidden
from backend.conversation import rows
from backend.conversation.chats import Chat
from backend.conversation.items import Ending, Said
from backend.conversation.model_input import budget
from backend.conversation.reading import Recent
from backend.conversation.runs import interactions
from backend.conversation.runs.abandoned import CUT
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.interactions import Head
from backend.doors.runs.rendering import Rendering, status_of
from backend.model.chat_model import ChatModel
from backend.turn.following.stored import events_of

PAGE_BYTES = 1_048_576
_AT_ONCE = 10  # that are read together
_LONGEST_HOLD = 0.01  # seconds


@dataclass(frozen=True)
class Stored:
    """Reads what there is of the chats of one person at a time."""

    engine: AsyncEngine
    model: ChatModel

    async def page(self, chat: Chat, chat_id: str, *, user_id: str, limit: int, before: str | None) -> shapes.Chat:
        """The newest interactions before one: `limit` of them, or as many as fit into a page's bytes, at least one."""
        heads, has_more = await interactions.page(self.engine, chat, user_id=user_id, limit=limit, before=before)
        shown: list[shapes.Interaction] = []
        room, pauses = PAGE_BYTES, _Pauses()
        for portion in _portions(heads):
            assert chat.leaf_run_id is not None, "or no run would be on its path"
            loaded = await interactions.load(self.engine, chat, portion, leaf=chat.leaf_run_id, user_id=user_id)
            for found in reversed(loaded):
                one = await self._shown(found, chat_id, pauses)
                room -= len(one.model_dump_json().encode())
                await pauses.pause()
                if shown and room < 0:
                    has_more = True
                    break
                shown.append(one)
            if room < 0:
                break
        head = head_of(chat, chat_id).model_dump()
        older = shown[-1].id if has_more and shown else None
        return shapes.Chat(**head, interactions=shown[::-1], has_more=has_more, before=older)

    async def one(
        self, chat: Chat, chat_id: str, run_id: str, *, user_id: str, brief: bool = False
    ) -> shapes.Interaction:
        """A `brief` one is read without what came before it, and told without what it said."""
        head = await interactions.find(self.engine, chat, run_id, user_id=user_id)
        leaf = None if brief else run_id
        [found] = await interactions.load(self.engine, chat, [head], leaf=leaf, user_id=user_id)
        return await self._shown(found, chat_id, _Pauses(), brief=brief)

    async def _shown(
        self, found: interactions.Interaction, chat_id: str, pauses: "_Pauses", *, brief: bool = False
    ) -> shapes.Interaction:
        head = found.head
        said = rows.to_value(found.message) if found.message else None
        endings = [item.sentence for row in found.rows if isinstance(item := rows.to_value(row), Ending)]
        reason = endings[-1] if endings else CUT if head.outcome == "interrupted" else None
        over = head.status == "ended"
        return shapes.Interaction(
            id=head.id,
            status=status_of(head.status, head.outcome),
            reason=reason if over else None,
            user_message=said.text if isinstance(said, Said) else "",
            created_at=head.started_at,
            completed_at=head.ended_at,
            usage=head.usage,
            agent_events=[] if brief else _events(found, Rendering(chat_id, head.id)),
            approvals=[_approval(one) for one in found.asked],
            siblings=head.siblings,
            final_agent_state=shapes.AgentState(messages=await self._messages(found.knew, pauses))
            if over and not brief
            else None,
        )

    async def _messages(self, knew: Recent, pauses: "_Pauses") -> list[dict[str, Any]]:
        """What the model is sent of it."""
        tokens = self.model.endpoint.profile.history_tokens
        await pauses.pause()
        window = budget.window(knew, tokens=tokens)
        await pauses.pause()
        items: list[Any] = []
        for item in await window.to_model_input():
            items.append(hidden.tamed(item))
            await pauses.pause()
        return self.model.messages(fitting.fit(items, tokens=tokens, head=0 if window.stand_in is None else 1))


class _Pauses:
    """Other people are served meanwhile, however much there is to read."""

    def __init__(self) -> None:
        self._paused = time.perf_counter()

    async def pause(self) -> None:
        """Give way, if that was not done for a while."""
        if time.perf_counter() - self._paused > _LONGEST_HOLD:
            await asyncio.sleep(0)
            self._paused = time.perf_counter()


def head_of(chat: Chat, chat_id: str) -> shapes.ChatHead:
    """The chat, as whoever asks names it."""
    return shapes.ChatHead(
        id=chat_id,
        chat_id=chat_id,
        name=chat.name,
        title=chat.title,
        created_at=chat.created_at,
        leaf=chat.leaf_run_id,
    )


def _events(found: interactions.Interaction, rendering: Rendering) -> list[Any]:
    stored = events_of(found.rows, found.head.outcome, asked=found.asked)
    return [event.data for event in filter(None, map(rendering.event, stored)) if "type" in event.data]


def _approval(asked: Approval) -> shapes.Approval:
    return shapes.Approval(
        approval_id=asked.id,
        agent=asked.agent,
        tool_name=asked.call["name"],
        tool_input=asked.call["arguments"],
        text=asked.text,
        approved=None if asked.decision is None else asked.decision == "approved",
        reason=asked.reason,
    )


def _portions(heads: Sequence[Head]) -> Iterator[Sequence[Head]]:
    """The newest ones first, each portion in the order of time."""
    for end in range(len(heads), 0, -_AT_ONCE):
        yield heads[max(end - _AT_ONCE, 0) : end]
