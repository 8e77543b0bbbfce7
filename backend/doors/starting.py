"""How every door but ChatKit's own requests begins a turn: with a text, in a chat by its id or by a name."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from chatkit.types import InferenceOptions, UserMessageInput, UserMessageTextContent
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation import chats, rows
from backend.conversation.acting import Acting
from backend.conversation.chats import Chat
from backend.conversation.items import Said
from backend.conversation.runs.kept import Keyed
from backend.doors.chatkit import checks
from backend.errors import NotFound
from backend.turn.answers import Answers
from backend.turn.turn import Turn
from backend.turn.turns import Turns


@dataclass(frozen=True)
class Starting:
    engine: AsyncEngine
    turns: Turns
    answers: Answers
    message_chars: int

    async def chat(self, chat_id: str, acting: Acting) -> Chat:
        """The person's chat of this id or name; raises `NotFound`."""
        chats.check(chat_id)
        chat = await chats.find(self.engine, chat_id, user_id=acting.user_id)
        if chat is None:
            raise NotFound
        return chat

    def said(self, text: str) -> Said:
        """A message of the person; raises what `checks.check_message` raises."""
        content = [UserMessageTextContent(text=text)]
        message = UserMessageInput(content=[*content], attachments=[], inference_options=InferenceOptions())
        checks.check_message(message, self.message_chars)
        return rows.said(message)

    def start(
        self,
        acting: Acting,
        said: Said | None,
        keyed: Keyed | None = None,
        *,
        detached: bool = True,
        followed: bool = False,
    ) -> Callable[..., Awaitable[Turn]]:
        """`Turns.start`, but for where it begins."""
        return partial(
            self.turns.start,
            self.answers.answer,
            user_id=acting.user_id,
            said=said,
            time_zone=acting.time_zone,
            detached=detached,
            followed=followed,
            keyed=keyed,
        )

    async def begin(self, chat_id: str | None, acting: Acting, start: Callable[..., Awaitable[Turn]]) -> Turn:
        """Say it there, where `chats.check` lets it; a name that is new makes a chat, and so does None."""
        if chat_id is None:
            return await start(conversation_id=None)
        found = await chats.find(self.engine, chat_id, user_id=acting.user_id)
        if found is None:
            if chats.is_ours(chat_id):
                raise NotFound
            try:
                return await start(conversation_id=None, name=chat_id)
            except IntegrityError as error:
                if not chats.name_is_taken(error):
                    raise
            found = await self.chat(chat_id, acting)  # made by another request meanwhile
        return await start(conversation_id=found.id)
