"""The chat-completions model: one client per process, every item and every call with an id of its own."""

from collections.abc import AsyncIterator
from copy import copy
from typing import Any, Self, cast

from agents import ModelResponse, ModelSettings, OpenAIChatCompletionsModel
from agents.items import TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID
from httpx2 import AsyncBaseTransport
from openai import AsyncOpenAI
from openai.types.responses.response import IncompleteDetails

from backend.model import reports
from backend.model.client import ProviderClient, ending
from backend.model.providers import Endpoint
from backend.model.repairs import End, storable
from backend.model.retries import retries
from service.database import new_id


class ChatModel(OpenAIChatCompletionsModel):
    """The SDK gives every streamed item of chat completions the same placeholder id; this gives each its own."""

    def __init__(self, endpoint: Endpoint, *, transport: AsyncBaseTransport | None = None) -> None:
        self.endpoint = endpoint
        self.client = ProviderClient(endpoint, transport)
        super().__init__(endpoint.model, cast(AsyncOpenAI, self.client), lambda _: True)

    def settings(self, *, temperature: float, max_tokens: int) -> ModelSettings:
        """What goes with each request of an agent."""
        retry = retries(self.endpoint.retry_seconds)
        return ModelSettings(temperature=temperature, max_tokens=max_tokens, include_usage=True, retry=retry)

    def named(self, model: str | None) -> Self:
        """The same that asks another of the models that may be asked; itself for one that may not, or for none."""
        if model in (None, self.model) or model not in self.endpoint.models:
            return self
        other = copy(self)
        other.model = model
        return other

    def messages(self, items: list[Any]) -> list[dict[str, Any]]:
        """The messages in which these items of an agent's input are sent."""
        converted: Any = Converter.items_to_messages(
            items,
            model=self.model,
            base_url=str(self.client.base_url),
            should_replay_reasoning_content=self.should_replay_reasoning_content,
        )
        return self.endpoint.profile.shape({"messages": converted})["messages"]

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        ids = _ItemIds()
        end = End()
        ending.set(end)
        events = super().stream_response(*args, **kwargs)
        with reports.request(str(self.model)) as request:
            try:
                async for event in events:
                    event = ids.assign(event)
                    if event.type == "response.completed":
                        request.answered = True
                        event = _incomplete(event, end)
                    yield event
            finally:
                await events.aclose()  # pyright: ignore[reportAttributeAccessIssue] - an async generator

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        response = await super().get_response(*args, **kwargs)
        response.output = [_with_id(item, new_id(_PREFIXES.get(item.type, "item"))) for item in response.output]
        return response

    async def complete(self, request: str, *, max_tokens: int) -> tuple[str, dict[str, int]]:
        """One answer to one message, without tools, and what it used; raises openai's errors and `NotAnEndpoint`."""
        with reports.request(self.endpoint.model):
            answer = await self.client.create(
                model=self.endpoint.model,
                messages=[{"role": "user", "content": request}],
                max_tokens=max_tokens,
            )
        used = answer.usage
        counted = {"input_tokens": used.prompt_tokens, "output_tokens": used.completion_tokens} if used else {}
        return storable(answer.choices[0].message.content or ""), {"requests": 1, **counted}


_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _incomplete(event: Any, end: End) -> Any:
    """The completed event, with the Responses API's word for an answer that was cut short."""
    reason = _INCOMPLETE.get(end.reason or "")
    if reason is None:
        return event
    details = IncompleteDetails(reason=reason)  # pyright: ignore[reportArgumentType] - one of its two literals
    return event.model_copy(update={"response": event.response.model_copy(update={"incomplete_details": details})})


_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


def _with_id(item: Any, item_id: str) -> Any:
    # A copy: the SDK shares one object between its events.
    return item.model_copy(update={"id": item_id}) if item.id == FAKE_RESPONSES_ID else item


class _ItemIds:
    """Ids for the items of one streamed response; a function call keeps its own wherever it appears."""

    def __init__(self) -> None:
        self._by_index: dict[int, str] = {}
        self._by_call: dict[str, str] = {}
        self._response = new_id("resp")

    def assign(self, event: Any) -> Any:
        if event.type in ("response.created", "response.completed"):
            output = [self._final(index, item) for index, item in enumerate(event.response.output)]
            response = event.response.model_copy(update={"id": self._response, "output": output})
            return event.model_copy(update={"response": response})
        if getattr(event, "item_id", None) == FAKE_RESPONSES_ID:
            event.item_id = self._at(event.output_index, "message")  # the event is nobody else's; a copy takes 6 µs
        elif (item := getattr(event, "item", None)) is not None:
            item_id = self._at(event.output_index, item.type)
            if item.type == "function_call" and item.call_id:
                self._by_call[item.call_id] = item_id
            return event.model_copy(update={"item": _with_id(item, item_id)})
        return event

    def _at(self, index: int, kind: str) -> str:
        if (known := self._by_index.get(index)) is None:
            known = self._by_index[index] = new_id(_PREFIXES.get(kind, "item"))
        return known

    def _final(self, index: int, item: Any) -> Any:
        known = self._by_call.get(getattr(item, "call_id", ""))
        return _with_id(item, known or self._at(index, item.type))
