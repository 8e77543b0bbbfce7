"""Finds a model of Ollama on this machine when no model is set; never one of another machine or of Ollama's cloud."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple

import httpx2
from pydantic import BaseModel

PORT = 11434
SECONDS = 5.0  # for all requests; where nothing listens, the connection is refused at once

# The first family that is there is taken, of one family the largest model; families that are not named come last.
PREFERRED = ("gpt-oss", "qwen3.6", "qwen3.5", "qwen3", "gemma4", "mistral-small", "llama3.3", "llama3.1", "qwen2.5")
KNOWN_TO_CALL = ("gpt-oss",)  # of which not each version of Ollama says so


class Address(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_here(self) -> bool:
        try:
            return self.scheme == "http" and ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class LocalOllama:
    """The Ollama that answers at this address, and the model of it to take; without one the note says why."""

    url: str
    model: str = ""
    note: str = ""

    @property
    def settings(self) -> dict[str, str]:
        return {"LLM_PROVIDER": "ollama", "LLM_BASE_URL": f"{self.url}/v1", "LLM_MODEL": self.model}


class _Model(BaseModel):
    name: str = ""
    size: int = 0
    capabilities: list[str] | None = None
    remote_host: str | None = None
    remote_model: str | None = None

    @property
    def family(self) -> str:
        return self.name.rpartition("/")[2].partition(":")[0]

    @property
    def rank(self) -> tuple[int, int]:
        place = PREFERRED.index(self.family) if self.family in PREFERRED else len(PREFERRED)
        return place, -self.size

    @property
    def is_local(self) -> bool:
        is_name = 0 < len(self.name) <= 200 and self.name.isascii() and self.name.isprintable() and " " not in self.name
        return is_name and not (self.name.endswith("cloud") or self.remote_host or self.remote_model)


class _Models(BaseModel):
    models: list[_Model]


def choose_model(environment: Mapping[str, str]) -> tuple[dict[str, str], LocalOllama | None]:
    found = find(environment) if is_wanted(environment) else None
    return {**environment, **(found.settings if found and found.model else base_url(environment))}, found


def base_url(environment: Mapping[str, str]) -> dict[str, str]:
    chosen = environment.get("LLM_PROVIDER") == "ollama" and "OLLAMA_HOST" in environment
    return {"LLM_BASE_URL": f"{address(environment).url}/v1"} if chosen and "LLM_BASE_URL" not in environment else {}


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether no setting chooses a provider; LLM_MODEL alone does not."""
    return not {"LLM_PROVIDER", "LLM_BASE_URL", "LLM_API_KEY", "CEREBRAS_API_KEY"} & environment.keys()


def address(environment: Mapping[str, str]) -> Address:
    """Returns where Ollama listens, by OLLAMA_HOST as Ollama itself reads it."""
    scheme, given, rest = environment.get("OLLAMA_HOST", "").strip().rpartition("://")
    default = {"http": 80, "https": 443}.get(scheme, PORT) if given else PORT
    rest = rest.partition("/")[0]
    with suppress(ValueError):
        return Address(scheme or "http", _get_address(str(ip_address(rest.strip("[]")))), default)
    host, _, port = rest.rpartition(":") if ":" in rest else (rest, "", "")
    number = int(port) if port.isdecimal() and int(port) < 65536 else default
    return Address(scheme or "http", _get_address(host.strip("[]") or "127.0.0.1"), number)


def find(environment: Mapping[str, str]) -> LocalOllama | None:
    """Looks on this machine for `SECONDS`; returns None if nothing answers as Ollama does.

    LLM_MODEL decides which model it is, or `PREFERRED`.
    """
    at = address(environment)
    if not at.is_here:
        return None
    try:
        return asyncio.run(_look(at, environment.get("LLM_MODEL")))
    except (OSError, ValueError, httpx2.HTTPError):  # TimeoutError and ValidationError among them
        return None


async def _look(at: Address, wanted: str | None) -> LocalOllama:
    async with asyncio.timeout(SECONDS), httpx2.AsyncClient(base_url=at.url, trust_env=False) as http:
        listed = _Models.model_validate_json(await _request(http, "GET", "/api/tags"))
        models = [model for model in listed.models if model.is_local]
        if wanted:
            named = next((model.name for model in models if model.name in (wanted, f"{wanted}:latest")), "")
            return LocalOllama(at.url, named, "" if named else f"Ollama has no model {wanted} on this machine")
        for model in sorted(models, key=lambda model: model.rank):
            if await _can_call(http, model):
                return LocalOllama(at.url, model.name)
    return LocalOllama(at.url, note="Ollama has no model on this machine that can call tools")


async def _can_call(http: httpx2.AsyncClient, model: _Model) -> bool:
    """Whether the model can call tools; older versions of Ollama say so only of a single model."""
    if not model.capabilities:
        text = await _request(http, "POST", "/api/show", {"model": model.name})
        model = _Model.model_validate_json(text).model_copy(update={"name": model.name})
    return model.is_local and (model.family in KNOWN_TO_CALL or "tools" in (model.capabilities or ()))


async def _request(http: httpx2.AsyncClient, method: str, path: str, body: object = None) -> bytes:
    response = await http.request(method, path, json=body)
    return response.raise_for_status().content


def _get_address(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(host, host)  # noqa: S104
