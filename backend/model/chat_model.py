"""The chat-completions model: one client per process, every item and every call with an id of its own."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from copy import copy
from typing import Any, Self, cast

from agents import ModelSettings, OpenAIChatCompletionsModel
from agents.items import TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai import AsyncOpenAI
from openai.types.responses.response import IncompleteDetails

from backend.model.client import FinishReason, ProviderClient, finish_reason
from backend.model.providers import ModelEndpoint
from backend.model.reader import Finish
from backend.model.telemetry import count_tokens, measure_request
from backend.model.tool_calls import is_object
from common.ids import new_id


class ChatModel(OpenAIChatCompletionsModel):
    """Gives each streamed item its own id; the SDK gives all items of chat completions the same one.

    Every run streams: `get_response` is not supported.
    """

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint
        self.client = ProviderClient(endpoint)
        super().__init__(endpoint.model, cast(AsyncOpenAI, self.client), lambda _: True)

    def settings(self, *, temperature: float, max_tokens: int) -> ModelSettings:
        return ModelSettings(temperature=temperature, max_tokens=max_tokens, include_usage=True)

    def with_model(self, model: str | None) -> Self:
        """A copy that uses another model of the endpoint; itself for None and for a model that is not offered."""
        if model in (None, self.model) or model not in self.endpoint.models:
            return self
        other = copy(self)
        other.model = model
        return other

    def messages(self, items: list[Any]) -> list[dict[str, Any]]:
        converted: Any = Converter.items_to_messages(
            items,
            model=self.model,
            base_url=str(self.client.base_url),
            should_replay_reasoning_content=self.should_replay_reasoning_content,
        )
        return self.endpoint.profile.messages(converted)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Yields the SDK's events with ids of their own, and measures the request.

        The completed event also says whether the response was cut off. Raises `ModelError`.
        """
        ids = _ItemIds()
        end = FinishReason()
        finish_reason.set(end)
        with measure_request(str(self.model)) as request:
            async with aclosing(cast(Any, super().stream_response(*args, **kwargs))) as events:
                async for event in events:
                    event = ids.assign(event)
                    if event.type == "response.completed":
                        request.is_complete = True
                        if (usage := event.response.usage) is not None:
                            count_tokens(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
                        event = _incomplete(event, end.value)
                    yield event

    async def complete(self, prompt: str, *, max_tokens: int) -> tuple[str, dict[str, int]]:
        """The response to one message without tools, and its usage; raises `ModelError`."""
        messages = [{"role": "user", "content": prompt}]
        body = {"model": self.endpoint.model, "messages": messages, "max_tokens": max_tokens}
        text, usage = "", None
        with measure_request(self.endpoint.model):
            async with aclosing(await self.client.request(body)) as response:
                async for piece in response:
                    text += piece.text
                    usage = piece.usage or usage
        if usage is None:
            return text, {"requests": 1}
        counts = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
        count_tokens(**counts)
        return text, {"requests": 1, **counts}


_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_ORDER = {"reasoning": 0, "message": 1, "function_call": 2}


def _incomplete(event: Any, finish: Finish | None) -> Any:
    """Adds to the completed event by which limit the response was cut off, as the Responses API says it."""
    reason = _INCOMPLETE.get(finish or "")
    if reason is None:
        return event
    output = [*event.response.output]
    last = output[-1] if output else None
    if finish == "length" and last and last.type == "function_call" and not is_object(last.arguments):
        output[-1] = last.model_copy(update={"status": "incomplete"})
    details = IncompleteDetails(reason=reason)  # pyright: ignore[reportArgumentType] - one of its two literals
    changes = {"incomplete_details": details, "output": output}
    return event.model_copy(update={"response": event.response.model_copy(update=changes)})


class _ItemIds:
    """Assigns ids to the items of one streamed response, which has at most one message and one reasoning item.

    Where reasoning follows text, the SDK (0.24) gives both index 0 and puts the message between the calls.
    """

    def __init__(self) -> None:
        self._response = new_id("resp")
        self._ids: dict[str | int, str] = {"message": new_id("msg"), "reasoning": new_id("rs")}

    def assign(self, event: Any) -> Any:
        """Gives an event the ids of this response in place of the SDK's one id for all. Sorts the completed output."""
        if event.type in ("response.created", "response.completed"):
            output = sorted(map(self._with_id, event.response.output), key=lambda item: _ORDER[item.type])
            response = event.response.model_copy(update={"id": self._response, "output": output})
            return event.model_copy(update={"response": response})
        if getattr(event, "item_id", None) == FAKE_RESPONSES_ID:
            # Not shared between events as items are; a copy takes 6 µs.
            event.item_id = self._ids.get(_kind_of(event), FAKE_RESPONSES_ID)
        elif (item := getattr(event, "item", None)) is not None:
            item = self._with_id(item)
            if item.type == "function_call":
                self._ids[event.output_index] = item.id
            return event.model_copy(update={"item": item})
        return event

    def _with_id(self, item: Any) -> Any:
        if item.id != FAKE_RESPONSES_ID:
            return item
        return item.model_copy(update={"id": self._ids.get(item.type) or f"fc_{item.call_id}"})


def _kind_of(event: Any) -> str | int:
    """The kind of the item that an event without its item belongs to, or the index of a call."""
    if event.type.startswith("response.function_call"):
        return event.output_index
    return "reasoning" if event.type.startswith("response.reasoning") else "message"
