"""What is sent to a provider and how it comes back: requests are shaped and streams repaired as its profile says."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import openai
from httpx2 import AsyncBaseTransport, Request, Response
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient, Omit, RequestOptions, Timeout
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from backend.model.cuts import CutRequests
from backend.model.errors import NotAnEndpoint, describe
from backend.model.providers import Endpoint, Profile, not_streamed
from backend.model.repairs import CheckedStream, Chunk, Chunks, End
from backend.model.streams import CallsInText, LostCalls, Whole
from backend.model.text_calls import asked_again
from service.tls import tls_context

logger = logging.getLogger(__name__)

# The SDK calls `create` itself and every turn shares one client: only the context tells whose answer it is.
ending: ContextVar[End] = ContextVar("end")
# An answer that is not streamed is silent until its end; LIMIT_TURN_SECONDS ends the turn before, unless it was raised.
_WHOLE = Timeout(600, connect=5)


class ProviderClient:
    """What the SDK's model calls instead of `AsyncOpenAI`: it shapes requests and repairs streams per provider."""

    def __init__(self, endpoint: Endpoint, transport: AsyncBaseTransport | None = None) -> None:
        self._profile: Profile = endpoint.profile
        self._asked = endpoint.models
        self._cut = CutRequests(endpoint.profile)
        client = AsyncOpenAI if endpoint.profile.name == "openai" else _PlainClient
        self._openai = client(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            max_retries=0,
            timeout=Timeout(30, connect=5),
            http_client=DefaultAioHttpClient(
                verify=tls_context(),
                transport=transport,
                follow_redirects=False,  # what people write goes to the address that was set
                trust_env=not _is_here(endpoint.base_url),  # and to no proxy on its way to this machine
            ),
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
        if effort := self._profile.effort_of(given["model"]):
            given["reasoning_effort"] = effort
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
        elif self._profile.loses_calls and isinstance(answer, AsyncStream) and "tools" in given:

            async def whole() -> Chunks:
                return _chunks(await self._post(not_streamed(body), {**options, "timeout": _WHOLE}))

            chunks = LostCalls(chunks, whole, self._expect_whole_answers)
        return CheckedStream(self._cut.watched(chunks, body), ending.get(End()))

    def _expect_whole_answers(self) -> None:
        """From now on no request with tools asks for a stream."""
        logger.warning("the model's server loses calls that it streams: as with LLM_TOOL_CALLS=whole from now on")
        self._profile = replace(self._profile, tool_calls="whole")

    async def _post(self, body: dict[str, Any], options: RequestOptions) -> ChatCompletion | AsyncStream[Chunk]:
        with self._outcome():
            # Not `chat.completions.create`, whose typed transform walks every message of the history.
            answer = await self._openai.post(
                "/chat/completions",
                body=body,
                cast_to=ChatCompletion,
                options=options,
                stream=body.get("stream", False),
                stream_cls=_Stream,
            )
            if not isinstance(answer, AsyncStream):
                if not isinstance(answer, BaseModel):
                    raise NotAnEndpoint
                return answer
            if _is_web_page(answer.response.headers):
                await answer.close()
                raise NotAnEndpoint
            return answer

    async def report(self) -> dict[str, Any]:
        """The model and how its last request went; when there was none for a minute, `/models` is asked."""
        if self.last_outcome is None or time.monotonic() - self.last_outcome[0] > 60:
            await self._list_models()
        assert self.last_outcome is not None
        last = self.last_outcome[1]
        return {"provider": self._profile.name, "name": self._asked[0], "models": self._asked, "last": last}

    async def _list_models(self) -> None:
        with suppress(openai.APIError, NotAnEndpoint), self._outcome():
            await self._models(seconds=2)

    async def model_names(self) -> list[str]:
        """Of those that the key may use; raises openai's errors and `NotAnEndpoint`."""
        answer = await self._models(seconds=10)
        try:
            listed = answer.json()
        except (ValueError, RecursionError) as error:
            raise NotAnEndpoint from error
        entries = listed.get("data") if isinstance(listed, dict) else None
        if not isinstance(entries, list):
            raise NotAnEndpoint
        return [name for entry in entries if isinstance(entry, dict) and isinstance(name := entry.get("id"), str)]

    async def _models(self, *, seconds: float) -> Any:
        headers = {name: value.format(key=self._openai.api_key) for name, value in self._profile.lists_with}
        answer = await self._openai.models.with_raw_response.list(timeout=seconds, extra_headers=headers)
        if _is_web_page(answer.headers):
            raise NotAnEndpoint
        return answer.http_response

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


class _Stream(AsyncStream[Chunk]):
    """An answer may be told for minutes: what was sent is let go, which the client keeps to its end."""

    def __init__(self, *, cast_to: type[Chunk], response: Response, client: AsyncOpenAI, options: Any = None) -> None:
        response.request = Request(response.request.method, response.request.url)
        sent = options and options.model_copy(update={"json_data": None})
        super().__init__(cast_to=cast_to, response=response, client=client, options=sent)


def _chunks(answer: ChatCompletion | AsyncStream[Chunk]) -> Chunks:
    return answer if isinstance(answer, AsyncStream) else Whole(answer)


class _PlainClient(AsyncOpenAI):
    """For everyone but OpenAI: sends nothing of the OPENAI_* variables that `AsyncOpenAI` reads by itself."""

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        return {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_web_page(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").startswith("text/html")
