"""Sends requests to a provider as its profile says, and learns from its responses what the profile does not say."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
from openai import AsyncOpenAI, DefaultAioHttpClient, Omit, Timeout

from backend.model import responses_api
from backend.model.capabilities import context_size
from backend.model.capabilities.lookup import CapabilityLookup
from backend.model.capabilities.tool_call_modes import ToolCallModes
from backend.model.failures.errors import ModelError
from backend.model.markup.calls import Tools
from backend.model.providers import ModelEndpoint, ProviderProfile
from backend.model.requests import bodies
from backend.model.requests.attempts import Attempts
from backend.model.requests.replay import ITEMS, keep_replays
from backend.model.requests.turn_forms import TurnForm, TurnForms, render_turns
from backend.model.responses.frames import read_values
from backend.model.responses.limits import LoadingWait
from backend.model.responses.reader import Piece, ResponseReader
from backend.model.responses.stream import (
    FrameRemover,
    Pieces,
    WrittenCalls,
    ask_again_if_empty,
    read_actions,
    read_pieces,
)
from backend.model.tool_calls import parse_json
from backend.settings import ModelApi
from common.settings import is_loopback
from common.tls import get_tls_context

logger = logging.getLogger(__name__)

# A response that is not streamed is silent until its end; LIMIT_RUN_SECONDS ends the run before, unless it was raised.
_WHOLE_SECONDS = 600
# Cut requests: the share of the expected tokens below which a request was cut; and the least tokens, as no context is
# smaller and a server may count only what was not cached.
_CUT_SHARE, _MIN_TOKENS = 0.75, 1_000


OnUsage = Callable[[Mapping[str, int]], None]
"""Gets what a request has used when it ends: `requests` (1), `input_tokens`, `output_tokens`, `reasoning_tokens`."""


class ProviderClient:
    def __init__(self, endpoint: ModelEndpoint) -> None:
        self._profile: ProviderProfile = endpoint.profile
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self.modes = ToolCallModes(endpoint)
        self._http = DefaultAioHttpClient(
            event_hooks={"response": [endpoint.limits.limit_body]},
            verify=get_tls_context(),
            follow_redirects=False,  # what users write goes to the address that was set
            # and to no proxy on its way to this machine
            trust_env=not is_loopback(urlsplit(endpoint.base_url).hostname or ""),
        )
        self.capabilities = CapabilityLookup(endpoint, self._http, self.modes, self._use_address)
        self._begin_thinking: set[str] = set()  # models whose prompt has the tag that opens their reasoning
        self._turn_forms = TurnForms(
            endpoint.profile.turn_form,
            has_text_setting=endpoint.has_text_setting,
            has_replay_setting=endpoint.has_replay_setting,
        )
        self._responses_models: set[str] = set()  # whose server has named the Responses API in a rejection
        client = AsyncOpenAI if endpoint.profile.name == "openai" else _PlainClient
        self._openai = client(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or "none",
            max_retries=0,
            timeout=Timeout(None, connect=5),  # `_send` and `read_pieces` limit the rest
            http_client=self._http,
        )
        self.last_outcome: tuple[float, str] | None = None
        self.needed_settings: dict[str, str] = {}
        """Settings that spare the requests which this server rejected."""

    @property
    def base_url(self) -> httpx2.URL:
        return self._openai.base_url

    @property
    def shown_url(self) -> str:
        return replace(self._endpoint, base_url=str(self.base_url).rstrip("/")).shown_url

    def _origin_of(self, model: str) -> str:
        """Returns what tells one sender of replays from another."""
        return f"{self.shown_url} {model}"

    def _api_of(self, model: str) -> ModelApi:
        return "responses" if model in self._responses_models else self._profile.api_of(model)

    def _use_address(self, url: str) -> None:
        if str(self.base_url).rstrip("/") != url.rstrip("/"):
            logger.info("the model's server was found at %s", url)
            self._openai.base_url = url

    async def request(
        self,
        given: dict[str, Any],
        *,
        goal: str = "",
        history_tokens: int = 0,
        on_progress: Callable[[str], None] = lambda _: None,
        on_usage: OnUsage = lambda _: None,
    ) -> Pieces:
        """Sends a request in OpenAI's form as the provider accepts it. Reading the response raises `ModelError`.

        The `goal` is the message that is answered: where calls are text, an agent that is called without a task gets
        it. `history_tokens` are what comes before it. A server that loads its model is asked again as long as the first
        token may take; `on_progress` gets sentences for the user, and `on_usage` what each request has used.
        """
        model, began = given["model"], asyncio.get_running_loop().time()
        loading = LoadingWait(self._limits.first_token_seconds, on_progress, began)
        while True:
            await self.capabilities.look_up(model)
            has_begun, frames, written = False, FrameRemover(), self._watch_written_calls(given)
            try:
                response = self._request(given, goal, history_tokens, began, on_usage)
                async with aclosing(response) as pieces:
                    async for received in pieces:
                        written.read(received)
                        piece = frames.read(received)
                        has_begun = has_begun or bool(piece.text or piece.thought or piece.calls)
                        yield piece
                return
            except ModelError as error:
                self.capabilities.expire(model)
                if has_begun or not await self._can_repeat(error, given, loading):
                    raise

    async def _can_repeat(self, error: ModelError, given: dict[str, Any], loading: LoadingWait) -> bool:
        """Waits before it returns true."""
        if error.code == "model_loading":
            return await loading.wait()
        model = given["model"]
        if error.rejects_tools and given.get("tools") and self.modes.get(model) != "text":
            self.modes.use_text(model, "cannot call tools, as its server says")
            return self.modes.get(model) == "text"
        return False

    def _request(
        self, given: dict[str, Any], goal: str, history_tokens: int, began: float, on_usage: OnUsage
    ) -> Pieces:
        model, mode = given["model"], self.modes.get(given["model"])
        messages = keep_replays(given["messages"], self._origin_of(model))
        body = replace(self._profile, tool_calls=mode).shape({**given, "messages": messages}, self._api_of(model))
        parts = context_size.Parts(history_tokens, context_size.count_tokens(goal))
        tools = _list_tools(given)
        respond = partial(self._respond, tools=tools, parts=parts, on_usage=on_usage)
        response = respond(body, began=began)
        loses_calls = self._profile.loses_calls and "stream" in body and tools and mode != "text"
        response = ask_again_if_empty(response, body, respond, self._stop_streaming_calls if loses_calls else None)
        return read_actions(response, tools, body, respond, goal=goal) if mode == "text" else response

    def _watch_written_calls(self, given: dict[str, Any]) -> WrittenCalls:
        model = given["model"]
        tools = _list_tools(given) if self.modes.get(model) != "text" else {}
        return WrittenCalls(tools, partial(self.modes.record_missed_call, model, "written a call as text"))

    async def _respond(
        self,
        body: dict[str, Any],
        *,
        tools: Tools,
        parts: context_size.Parts,
        on_usage: OnUsage,
        began: float | None = None,
    ) -> Pieces:
        """The first token may take so long since `began`: since now, if the server was not waited for before."""
        first = self._limits.first_token_seconds
        seconds = first if "stream" in body else max(first, _WHOLE_SECONDS)
        deadline = (began or asyncio.get_running_loop().time()) + seconds
        begins_thinking = body["model"] in self._begin_thinking
        reader = ResponseReader(tools, body["messages"], begins_thinking=begins_thinking)
        with self._note_outcome(body), self._explain(body, parts), _count_usage(body, reader, on_usage):
            values = read_values(await self._post(body, seconds, deadline), self._limits)
            if self._api_of(body["model"]) == "responses":
                values = responses_api.read_events(values)
            async with aclosing(read_pieces(values, reader, self._limits, deadline)) as pieces:
                async for piece in pieces:
                    if piece.finish not in (None, "repeated"):
                        self._learn(body, reader, piece)
                    if piece.replay is not None:
                        piece.replay["origin"] = self._origin_of(body["model"])
                    yield piece

    async def _post(self, body: dict[str, Any], seconds: float, deadline: float) -> httpx2.Response:
        """Sends a request, again without what is rejected, or in another form or API."""
        attempts = Attempts(body, self._turn_forms)
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        response = await self._send(attempts.body, attempts.form)
                        break
                    except ModelError as error:
                        if not (self._use_responses(body["model"], error) or attempts.change(error)):
                            raise attempts.error from attempts.error.__cause__
        except TimeoutError:
            raise ModelError("model_silent", seconds=seconds) from None
        if rejected := attempts.rejected:
            omits = (*dict.fromkeys((*self._profile.omits, *rejected)),)
            self._adapt(f"refuses {', '.join(rejected)}", "LLM_OMIT", ",".join(omits), omits=omits)
        for setting, value in attempts.learn().items():
            self._adapt("rejects model turns in the usual form", setting, value)
        return response

    def _use_responses(self, model: str, error: ModelError) -> bool:
        """Whether this rejection is the first that names the Responses API, which its model gets from then on."""
        is_named = error.provider_status in (400, 404) and "/v1/responses" in error.words
        if not is_named or self._profile.api is not None or self._api_of(model) == "responses":
            return False
        self._responses_models.add(model)
        self._adapt(f"offers {model} in the Responses API alone", "LLM_API", "responses")
        return True

    def _stop_streaming_calls(self) -> None:
        self.modes.use_whole()
        self._adapt("loses calls that it streams", "LLM_TOOL_CALLS", "whole")

    def _adapt(self, reason: str, setting: str, value: str, **changes: Any) -> None:
        logger.warning("the model's server %s: set %s=%s", reason, setting, value)
        self._profile = replace(self._profile, **changes)
        self.needed_settings[setting] = value

    async def _send(self, body: dict[str, Any], form: TurnForm) -> httpx2.Response:
        path, body = "/chat/completions", {**body, "messages": render_turns(body["messages"], form)}
        if self._api_of(body["model"]) == "responses":
            path, body = "/responses", responses_api.create_request(body)
        else:
            body = bodies.remove_fields(body, "reasoning_summary", "encrypted_reasoning")
            body["messages"] = [bodies.remove_fields(message, ITEMS) for message in body["messages"]]
        # Not `chat.completions.create`, whose typed transform walks every message of the history.
        try:
            return await self._openai.post(
                path,
                body=body,
                cast_to=httpx2.Response,
                options={"security": {"bearer_auth": True}},
                stream=True,
            )
        except openai.APIError as error:
            raise _create_error(error) from error

    @contextmanager
    def _explain(self, body: dict[str, Any], parts: context_size.Parts) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            if error.code != "model_context_exceeded":
                raise
            context = self.capabilities.get(body["model"]).context_tokens
            cure = self._profile.context_cure
            raise context_size.explain_rejection(error, body, parts, context, cure) from error.__cause__

    def list_notes(self, model: str) -> list[str]:
        """Returns sentences for the operator about what a model cannot do."""
        notes, mode = [], self.modes.get(model)
        if reason := self.modes.get_text_reason(model):
            notes.append(f"The model {reason}. Its tool calls are read from its text; check what it has done.")
        context = self.capabilities.get(model).context_tokens
        if small := context_size.find_small_context(context, mode, self._profile.context_cure):
            notes.append(str(small))
        return notes

    def _learn(self, body: dict[str, Any], reader: ResponseReader, last: Piece) -> None:
        if reader.markup.lacks_opening:
            self._begin_thinking.add(body["model"])
        elif not reader.markup.has_closed:
            self._begin_thinking.discard(body["model"])
        if last.calls and "tools" in body:
            self.modes.record_call(body["model"])
        if last.usage and self._profile.cuts_silently:
            self._warn_of_cut(body, last.usage["input_tokens"])

    def _warn_of_cut(self, body: dict[str, Any], tokens: int) -> None:
        expected = context_size.count_request(body)
        if _MIN_TOKENS <= tokens < _CUT_SHARE * expected:
            self._profile = replace(self._profile, cuts_silently=False)
            logger.warning(
                "the model read %d tokens of a request of about %d: its context is too small, and the instructions are"
                " cut off first; for Ollama set OLLAMA_CONTEXT_LENGTH=16384 or more",
                tokens,
                expected,
            )

    async def report(self) -> dict[str, Any]:
        """The model, and the outcome of its last request, or of one to `/models` if that was over a minute ago."""
        await self.capabilities.look_up(self._endpoint.model)
        if self.last_outcome is None or time.monotonic() - self.last_outcome[0] > 60:
            with suppress(ModelError), self._note_outcome({}):
                await self._models(seconds=2)
        assert self.last_outcome is not None
        endpoint, last = self._endpoint, self.last_outcome[1]
        fixed = [model for model in endpoint.models if not self._profile.takes_temperature_of(model)]
        names = {"name": endpoint.model, "models": endpoint.models, "without_temperature": fixed}
        facts = {"tool_calls": self.modes.get(endpoint.model), "notes": self.list_notes(endpoint.model)}
        return {"provider": self._profile.name, **names, "last": last, **facts}

    async def model_names(self) -> list[str]:
        value = parse_json((await self._models(seconds=10)).text)
        entries = value.get("data") if isinstance(value, dict) else None
        if not isinstance(entries, list):
            raise ModelError("model_not_found")
        return [name for entry in entries if isinstance(entry, dict) and isinstance(name := entry.get("id"), str)]

    async def _models(self, *, seconds: float) -> Any:
        headers = {name: value.format(key=self._openai.api_key) for name, value in self._profile.lists_with}
        try:
            response = await self._openai.models.with_raw_response.list(timeout=seconds, extra_headers=headers)
        except openai.APIError as error:
            raise _create_error(error) from error
        if response.headers.get("content-type", "").startswith("text/html"):
            raise ModelError("model_not_found", words="a web page")
        return response.http_response

    @contextmanager
    def _note_outcome(self, body: Mapping[str, Any]) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            is_repeated = error.code == "model_loading" and self.last_outcome and self.last_outcome[1] == str(error)
            self.last_outcome = (time.monotonic(), str(error))
            if is_repeated:
                raise
            logger.warning(
                "model request failed: %s, model %s at %s, status %s, it says: %s",
                error.code,
                body.get("model", self._endpoint.model),
                self.shown_url,
                error.provider_status,
                error.words_for_log(body.get("messages", ()), self._endpoint.api_key) or "nothing",
            )
            raise
        self.last_outcome = (time.monotonic(), "ok")

    async def aclose(self) -> None:
        await self.capabilities.aclose()
        await self._openai.close()


@contextmanager
def _count_usage(body: dict[str, Any], reader: ResponseReader, on_usage: OnUsage) -> Iterator[None]:
    """Counts what a request has used, also one that is cancelled; nothing if it fails before the model has written."""
    has_failed = False
    try:
        yield
    except ModelError:
        has_failed = True
        raise
    finally:
        if reader.output_chars or reader.usage or not has_failed:
            on_usage(context_size.complete_usage(reader.usage, body, reader.output_chars))


class _PlainClient(AsyncOpenAI):
    """For other providers than OpenAI: sends nothing of the OPENAI_* variables that `AsyncOpenAI` reads."""

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}


def _list_tools(body: Mapping[str, Any]) -> Tools:
    functions = [tool["function"] for tool in body.get("tools", ())]
    return {function["name"]: function.get("parameters") for function in functions}


def _create_error(error: openai.APIError) -> ModelError:
    match error:
        case openai.APIStatusError():
            body = error.body if error.body is not None else error.response.text
            return ModelError.of_body(body, status=error.status_code, headers=error.response.headers)
        # The transport's error for each connection that could not be made, or was closed before a response.
        case openai.APITimeoutError(__cause__=httpx2.ConnectTimeout()):
            return ModelError("model_unreachable")
        case openai.APITimeoutError():
            return ModelError("model_timeout")
        case openai.APIConnectionError():
            return ModelError("model_unreachable")
        case _:
            return ModelError.of_body(error.body, status=None)
