"""What the model says, as it says it.

The agent's model is overheard, so that whatever it said is known before any hook of the SDK's runs. ChatKit's own
`stream_agent_response` reads the SDK's events instead: it drops text on errors, leaves the run going after a cancel and
hides the reasoning of chat-completions providers.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from agents import Model, ModelResponse
from agents.items import TResponseStreamEvent
from openai.types.responses import Response, ResponseOutputMessage, ResponseOutputText

from backend.conversation.items import Item, Json, Message, Thought
from backend.turn.log import Begun, Done, Event, Grown, Notice, PartBegun, PartDone, Removed
from service.database import new_id

CUT_SHORT: dict[str | None, str] = {
    "max_output_tokens": "The answer ends here because it reached the model's output limit.",
    "content_filter": "The answer ends here because the model's provider blocked the rest.",
}


class Overheard(Model):
    """A model whose streamed events are heard before whoever asked for them gets them."""

    def __init__(self, model: Model, hear: Callable[[TResponseStreamEvent], None]) -> None:
        self._model = model
        self._hear = hear

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        events: Any = self._model.stream_response(*args, **kwargs)
        async with aclosing(events):
            async for event in events:
                self._hear(event)
                yield event

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self._model.get_response(*args, **kwargs)

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)


class Speech:
    """The messages and thoughts of a turn: each one object that grows, and is stored with the step it belongs to."""

    def __init__(self, say: Callable[[Event], None]) -> None:
        self._say = say
        self._message: Message | None = None
        self._thought: Thought | None = None
        self._thinking_since = 0.0
        self._thoughts: set[str] = set()
        self._unstored: list[Item] = []  # what is complete
        self._over = False
        self.text = ""

    def hear(self, event: TResponseStreamEvent) -> None:
        if self._over:
            return
        match event.type:
            case "response.output_item.added" if event.item.type == "message":
                self._end_thought()
                self._message = Message(id=event.item.id or new_id("msg"))
                self._say(Begun(self._message))
            case "response.content_part.added" if self._message:
                self._message.parts.append("")
                self._say(PartBegun(self._message.id, event.content_index))
            case "response.output_text.delta" | "response.refusal.delta" if self._message:
                self._message.parts[event.content_index] += event.delta
                self._say(Grown(self._message.id, event.content_index, event.delta))
            case "response.content_part.done" if event.part.type in ("output_text", "refusal"):
                self._say(PartDone(event.item_id, event.content_index, _text(event.part)))
            case "response.output_item.done" if isinstance(event.item, ResponseOutputMessage):
                self._end_message(event.item)
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self._think(event.item_id, event.delta)
            case "response.output_item.done" if event.item.type == "reasoning":
                self._end_thought()
            case "response.completed":
                self._end_step(event.response)
            case _:
                pass

    @property
    def unstored(self) -> list[Item]:
        """What is complete and not stored yet: whoever stores it calls `stored`."""
        return [*self._unstored]

    def took(self, usage: Json) -> None:
        """What the request took whose last words are not stored yet."""
        said = [item for item in self._unstored if isinstance(item, Message)]
        for message in said[-1:]:
            message.usage = usage

    def stored(self, items: Sequence[Item]) -> None:
        """Tell that messages are done; of a thought that was told when it ended."""
        if self._over:
            return
        for item in items:
            self._unstored.remove(item)
            if not isinstance(item, Thought):
                self._say(Done(item))

    def stop(self) -> list[Item]:
        """Hear nothing more; returns what is not stored yet and worth keeping, as far as it was said."""
        self._over = True
        said = [self._message] if self._message and _is_said(self._message) else []
        return [*self._unstored, *([self._thought] if self._thought else []), *said]

    def close(self, left: Sequence[Item]) -> None:
        """Tell the end of what `stop` left: each item stays with what was said of it, unless that is nothing."""
        for item in left:
            if isinstance(item, Message) or item is self._thought:
                self._say(Done(item))
        if self._message and not _is_said(self._message):
            self._say(Removed(self._message.id))

    def _end_message(self, said: ResponseOutputMessage) -> None:
        if self._message is None:
            return
        message, self._message = self._message, None
        message.parts = [_text(part) for part in said.content]
        self.text += f"{message.text}\n"
        self._unstored.append(message)

    def _end_step(self, response: Response) -> None:
        self._end_thought()
        goes_on = any(item.type == "function_call" for item in response.output)
        if response.incomplete_details is not None and not goes_on:
            self._say(Notice(CUT_SHORT[response.incomplete_details.reason]))

    def _think(self, item_id: str, delta: str) -> None:
        if self._thought is None:
            # The SDK has one reasoning item per answer, even when text comes between two thoughts.
            self._thought = Thought(id=item_id if item_id not in self._thoughts else new_id("rs"))
            self._thoughts.add(self._thought.id)
            self._thinking_since = time.monotonic()
            self._say(Begun(self._thought))
        self._thought.text += delta
        self._say(Grown(self._thought.id, 0, delta))

    def _end_thought(self) -> None:
        if self._thought is None:
            return
        thought, self._thought = self._thought, None
        thought.seconds = max(1, round(time.monotonic() - self._thinking_since))
        self._unstored.append(thought)
        self._say(Done(thought))


def _text(part: Any) -> str:
    return part.text if isinstance(part, ResponseOutputText) else part.refusal


def _is_said(message: Message) -> bool:
    return any(text.strip() for text in message.parts)
