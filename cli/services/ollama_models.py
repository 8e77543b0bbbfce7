"""Asks an Ollama which of its models to use."""

import asyncio

import httpx2
from pydantic import BaseModel

# The first family that is there is taken, of one family the largest model; families that are not named come last.
PREFERRED = ("gpt-oss", "qwen3.6", "qwen3.5", "qwen3", "gemma4", "mistral-small", "llama3.3", "llama3.1", "qwen2.5")
KNOWN_TO_CALL = ("gpt-oss",)  # of which not each version of Ollama says so


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


def find_model(url: str, wanted: str | None, *, seconds: float) -> tuple[str, str] | None:
    """Returns the name of a model, or an empty one and the reason; None if no Ollama answers there."""
    try:
        return asyncio.run(_look(url, wanted, seconds))
    except (OSError, ValueError, httpx2.HTTPError):  # TimeoutError and ValidationError among them
        return None


async def _look(url: str, wanted: str | None, seconds: float) -> tuple[str, str]:
    async with asyncio.timeout(seconds), httpx2.AsyncClient(base_url=url, trust_env=False) as http:
        listed = _Models.model_validate_json(await _request(http, "GET", "/api/tags"))
        models = [model for model in listed.models if model.is_local]
        if wanted:
            named = next((model.name for model in models if model.name in (wanted, f"{wanted}:latest")), "")
            return (named, "" if named else f"Ollama has no model {wanted} on this machine")
        for model in sorted(models, key=lambda model: model.rank):
            if await _can_call(http, model):
                return model.name, ""
    return "", "Ollama has no model on this machine that can call tools"


async def _can_call(http: httpx2.AsyncClient, model: _Model) -> bool:
    """Whether the model can call tools; older versions of Ollama say so only of a single model."""
    if not model.capabilities:
        text = await _request(http, "POST", "/api/show", {"model": model.name})
        model = _Model.model_validate_json(text).model_copy(update={"name": model.name})
    return model.is_local and (model.family in KNOWN_TO_CALL or "tools" in (model.capabilities or ()))


async def _request(http: httpx2.AsyncClient, method: str, path: str, body: object = None) -> bytes:
    response = await http.request(method, path, json=body)
    return response.raise_for_status().content
