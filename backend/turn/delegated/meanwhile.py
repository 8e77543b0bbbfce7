"""What the person says while an agent works: it reads that, and after its end the assistant does, whose inbox it is."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.context import hidden_context as hidden
from backend.conversation.items import Said
from backend.conversation.runs import inbox
from backend.turn.turn import Turn
from service.database import pipelined

_SAID = "The person writes meanwhile: {}"


class Meanwhile:
    """For one agent: each message has its place in all its requests, so that each stays the beginning of the next."""

    def __init__(self, engine: AsyncEngine, turn: Turn) -> None:
        self._engine = engine
        self._turn = turn
        self._heard: dict[str, tuple[int, Said]] = {}
        self.has_heard = False

    def begin_again(self) -> None:
        """The items are others from here on: what waits is heard again, behind them."""
        self._heard = {}

    async def with_heard(self, items: list[Any]) -> list[Any]:
        """The model's input, with what was said."""
        if self._turn.has_news:  # which it stays until the assistant has read it
            for said in await self._steers():
                self._heard.setdefault(said.id, (len(items), said))
        heard, done = list[Any](), 0
        for place, said in self._heard.values():
            heard += [*items[done:place], {"role": "user", "content": hidden.said(_SAID.format(said.text))}]
            done, self.has_heard = place, True
        return [*heard, *items[done:]]

    async def _steers(self) -> list[Said]:
        run = self._turn.run
        async with pipelined(self._engine, run.user_id) as pipeline:
            sent = await inbox.send_waiting(pipeline, run.conversation_id, user_id=run.user_id)
        return [one.said for one in await inbox.waiting(sent) if one.mode == "steer" and one.run_id == run.id]
