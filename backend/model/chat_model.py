"""The model, by either API: shows a response piece by piece, and gives the SDK the whole one."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

from agents import (
    Model,
    ModelResponse,
    ModelRetrySettings,
    ModelSettings,
    RetryDecision,
    Tool,
    Usage,
)
from agents.items import TResponseOutputItem
from agents.models.chatcmpl_converter import Converter
from agents.retry import RetryPolicyContext
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary
from openai.types.responses.response_usage import OutputTokensDetails
from prometheus_client import Counter, Histogram

from backend.ids import new_id
from backend.model.client import OnUsage, ProviderClient
from backend.model.failures.errors import ModelError
from backend.model.providers import ModelEndpoint
from backend.model.requests.messages import create_messages
from backend.model.responses.reader import Piece
from backend.model.responses.stream import read_whole
from common.telemetry import metrics, traces

_SECONDS = Histogram(
    "todo_model_request_seconds",
    "A request to the model, to the end of its response",
    ["outcome"],
    buckets=metrics.SECONDS,
)
_TOKENS = Counter(
    "todo_model_tokens", "Tokens of requests to the model, as its provider counts them, else estimated", ["direction"]
)
_MAX_RETRIES = 2
_MAX_WAIT_SECONDS = 20.0


class ChatModel(Model):
    """One client per process. The SDK gets each response whole; who reads the pieces of a run need not wait for it."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint
        self.client = ProviderClient(endpoint)
        self.name = endpoint.model
        self._on_piece: Callable[[Piece], None] | None = None
        self._goal, self._history_tokens = "", 0
        self._on_progress: Callable[[str], None] = lambda _: None
        self._on_usage: OnUsage = lambda _: None

    def for_run(
        self,
        name: str | None,
        on_piece: Callable[[Piece], None],
        *,
        goal: str,
        history_tokens: int = 0,
        on_progress: Callable[[str], None] = lambda _: None,
        on_usage: OnUsage = lambda _: None,
    ) -> Self:
        """A copy that shows pieces to `on_piece`, and uses the model of this name, if the endpoint offers it.

        The `goal` is the message that the run answers, after `history_tokens`; `on_progress` gets sentences while the
        server loads its model, and `on_usage` what each request has used.
        """
        model = copy(self)
        model._on_piece, model._on_progress, model._on_usage = on_piece, on_progress, on_usage
        model._goal, model._history_tokens = goal, history_tokens
        if name in self.endpoint.models:
            model.name = name
        return model

    def record_missed_call(self, fault: str) -> None:
        """Notes an answer in which the model should have called a tool; the second makes it write calls as text.

        The `fault` completes the sentence "The model has … 2 times".
        """
        self.client.modes.record_missed_call(self.name, fault)

    def retry_settings(self, show_progress: Callable[[str], None]) -> ModelRetrySettings:

        def decide(context: RetryPolicyContext) -> RetryDecision:
            error, delay = context.error, context.normalized.retry_after
            if not isinstance(error, ModelError) or not error.is_passing:
                return RetryDecision(retry=False)
            if error.wait_seconds is not None:
                delay = error.wait_seconds
            if delay is None:
                spread = random.uniform(0.75, 1.25)  # noqa: S311 - runs that failed together do not retry together
                delay = self.endpoint.retry_seconds * 2 ** (context.attempt - 1) * spread
            if delay > _MAX_WAIT_SECONDS:
                return RetryDecision(retry=False)
            reason = "busy" if error.code == "model_busy" else "not answering"
            metrics.RETRIES.labels("model").inc()
            show_progress(f"The model is {reason}, trying again…")
            return RetryDecision(retry=True, delay=delay)

        return ModelRetrySettings(max_retries=_MAX_RETRIES, policy=decide)

    def messages(self, items: list[Any]) -> list[dict[str, Any]]:
        return self.endpoint.profile.messages(create_messages(items))

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Tool],
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Raises `ModelError`."""
        assert isinstance(input, list)
        body = self._create_body(system_instructions, input, model_settings, tools)
        return _respond(await self._request(body, self._on_usage))

    def _create_body(
        self, instructions: str | None, items: list[Any], settings: ModelSettings, tools: list[Tool]
    ) -> dict[str, Any]:
        system = [{"content": instructions, "role": "system"}] if instructions else []
        body = {
            "model": self.name,
            "messages": [*system, *create_messages(items)],
            "tools": [Converter.tool_to_openai(tool) for tool in tools] or None,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "tool_choice": settings.tool_choice,
            "stream": True,
            "stream_options": {"include_usage": True},
            "store": False if self.endpoint.profile.name == "openai" else None,
        }
        return {name: value for name, value in body.items() if value is not None}

    async def _request(self, body: dict[str, Any], on_usage: OnUsage) -> Piece:
        """Returns the whole response. An error after a piece was shown is not to be tried again."""
        has_shown = False

        def show(piece: Piece) -> None:
            nonlocal has_shown
            has_shown = has_shown or bool(piece.text or piece.thought)
            if self._on_piece is not None:
                self._on_piece(piece)

        def count(usage: Mapping[str, int]) -> None:
            _TOKENS.labels("input").inc(usage["input_tokens"])
            _TOKENS.labels("output").inc(usage["output_tokens"])
            on_usage(usage)

        with _measure_request(body["model"]):
            try:
                response = self.client.request(
                    body,
                    goal=self._goal,
                    history_tokens=self._history_tokens,
                    on_progress=self._on_progress,
                    on_usage=count,
                )
                return await read_whole(response, show)
            except ModelError as error:
                error.is_passing = error.is_passing and not has_shown
                raise

    async def complete(self, prompt: str, *, max_tokens: int, on_usage: OnUsage) -> str:
        messages = [{"role": "user", "content": prompt}]
        whole = await self._request({"model": self.name, "messages": messages, "max_tokens": max_tokens}, on_usage)
        if whole.finish == "repeated":
            raise ModelError("model_unusable_answer")
        return whole.text


def _respond(whole: Piece) -> ModelResponse:
    """Gives each item an id of its own; the SDK gives all items of chat completions the same one."""
    output: list[TResponseOutputItem] = []
    if whole.thought:
        summary = [Summary(text=whole.thought, type="summary_text")]
        output.append(ResponseReasoningItem(id=new_id("rs"), summary=summary, type="reasoning"))
    if whole.text:
        content = [ResponseOutputText(text=whole.text, annotations=[], type="output_text")]
        output.append(
            ResponseOutputMessage(
                id=new_id("msg"), content=[*content], role="assistant", status="completed", type="message"
            )
        )
    output += [
        ResponseFunctionToolCall(
            id=f"fc_{call.id}", call_id=call.id, name=call.name, arguments=call.arguments, type="function_call"
        )
        for call in whole.calls
    ]
    usage = Usage(
        requests=1,
        input_tokens=whole.usage["input_tokens"],
        output_tokens=whole.usage["output_tokens"],
        output_tokens_details=OutputTokensDetails(reasoning_tokens=whole.usage["reasoning_tokens"]),
    )
    return ModelResponse(output=output, usage=usage, response_id=None)


@contextmanager
def _measure_request(model: str) -> Iterator[None]:
    began, outcome = time.perf_counter(), "ok"
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    span = traces.start_span(f"chat {model}", attributes, kind="CLIENT")
    try:
        yield
    except ModelError as error:
        outcome = error.failure.outcome
        raise
    except BaseException as error:
        outcome = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
        raise
    finally:
        _SECONDS.labels(outcome).observe(time.perf_counter() - began)
        if span is not None:
            span.set_attribute("todo.outcome", outcome)
            span.end()
