"""The chat-completions model: one client per process, every item and every call with an id of its own."""

import time
from collections.abc import AsyncIterator
from typing import Any, cast

import openai
from agents import ModelResponse, OpenAIChatCompletionsModel
from agents.items import TResponseStreamEvent
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai import AsyncOpenAI, AsyncStream, DefaultAsyncHttpxClient, Omit, Timeout
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from backend.errors import AnswerCutOff
from backend.providers import Endpoint, Profile
from backend.tls import tls_context
from database import new_id

_UNSTORABLE = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


class ChatModel(OpenAIChatCompletionsModel):
    """The SDK gives every streamed item of chat completions the same placeholder id; this gives each its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.client = ProviderClient(endpoint)
        super().__init__(endpoint.model, cast(AsyncOpenAI, self.client), lambda _: True)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        ids = _ItemIds()
        events = super().stream_response(*args, **kwargs)
        try:
            async for event in events:
                yield ids.assign(event)
        finally:
            await events.aclose()  # pyright: ignore[reportAttributeAccessIssue] - an async generator

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        response = await super().get_response(*args, **kwargs)
        response.output = [_with_id(item, new_id(_PREFIXES.get(item.type, "item"))) for item in response.output]
        return response


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
        if (item := getattr(event, "item", None)) is not None:
            item_id = self._at(event.output_index, item.type)
            if item.type == "function_call" and item.call_id:
                self._by_call[item.call_id] = item_id
            return event.model_copy(update={"item": _with_id(item, item_id)})
        if getattr(event, "item_id", None) == FAKE_RESPONSES_ID:
            return event.model_copy(update={"item_id": self._at(event.output_index, "message")})
        return event

    def _at(self, index: int, kind: str) -> str:
        return self._by_index.setdefault(index, new_id(_PREFIXES.get(kind, "item")))

    def _final(self, index: int, item: Any) -> Any:
        known = self._by_call.get(getattr(item, "call_id", ""))
        return _with_id(item, known or self._at(index, item.type))


class ProviderClient:
    """What the SDK's model calls instead of `AsyncOpenAI`: it shapes requests and repairs streams per provider."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._profile: Profile = endpoint.profile
        self._model = endpoint.model
        self._openai = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            max_retries=0,
            timeout=Timeout(30, connect=5),
            http_client=DefaultAsyncHttpxClient(verify=tls_context()),
        )
        self.base_url = self._openai.base_url
        self.chat = self
        self.completions = self
        self.last_outcome: tuple[float, str] | None = None

    def with_options(self, **_: Any) -> "ProviderClient":
        return self

    async def create(self, **kwargs: Any) -> Any:
        body = {key: value for key, value in kwargs.items() if value is not None and not isinstance(value, Omit)}
        options = {key: body.pop(key) for key in ("extra_headers", "extra_query", "extra_body") if key in body}
        body = self._profile.shape(body)
        # Sent as they are: the client's own typed transform walks every message of the history.
        plain = {key: body.pop(key) for key in ("messages", "tools") if key in body}
        options["extra_body"] = {**options.get("extra_body", {}), **plain}
        try:
            answer = await self._openai.chat.completions.create(messages=[], **body, **options)
        except openai.APIError as error:
            self.last_outcome = (time.monotonic(), type(error).__name__)
            raise
        self.last_outcome = (time.monotonic(), "ok")
        return CheckedStream(answer) if isinstance(answer, AsyncStream) else answer

    async def report(self) -> dict[str, str]:
        """The model and how its last request went; when there was none for a minute, `/models` is asked."""
        if self.last_outcome is None or time.monotonic() - self.last_outcome[0] > 60:
            await self._list_models()
        assert self.last_outcome is not None
        return {"provider": self._profile.name, "name": self._model, "last": self.last_outcome[1]}

    async def _list_models(self) -> None:
        try:
            await self._openai.models.list(timeout=2)
        except openai.APIError as error:
            self.last_outcome = (time.monotonic(), type(error).__name__)
        else:
            self.last_outcome = (time.monotonic(), "ok")

    async def close(self) -> None:
        await self._openai.close()


class CheckedStream:
    """A chunk stream that must end with a finish reason, and whose tool calls have ids of our own.

    Providers leave call ids out, repeat them in one answer and reuse them in the next.
    """

    def __init__(self, stream: AsyncStream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self.response = stream.response
        self._calls: list[str | None] = []
        self._current: dict[int, int] = {}

    async def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        finished = False
        async for chunk in self._stream:
            for choice in chunk.choices or ():
                finished = finished or choice.finish_reason is not None
                if choice.delta is None:
                    continue
                choice.delta.content = storable(choice.delta.content) if choice.delta.content else None
                for call in choice.delta.tool_calls or ():
                    self._repair(call)
            yield chunk
        if not finished:
            raise AnswerCutOff

    async def close(self) -> None:
        await self._stream.close()

    def _repair(self, call: ChoiceDeltaToolCall) -> None:
        given = call.index if call.index is not None else len(self._current)
        position = self._current.get(given)
        starts_another = position is not None and call.id is not None and call.id != self._calls[position]
        if position is None or (starts_another and call.function is not None and call.function.name):
            position = len(self._calls)
            self._calls.append(call.id)
            self._current[given] = position
            call.id = new_id("call")
        else:
            call.id = None
        call.index = position
        if call.function is not None and call.function.arguments:
            call.function.arguments = storable(call.function.arguments)


def storable(text: str) -> str:
    """The text without what PostgreSQL cannot hold: NUL and lone surrogates."""
    return text.translate(_UNSTORABLE)
