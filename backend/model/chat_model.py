"""The chat-completions model: one client per process, every item and every call with an id of its own."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from copy import copy
from functools import partial
from typing import Any, Self, cast

from agents import ModelRetrySettings, ModelSettings, OpenAIChatCompletionsModel, RetryDecision
from agents.items import TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.retry import RetryPolicyContext
from openai import AsyncOpenAI
from openai.types.responses.response import IncompleteDetails
from prometheus_client import Counter, Histogram

from backend.model.client import FinishReason, ProviderClient, finish_reason
from backend.model.errors import ModelError
from backend.model.providers import ModelEndpoint
from backend.model.reader import Finish
from backend.model.tool_calls import is_object
from common.ids import new_id
from common.telemetry import metrics, traces

_SECONDS = Histogram(
    "todo_model_request_seconds",
    "A request to the model, to the end of its answer",
    ["outcome"],
    buckets=metrics.SECONDS,
)
_TOKENS = Counter("todo_model_tokens", "Tokens of requests to the model, as its provider counts them", ["direction"])
_MAX_RETRIES = 2
_LONGEST_WAIT = 20.0


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
        """Yields the SDK's events with ids of their own; the completed one also says whether the response was cut off.

        Raises `ModelError`.
        """
        ids, end, completed = _ItemIds(), FinishReason(), None
        finish_reason.set(end)
        async with aclosing(cast(Any, super().stream_response(*args, **kwargs))) as events:
            with _measure_request(str(self.model)):
                async for event in events:
                    event = ids.assign(event)
                    if event.type == "response.completed":
                        completed = event
                        break
                    yield event
            if completed is not None:
                if (usage := completed.response.usage) is not None:
                    _count_tokens(usage.input_tokens, usage.output_tokens)
                yield _incomplete(completed, end.value)

    async def complete(self, prompt: str, *, max_tokens: int) -> tuple[str, dict[str, int]]:
        messages = [{"role": "user", "content": prompt}]
        body = {"model": self.endpoint.model, "messages": messages, "max_tokens": max_tokens}
        text, usage = "", None
        with _measure_request(self.endpoint.model):
            async with aclosing(await self.client.request(body)) as response:
                async for piece in response:
                    text += piece.text
                    usage = piece.usage or usage
        if usage is None:
            return text, {"requests": 1}
        counts = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
        _count_tokens(usage.prompt_tokens, usage.completion_tokens)
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


@contextmanager
def _measure_request(model: str) -> Iterator[None]:
    began, outcome = time.perf_counter(), "ok"
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    span = traces.start_span(f"chat {model}", attributes, kind="CLIENT")
    try:
        yield
    except BaseException as error:
        outcome = _outcome_of(error)
        raise
    finally:
        _SECONDS.labels(outcome).observe(time.perf_counter() - began)
        if span is not None:
            span.set_attribute("todo.outcome", outcome)
            span.end()


def _count_tokens(input_tokens: int, output_tokens: int) -> None:
    _TOKENS.labels("input").inc(input_tokens)
    _TOKENS.labels("output").inc(output_tokens)


def _outcome_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "cancelled"
    return error.failure.outcome if isinstance(error, ModelError) else "failed"


def retry_settings(first_pause: float, *, show_progress: Callable[[str], None]) -> ModelRetrySettings:
    """Retries with a pause of so many seconds that doubles each time; `show_progress` gets a sentence about each."""
    return ModelRetrySettings(max_retries=_MAX_RETRIES, policy=partial(_decide, first_pause, show_progress))


def _decide(first_pause: float, show_progress: Callable[[str], None], context: RetryPolicyContext) -> RetryDecision:
    error = context.error
    if not isinstance(error, ModelError) or not error.failure.is_passing:
        return RetryDecision(retry=False)
    retry_after = context.normalized.retry_after
    spread = random.uniform(0.75, 1.25)  # noqa: S311 - so that runs which failed together do not retry together
    delay = first_pause * 2 ** (context.attempt - 1) * spread if retry_after is None else retry_after
    if delay > _LONGEST_WAIT:
        return RetryDecision(retry=False)
    reason = "busy" if error.code == "model_busy" else "not answering"
    metrics.RETRIES.labels("model").inc()
    show_progress(f"The model is {reason}, trying again…")
    return RetryDecision(retry=True, delay=delay)
