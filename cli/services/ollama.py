"""Finds a model of Ollama on this machine when no model is set; never one of another machine or of Ollama's cloud."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NamedTuple, TypeGuard

PORT = 11434
SECONDS = 2.0  # for all requests; where nothing listens, the connection is refused at once
MOST_BYTES = 1_000_000  # of an answer

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


@dataclass(frozen=True)
class _Model:
    name: str
    size: int = 0
    capabilities: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def family(self) -> str:
        return self.name.rpartition("/")[2].partition(":")[0]

    @property
    def rank(self) -> tuple[int, int]:
        place = PREFERRED.index(self.family) if self.family in PREFERRED else len(PREFERRED)
        return place, -self.size


def choose_model(environment: Mapping[str, str]) -> tuple[dict[str, str], LocalOllama | None]:
    """Returns the environment with a model of this machine if no setting chooses a provider, and what was found."""
    found = find(environment) if is_wanted(environment) else None
    return {**environment, **(found.settings if found and found.model else base_url(environment))}, found


def base_url(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the address of Ollama as a setting, if Ollama is chosen and no other address is set."""
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
        return Address(scheme or "http", _reached(str(ip_address(rest.strip("[]")))), default)
    host, _, port = rest.rpartition(":") if ":" in rest else (rest, "", "")
    number = int(port) if port.isdecimal() and int(port) < 65536 else default
    return Address(scheme or "http", _reached(host.strip("[]") or "127.0.0.1"), number)


def find(environment: Mapping[str, str]) -> LocalOllama | None:
    """Looks on this machine for `SECONDS`; returns None if nothing answers as Ollama does.

    LLM_MODEL decides which model it is, or `PREFERRED`.
    """
    at = address(environment)
    if not at.is_here:
        return None
    try:
        return asyncio.run(_look(at, environment.get("LLM_MODEL")))
    except (OSError, ValueError, RecursionError):  # TimeoutError among them
        return None


async def _look(at: Address, wanted: str | None) -> LocalOllama:
    async with asyncio.timeout(SECONDS):
        models = [*_local_models(await _ask(at, "/api/tags"))]
        if wanted:
            named = next((model.name for model in models if model.name in (wanted, f"{wanted}:latest")), "")
            return LocalOllama(at.url, named, "" if named else f"Ollama has no model {wanted} on this machine")
        for model in sorted(models, key=lambda model: model.rank):
            if await _can_call(at, model):
                return LocalOllama(at.url, model.name)
    return LocalOllama(at.url, note="Ollama has no model on this machine that can call tools")


def _local_models(listed: Any) -> Iterable[_Model]:
    """Yields the models of /api/tags that run on this machine."""
    for entry in listed["models"] if isinstance(listed, dict) and isinstance(listed.get("models"), list) else ():
        if isinstance(entry, dict) and _is_name(name := entry.get("name")) and not _is_remote(name, entry):
            size, capabilities = entry.get("size"), entry.get("capabilities")
            yield _Model(
                name,
                size if isinstance(size, int) else 0,
                [str(one) for one in capabilities] if isinstance(capabilities, list) else (),
            )


def _is_name(name: Any) -> TypeGuard[str]:
    return isinstance(name, str) and 0 < len(name) <= 200 and name.isascii() and name.isprintable() and " " not in name


def _is_remote(name: str, description: Mapping[str, Any]) -> bool:
    return name.endswith("cloud") or bool(description.get("remote_host") or description.get("remote_model"))


async def _can_call(at: Address, model: _Model) -> bool:
    """Whether the model can call tools; older versions of Ollama say so only of a single model."""
    if model.capabilities:
        return "tools" in model.capabilities or model.family in KNOWN_TO_CALL
    shown = await _ask(at, "/api/show", {"model": model.name})
    if not isinstance(shown, dict) or _is_remote(model.name, shown):
        return False
    capabilities = shown.get("capabilities")
    return model.family in KNOWN_TO_CALL or (isinstance(capabilities, list) and "tools" in capabilities)


async def _ask(at: Address, path: str, body: Any = None) -> Any:
    """Returns the JSON of a response. In HTTP/1.0 a response ends with the connection; redirects are not followed."""
    sent = b"" if body is None else json.dumps(body).encode()
    request = (
        f"{'POST' if sent else 'GET'} {path} HTTP/1.0\r\nHost: {at.url.partition('://')[2]}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(at.host, at.port)
    try:
        writer.write(request.encode() + sent)
        answer = bytearray()
        while piece := await reader.read(65_536):
            answer += piece
            if len(answer) > MOST_BYTES:
                raise ValueError
    finally:
        writer.close()
    head, _, text = answer.partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        raise ValueError
    return json.loads(text)


def _reached(host: str) -> str:
    """Returns the address to connect to for an address to listen at."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(host, host)  # noqa: S104
