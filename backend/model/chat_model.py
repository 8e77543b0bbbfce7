"""The chat-completions model: one client per process, every item and every call with an id of its own."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, cast

import openai
from agents import ModelResponse, ModelSettings, OpenAIChatCompletionsModel
from agents.items import TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID
from httpx2 import AsyncBaseTransport
from openai import AsyncOpenAI, AsyncStream, DefaultAsyncHttpxClient, Omit, RequestOptions, Timeout
from openai.types.chat import ChatCompletion
from openai.types.responses.response import IncompleteDetails
from openai.types.shared import Reasoning
from pydantic import BaseModel

from backend.model import reports
from backend.model.errors import NotAnEndpoint, describe
from backend.model.providers import Endpoint, Profile
from backend.model.repairs import CheckedStream, Chunk, Chunks, End, storable
from backend.model.retries import retries
from backend.model.streams import CallsInText, Whole
from backend.model.text_calls import asked_again
from service.database import new_id
from service.tls import tls_context


class ChatModel(OpenAIChatCompletionsModel):
    """The SDK gives every streamed item of chat completions the same placeholder id; this gives each its own."""

    def __init__(self, endpoint: Endpoint, *, transport: AsyncBaseTransport | None = None) -> None:
        self.endpoint = endpoint
        self.client = ProviderClient(endpoint, transport)
        super().__init__(endpoint.model, cast(AsyncOpenAI, self.client), lambda _: True)

    def settings(self, *, temperature: float, max_tokens: int) -> ModelSettings:
        """What goes with each request of an agent."""
        effort: Any = self.endpoint.reasoning_effort
        reasoning = Reasoning(effort=effort) if effort else None
        retry = retries(self.endpoint.retry_seconds)
        return ModelSettings(
            temperature=temperature, max_tokens=max_tokens, include_usage=True, reasoning=reasoning, retry=retry
        )

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
        _end.set(end)
        events = super().stream_response(*args, **kwargs)
        with reports.request(self.endpoint.model) as request:
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
                reasoning_effort=self.endpoint.reasoning_effort,
            )
        used = answer.usage
        counted = {"input_tokens": used.prompt_tokens, "output_tokens": used.completion_tokens} if used else {}
        return storable(answer.choices[0].message.content or ""), {"requests": 1, **counted}


# The SDK calls `create` itself and every turn shares one client: only the context tells whose answer it is.
_end: ContextVar[End] = ContextVar("end")
# An answer that is not streamed is silent until its end; LIMIT_TURN_SECONDS ends the turn before, unless it was raised.
_WHOLE = Timeout(600, connect=5)
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

    def __init__(self, endpoint: Endpoint, transport: AsyncBaseTransport | None = None) -> None:
        self._profile: Profile = endpoint.profile
        self._model = endpoint.model
        client = AsyncOpenAI if endpoint.profile.name == "openai" else _PlainClient
        self._openai = client(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            max_retries=0,
            timeout=Timeout(30, connect=5),
            http_client=DefaultAsyncHttpxClient(verify=tls_context(), transport=transport),
        )
        self.base_url = self._openai.base_url
        self.chat = self
        self.completions = self
        self.last_outcome: tuple[float, str] | None = None

    def with_options(self, **_: Any) -> "ProviderClient":
        return self

    async def create(
        self,
        *,
        extra_headers: Mapping[str, str | Omit] | None = None,
        extra_query: Mapping[str, object] | None = None,
        extra_body: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> Any:
        given = {key: value for key, value in kwargs.items() if value is not None and not isinstance(value, Omit)}
        body = {**self._profile.shape(given), **(extra_body or {})}
        options: RequestOptions = {"security": {"bearer_auth": True}}
        if extra_headers is not None:
            options["headers"] = extra_headers
        if extra_query is not None:
            options["params"] = extra_query
        if given.get("stream") and "stream" not in body:
            options["timeout"] = _WHOLE
        answer = await self._post(body, options)
        if not given.get("stream"):
            return answer
        chunks = _chunks(answer)
        if self._profile.tool_calls == "text" and "tools" in given:

            async def again(text: str, reason: str) -> Chunks:
                return _chunks(await self._post(asked_again(body, text, reason), options))

            chunks = CallsInText(chunks, {tool["function"]["name"] for tool in given["tools"]}, again)
        return CheckedStream(chunks, _end.get(End()))

    async def _post(self, body: dict[str, Any], options: RequestOptions) -> ChatCompletion | AsyncStream[Chunk]:
        with self._outcome():
            # Not `chat.completions.create`, whose typed transform walks every message of the history.
            answer = await self._openai.post(
                "/chat/completions",
                body=body,
                cast_to=ChatCompletion,
                options=options,
                stream=body.get("stream", False),
                stream_cls=AsyncStream[Chunk],
            )
            if not isinstance(answer, AsyncStream):
                if not isinstance(answer, BaseModel):
                    raise NotAnEndpoint
                return answer
            if _is_web_page(answer.response.headers):
                await answer.close()
                raise NotAnEndpoint
            return answer

    async def report(self) -> dict[str, str]:
        """The model and how its last request went; when there was none for a minute, `/models` is asked."""
        if self.last_outcome is None or time.monotonic() - self.last_outcome[0] > 60:
            await self._list_models()
        assert self.last_outcome is not None
        return {"provider": self._profile.name, "name": self._model, "last": self.last_outcome[1]}

    async def _list_models(self) -> None:
        with suppress(openai.APIError, NotAnEndpoint), self._outcome():
            answer = await self._openai.models.with_raw_response.list(timeout=2)
            if _is_web_page(answer.headers):
                raise NotAnEndpoint

    @contextmanager
    def _outcome(self) -> Iterator[None]:
        try:
            yield
        except (openai.APIError, NotAnEndpoint) as error:
            self.last_outcome = (time.monotonic(), describe(error)[0])
            raise
        self.last_outcome = (time.monotonic(), "ok")

    async def close(self) -> None:
        await self._openai.close()


def _chunks(answer: ChatCompletion | AsyncStream[Chunk]) -> Chunks:
    return answer if isinstance(answer, AsyncStream) else Whole(answer)


class _PlainClient(AsyncOpenAI):
    """For everyone but OpenAI: sends nothing of the OPENAI_* variables that `AsyncOpenAI` reads by itself."""

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}


def _is_web_page(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").startswith("text/html")
