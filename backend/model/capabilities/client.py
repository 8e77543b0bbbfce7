"""Asks a model's server what the model can do: whether it calls tools, and how many tokens its context has."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2

from backend.model.tool_calls import parse_json
from backend.settings import ProviderName

SECONDS = 2.0
"""For all requests of one question."""
_MAX_BYTES = 500_000  # /props has the chat template, a list may have hundreds of models
_MAX_CONTEXT_TOKENS, _MAX_DIGITS = 1_000_000_000, 20
_KNOWN_TO_CALL = "gpt-oss"  # of which not each version of Ollama says so

Json = dict[str, Any]


@dataclass(frozen=True)
class Capabilities:
    """What a server says of a model; None for what it does not say."""

    has_tools: bool | None = None
    context_tokens: int | None = None
    source: str = ""
    """What tells one model from another under the same name."""


class CapabilitiesUnknown(Exception):
    """A server gave no usable response; the text completes the sentence "The server …"."""

    def __init__(self, reason: str, *, is_passing: bool = False, is_loading: bool = False) -> None:
        super().__init__(reason)
        self.is_passing = is_passing
        """Whether it may respond soon: it does not run yet, or loads the model."""
        self.is_loading = is_loading


class CapabilityClient:
    """Sends the few requests of a question. The address is that of the model's API, which ends in `/v1`."""

    def __init__(self, http: httpx2.AsyncClient, base_url: str, api_key: str) -> None:
        self._http = http
        self._api = base_url.rstrip("/")
        self._root = self._api.removesuffix("/v1")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def ask(self, provider: ProviderName, model: str) -> Capabilities:
        """Raises `CapabilitiesUnknown`, whatever the server does."""
        try:
            async with asyncio.timeout(SECONDS):
                return await _QUESTIONS[provider](self, model)
        except (TimeoutError, httpx2.TimeoutException):
            raise CapabilitiesUnknown(f"did not respond within {SECONDS:g} seconds") from None
        except httpx2.ConnectError:
            raise CapabilitiesUnknown("cannot be reached", is_passing=True) from None
        except CapabilitiesUnknown:
            raise
        except Exception as error:  # noqa: BLE001 - aiohttp's errors for what is no HTTP are not translated to httpx2's
            raise CapabilitiesUnknown(f"sent an invalid response ({type(error).__name__})") from None

    async def ask_llamacpp(self, model: str) -> Capabilities:
        props = await self._get(f"{self._root}/props?model={quote(model, safe='')}&autoload=false")
        generation = _get_object(props, "default_generation_settings")
        if not generation:
            raise CapabilitiesUnknown("did not respond as llama.cpp does")
        has_tools = _get_object(props, "chat_template_caps").get("supports_tools")
        return Capabilities(
            has_tools if isinstance(has_tools, bool) else None,
            _read_tokens(generation, "n_ctx"),
            source=str(props.get("model_path", ""))[:500],
        )

    async def ask_ollama(self, model: str) -> Capabilities:
        shown, loaded = await asyncio.gather(
            self._request("POST", f"{self._root}/api/show", {"model": model}), self._list_loaded_models()
        )
        listed = shown.get("capabilities")
        has_tools = "tools" in listed or _KNOWN_TO_CALL in model if isinstance(listed, list) and listed else None
        running = _find_entry(loaded.get("models"), "name", model, f"{model}:latest")
        sizes = (
            _read_tokens(running, "context_length"),
            _find_num_ctx(shown.get("parameters")),
            next(_list_model_contexts(_get_object(shown, "model_info")), None),
        )
        return Capabilities(has_tools, next(filter(None, sizes), None), source=str(running.get("digest", ""))[:100])

    async def _list_loaded_models(self) -> Json:
        """Older versions of Ollama have no such list."""
        try:
            return await self._get(f"{self._root}/api/ps")
        except CapabilitiesUnknown:
            return {}

    async def ask_lmstudio(self, model: str) -> Capabilities:
        listed = await self._get(f"{self._root}/api/v0/models")
        entry = _find_entry(listed.get("data"), "id", model)
        abilities = entry.get("capabilities")
        has_tools = "tool_use" in abilities if isinstance(abilities, list) else None
        context = _read_tokens(entry, "loaded_context_length", "max_context_length")
        return Capabilities(has_tools, context, source=str(entry.get("quantization", ""))[:100])

    async def ask_other(self, model: str) -> Capabilities:
        listed = await self._get(f"{self._api}/models")
        entry = _find_entry(listed.get("data"), "id", model)
        if entry.get("owned_by") == "llamacpp":
            return await self.ask_llamacpp(model)
        names = ("max_model_len", "context_length", "context_window", "max_context_length")
        return Capabilities(None, _read_tokens(entry, *names))

    async def _get(self, url: str) -> Json:
        return await self._request("GET", url)

    async def _request(self, method: str, url: str, body: Json | None = None) -> Json:
        content = b""
        request = self._http.stream(
            method, url, json=body, headers=self._headers, timeout=SECONDS, follow_redirects=False
        )
        async with request as response:
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > _MAX_BYTES:
                    raise CapabilitiesUnknown(f"sent more than {_MAX_BYTES:,} bytes")
        if response.status_code != 200:
            status = response.status_code
            is_passing, is_loading = status in (502, 503, 504), status == 503
            raise CapabilitiesUnknown(f"responded with status {status}", is_passing=is_passing, is_loading=is_loading)
        value = parse_json(content.decode(errors="replace"))
        if not isinstance(value, dict):
            raise CapabilitiesUnknown("did not send a JSON object")
        return value


_QUESTIONS: Mapping[ProviderName, Callable[[CapabilityClient, str], Awaitable[Capabilities]]] = {
    "llamacpp": CapabilityClient.ask_llamacpp,
    "ollama": CapabilityClient.ask_ollama,
    "lmstudio": CapabilityClient.ask_lmstudio,
    "vllm": CapabilityClient.ask_other,
    "custom": CapabilityClient.ask_other,
}


def can_be_asked(provider: ProviderName) -> bool:
    return provider in _QUESTIONS


def _get_object(value: Json, name: str) -> Json:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _find_entry(entries: Any, key: str, *names: str) -> Json:
    """Returns the entry with one of these names, or the only one there is."""
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    named = [entry for entry in found if entry.get(key) in names]
    return named[0] if named else found[0] if len(found) == 1 and key == "id" else {}


def _read_tokens(value: Json, *names: str) -> int | None:
    numbers = (value.get(name) for name in names)
    return next((number for number in numbers if _is_context(number)), None)


def _is_context(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 < number < _MAX_CONTEXT_TOKENS


def _find_num_ctx(parameters: Any) -> int | None:
    """Reads Ollama's parameters, which are lines of a name and a value."""
    lines = parameters.splitlines() if isinstance(parameters, str) else ()
    values = [words[1] for line in lines if len(words := line.split()) == 2 and words[0] == "num_ctx"]
    tokens = int(values[0]) if values and values[0].isdecimal() and len(values[0]) <= _MAX_DIGITS else None
    return tokens if _is_context(tokens) else None


def _list_model_contexts(model_info: Json) -> Iterator[int]:
    yield from (
        number for name, number in model_info.items() if name.endswith(".context_length") and _is_context(number)
    )
