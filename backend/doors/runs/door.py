"""What the run API does: an interaction is a turn that goes on without a reader, and is read from what it publishes."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.api.interactions import schemas as shapes
from backend.api.sse import EventStream, format_event
from backend.cards.approval_card import checked_reason
from backend.conversation import chats
from backend.conversation.acting import Acting
from backend.conversation.agents import steps
from backend.conversation.chats import Chat
from backend.conversation.items import Said
from backend.conversation.runs import interactions
from backend.conversation.runs.inbox import Mode
from backend.conversation.runs.kept import Keyed
from backend.doors.runs import once
from backend.doors.runs.once import Answer
from backend.doors.runs.rendering import Rendering
from backend.doors.runs.stored import Stored, head_of
from backend.doors.starting import Starting
from backend.errors import BackendError, NotFound
from backend.turn import versions
from backend.turn.afterwards.summaries import Summaries
from backend.turn.answers import Answers
from backend.turn.following.places import Place
from backend.turn.following.publisher import Numbered
from backend.turn.inbox import Inbox
from backend.turn.turn import Turn
from backend.turn.turns import Turns
from service.database import pipelined

_SHOWN_OF_STEP = ("call_id", "agent", "kind", "content", "details", "created_at")


class Over(BackendError):
    """This interaction has already ended, so it cannot be cancelled."""

    code, status = "interaction_ended", 409


class NotShown(BackendError):
    """This interaction is on another branch. Switch to it with POST …/branch and edit it then."""

    code, status = "interaction_not_shown", 409


@dataclass(frozen=True)
class RunsDoor:
    engine: AsyncEngine
    turns: Turns
    answers: Answers
    inbox: Inbox
    summaries: Summaries
    stored: Stored
    starting: Starting

    # Reading

    async def chats(self, acting: Acting, *, limit: int, after: str | None) -> shapes.Chats:
        found, has_more = await chats.page(self.engine, user_id=acting.user_id, limit=limit, after=after)
        heads = [head_of(chat, chat.id) for chat in found]
        return shapes.Chats(chats=heads, has_more=has_more, after=heads[-1].chat_id if has_more else None)

    async def chat(self, chat_id: str, acting: Acting, *, limit: int, before: str | None) -> shapes.Chat:
        chat = await self.starting.chat(chat_id, acting)
        return await self.stored.page(chat, chat_id, user_id=acting.user_id, limit=limit, before=before)

    async def interaction(
        self, chat_id: str, run_id: str, acting: Acting, *, brief: bool = False
    ) -> shapes.Interaction:
        chat = await self.starting.chat(chat_id, acting)
        return await self.stored.one(chat, chat_id, run_id, user_id=acting.user_id, brief=brief)

    async def steps(self, chat_id: str, run_id: str, acting: Acting, *, limit: int, after: int) -> shapes.Steps:
        """What its agents did, with what unfolds below each step."""
        chat, _ = await self._run(chat_id, run_id, acting)
        async with pipelined(self.engine, acting.user_id) as pipeline:
            sent = await steps.page(pipeline, chat.id, run_id, user_id=acting.user_id, after=after, most=limit + 1)
        found = await steps.read(sent)
        shown = [
            shapes.Step(number=one.seq, **{name: getattr(one, name) for name in _SHOWN_OF_STEP})
            for one in found[:limit]
        ]
        return shapes.Steps(steps=shown, after=shown[-1].number if len(found) > limit else None)

    async def events(self, chat_id: str, run_id: str, acting: Acting, *, after: int) -> EventStream:
        await self._run(chat_id, run_id, acting)
        return self._stream(chat_id, run_id, self._place(acting), after=after)

    def _place(self, acting: Acting) -> Place:
        """A reader's; raises `LimitReached`. It is taken before anything is begun for them to read."""
        return self.turns.following.place(acting.user_id)

    def _stream(self, chat_id: str, run_id: str, place: Place, *, after: int = 0) -> EventStream:
        events = self.turns.following.events(run_id, place.user_id, after, place=place)
        return EventStream(_render_events(events, Rendering(chat_id, run_id)))

    async def _run(self, chat_id: str, run_id: str, acting: Acting) -> tuple[Chat, interactions.Head]:
        chat = await self.starting.chat(chat_id, acting)
        return chat, await interactions.find(self.engine, chat, run_id, user_id=acting.user_id)

    # Acting

    async def interact(
        self, chat_id: str, asked: shapes.NewInteraction, acting: Acting, keyed: Keyed | None
    ) -> EventStream:
        """Say something in a chat; a name that is new makes one."""
        chats.check(chat_id)
        start, place = self._start(self.starting.said(asked.user_message), asked, acting, keyed), self._place(acting)
        begin = partial(self.starting.begin, chat_id, acting, start)
        return self._stream(chat_id, await once.begun(self.engine, keyed, begin, user_id=acting.user_id), place)

    async def edit(
        self, chat_id: str, run_id: str, asked: shapes.Edit, acting: Acting, keyed: Keyed | None
    ) -> EventStream:
        """Say something else in place of an interaction's message: another version, which is shown from then on."""
        chat, run = await self._run(chat_id, run_id, acting)
        said = self.starting.said(asked.new_user_message)
        start, place = self._start(said, asked, acting, keyed), self._place(acting)
        edited = await once.begun(self.engine, keyed, partial(self._edit, chat, run, start), user_id=acting.user_id)
        return self._stream(chat_id, edited, place)

    async def _edit(self, chat: Chat, run: interactions.Head, start: Callable[..., Awaitable[Turn]]) -> Turn:
        if run.message_id is None:
            raise NotShown
        try:
            return await start(conversation_id=chat.id, instead_of=run.message_id)
        except NotFound:
            raise NotShown from None

    def _start(
        self, said: Said, asked: shapes.NewInteraction | shapes.Edit, acting: Acting, keyed: Keyed | None
    ) -> Callable[..., Awaitable[Turn]]:
        """By the model that is asked for; raises `InvalidRequest` for one that may not be."""
        choice = self.answers.choice(asked.model, asked.metadata.get("temperature"))
        return partial(self.starting.start(acting, said, keyed, followed=True), choice=choice)

    async def branch(self, chat_id: str, asked: shapes.Branch, acting: Acting, keyed: Keyed | None) -> Answer:
        """Show the chat as it was after an interaction, or before its first."""
        return await self._once(keyed, acting, partial(self._branch, chat_id, asked.interaction_id, acting))

    async def _branch(self, chat_id: str, run_id: str | None, acting: Acting) -> Answer:
        chat = await self.starting.chat(chat_id, acting)
        leaf = await versions.show(self.engine, chat.id, run_id, user_id=acting.user_id)
        return _answer(shapes.Branched(chat_id=chat_id, leaf=leaf))

    async def decide(
        self, chat_id: str, run_id: str, asked: shapes.Decision, acting: Acting, keyed: Keyed | None
    ) -> Answer:
        """Approve or refuse a call that waits; with the last decision the interaction goes on."""
        return await self._once(keyed, acting, partial(self._decide, chat_id, run_id, asked, acting))

    async def _decide(self, chat_id: str, run_id: str, asked: shapes.Decision, acting: Acting) -> Answer:
        chat, _ = await self._run(chat_id, run_id, acting)
        await self.turns.decide(
            self.answers.resume,
            asked.approval_id,
            approved=asked.approved,
            always=asked.always,
            reason=checked_reason(asked.reason),
            user_id=acting.user_id,
            conversation_id=chat.id,
            run_id=run_id,
            time_zone=acting.time_zone,
            detached=True,
        )
        return _answer(shapes.Decided(approval_id=asked.approval_id, approved=asked.approved))

    async def say(
        self, chat_id: str, run_id: str, asked: shapes.NewMessage, acting: Acting, keyed: Keyed | None
    ) -> Answer:
        """Let an interaction that goes on read a message; of one that waits, what it asks is refused."""
        said = self.starting.said(asked.text)
        return await self._once(keyed, acting, partial(self._say, chat_id, run_id, said, asked.mode, acting))

    async def _say(self, chat_id: str, run_id: str, said: Said, mode: Mode, acting: Acting) -> Answer:
        chat, _ = await self._run(chat_id, run_id, acting)
        queued = await self.inbox.add(
            said,
            mode,
            user_id=acting.user_id,
            conversation_id=chat.id,
            run_id=run_id,
            resume=self.answers.resume,
        )
        return _answer(shapes.Queued(input_id=queued.input_id), 202)

    async def cancel(self, chat_id: str, run_id: str, acting: Acting, keyed: Keyed | None) -> Answer:
        return await self._once(keyed, acting, partial(self._cancel, chat_id, run_id, acting))

    async def _cancel(self, chat_id: str, run_id: str, acting: Acting) -> Answer:
        chat, run = await self._run(chat_id, run_id, acting)
        if run.status == "ended":
            raise Over
        if not await self.turns.request_stop(run_id, conversation_id=chat.id, user_id=acting.user_id):
            raise Over
        message = "The interaction is being cancelled. What was said and done so far is kept."
        return _answer(shapes.Cancelling(interaction_id=run_id, message=message))

    async def compact(self, chat_id: str, acting: Acting, keyed: Keyed | None) -> Answer:
        """Summarise all but the newest messages now."""
        return await self._once(keyed, acting, partial(self._compact, chat_id, acting))

    async def _compact(self, chat_id: str, acting: Acting) -> Answer:
        chat = await self.starting.chat(chat_id, acting)
        messages = await self.summaries.compact(chat.id, acting.user_id)
        return _answer(shapes.Compacted(status="compacted" if messages else "nothing to compact", messages=messages))

    async def _once(self, keyed: Keyed | None, acting: Acting, act: Callable[[], Awaitable[Answer]]) -> Answer:
        return await once.answered(self.engine, keyed, act, user_id=acting.user_id)


def _answer(shape: shapes.Answer, status: int = 200) -> Answer:
    return Answer(status, shape.model_dump(mode="json"))


async def _render_events(events: AsyncIterator[Numbered], rendering: Rendering) -> AsyncIterator[bytes]:
    async for numbered in events:
        if (event := rendering.event(numbered.event)) is not None:
            yield format_event(json.dumps(event.data, ensure_ascii=False), event=event.name, id=numbered.seq)
