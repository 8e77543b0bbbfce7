"""What each model provider accepts, and which one the environment asks for."""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import SecretStr

from backend.model import text_calls
from backend.settings import ModelSettings, ProviderName, ToolCalls
from service.environment import SettingsInvalid

NO_KEY = "none"
ReasoningReplay = Literal["drop", "reasoning", "reasoning_content"]


@dataclass(frozen=True)
class Profile:
    """What may be sent to one provider's chat-completions endpoint, and whether it can make `titles`."""

    name: ProviderName
    base_url: str | None
    model: str | None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    max_temperature: float = 2.0
    takes_temperature: str = ""
    """How the names of the models begin that take one, as a regular expression."""
    reasoning_efforts: tuple[tuple[str, str], ...] = ()
    """The effort to ask for, by what is in a model's name, as a regular expression."""
    reasoning_replay: ReasoningReplay = "drop"
    history_tokens: int = 8_000
    titles: bool = True
    tool_calls: ToolCalls = "streamed"
    lists_with: tuple[tuple[str, str], ...] = ()
    """Headers that its list of models takes besides."""
    loses_calls: bool = False
    """Whether calls that are streamed may not arrive: then an answer that says nothing is asked for again, whole."""
    cuts_silently: bool = False
    """Whether a request that the model's context does not hold is cut, and nothing said."""

    def effort_of(self, model: str) -> str | None:
        return next((effort for name, effort in self.reasoning_efforts if re.search(name, model)), None)

    def shape(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request body as this provider takes it."""
        body = {**body, "messages": _in_call_order([self._message(message) for message in body["messages"]])}
        if "max_tokens" in body:
            body[self.max_tokens_field] = body.pop("max_tokens")
        if "temperature" in body:
            given = min(body.pop("temperature"), self.max_temperature)
            body |= {"temperature": given} if re.match(self.takes_temperature, body["model"]) else {}
        if "tools" in body:
            body["tools"] = [_without_strict(tool) for tool in body["tools"]]
        if self.tool_calls == "text":
            return text_calls.asked_in_text(body)
        return not_streamed(body) if self.tool_calls == "whole" and "tools" in body else body

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        shaped = {key: value for key, value in message.items() if key not in ("reasoning", "reasoning_content")}
        shaped["content"] = _flat(message.get("content"))
        reasoning = message.get("reasoning") or message.get("reasoning_content")
        if reasoning and self.reasoning_replay != "drop":
            shaped[self.reasoning_replay] = reasoning
        return shaped


def not_streamed(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def _in_call_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs in the order of their calls: the SDK orders them by what became of a call, a replay cannot."""
    ordered: list[dict[str, Any]] = []
    position: dict[str, int] = {}
    step: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            step.append(message)
            continue
        ordered += sorted(step, key=lambda output: position[output["tool_call_id"]])
        position = {call["id"]: index for index, call in enumerate(message.get("tool_calls") or ())}
        step = []
        ordered.append(message)
    return ordered + sorted(step, key=lambda output: position[output["tool_call_id"]])


def _flat(content: Any) -> Any:
    """Text parts as one string: every server takes a string, older ones nothing else."""
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        return "\n".join(part["text"] for part in content)
    return content


def _without_strict(tool: dict[str, Any]) -> dict[str, Any]:
    """Cerebras refuses lists that mix values of `strict`, and some of its models refuse `true`."""
    return {**tool, "function": {key: value for key, value in tool["function"].items() if key != "strict"}}


PROFILES: dict[ProviderName, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="cerebras",
            base_url="https://api.cerebras.ai/v1",
            model="gpt-oss-120b",
            max_tokens_field="max_completion_tokens",
            max_temperature=1.5,
            reasoning_efforts=(("gpt-oss", "low"),),
            reasoning_replay="reasoning",
            history_tokens=16_000,
        ),
        Profile(
            name="openai",
            base_url="https://api.openai.com/v1",
            model="gpt-4.1-mini",
            max_tokens_field="max_completion_tokens",
            takes_temperature="gpt-[34]|chatgpt-4o|ft:gpt-[34]",
            # These refuse tools in chat completions while they reason.
            reasoning_efforts=((r"^gpt-5\.[4-9]|^gpt-6-luna", "none"),),
            history_tokens=32_000,
        ),
        Profile(
            name="ollama",
            base_url="http://localhost:11434/v1",
            model="qwen3:8b",
            reasoning_efforts=(("gpt-oss", "low"),),
            reasoning_replay="reasoning",
            loses_calls=True,
            cuts_silently=True,
        ),
        Profile(
            name="anthropic",
            base_url="https://api.anthropic.com/v1/",
            model="claude-opus-5-5",
            max_temperature=1.0,
            takes_temperature=r"claude-3|claude-\w+-4-[0-6]",
            lists_with=(("x-api-key", "{key}"), ("anthropic-version", "2023-06-01")),
            history_tokens=32_000,
        ),
        Profile(
            name="groq",
            base_url="https://api.groq.com/openai/v1",
            model="openai/gpt-oss-120b",
            max_tokens_field="max_completion_tokens",
            reasoning_efforts=(("gpt-oss", "low"),),
        ),
        Profile(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            model="openai/gpt-oss-120b",
            reasoning_efforts=(("gpt-oss", "low"),),
            reasoning_replay="reasoning",
            history_tokens=16_000,
        ),
        # Twice what it reads of a list at most: "show the rest" and "the second" go on from what it said last.
        Profile(name="offline", base_url=None, model="offline-rules", history_tokens=128_000, titles=False),
        Profile(name="custom", base_url=None, model=None),
    )
}


@dataclass(frozen=True)
class Endpoint:
    """Where this process asks, and which model it asks where nobody chose one of the `others`."""

    profile: Profile
    base_url: str
    api_key: str
    model: str
    retry_seconds: float = 0.5  # before a request is sent again for the first time
    others: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """All that may be asked, the one that is asked by itself first."""
        return (*dict.fromkeys((self.model, *self.others)),)


class ModelNotConfigured(SettingsInvalid):
    """What is missing in the environment, and how to set it."""


def chosen(settings: ModelSettings) -> ProviderName:
    """The provider the environment asks for."""
    has_key = settings.cerebras_api_key or settings.llm_api_key
    return settings.llm_provider or ("cerebras" if has_key else "offline")


def resolve(settings: ModelSettings) -> Endpoint:
    """The endpoint the environment asks for; raises `ModelNotConfigured` with a sentence for the operator."""
    name = chosen(settings)
    profile = PROFILES[name]
    if settings.history_tokens is not None:
        profile = replace(profile, history_tokens=settings.history_tokens)
    profile = replace(profile, tool_calls=settings.llm_tool_calls)
    # Not by LLM_BASE_URL: then setting a key would send it, and the questions, to the offline model.
    own_url = settings.offline_url if name == "offline" else profile.base_url
    base_url = settings.llm_base_url or own_url
    model = settings.llm_model or profile.model
    if not base_url:
        raise ModelNotConfigured("LLM_PROVIDER=custom needs LLM_BASE_URL, the address of its /v1.")
    if not model:
        raise ModelNotConfigured("LLM_PROVIDER=custom needs LLM_MODEL, the name of the model.")
    key = own_key(name, settings) or settings.llm_api_key
    if key is None and has_keys(name):
        raise ModelNotConfigured(f"LLM_PROVIDER={name} needs {name.upper()}_API_KEY or LLM_API_KEY.")
    return Endpoint(
        profile, base_url, api_key=key.get_secret_value() if key else NO_KEY, model=model, others=settings.llm_models
    )


def has_keys(name: ProviderName) -> bool:
    """Whether there is a variable for a key of this provider's."""
    return f"{name}_api_key" in ModelSettings.model_fields


def own_key(name: ProviderName, settings: ModelSettings) -> SecretStr | None:
    return getattr(settings, f"{name}_api_key") if has_keys(name) else None
