"""What each model provider accepts, and which one the settings choose."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from backend.errors import InvalidRequest
from backend.model.requests import bodies
from backend.model.requests.turn_forms import TurnForm
from backend.model.responses.limits import ResponseLimits
from backend.settings import ModelApi, ModelSettings, ProviderName, Roles, ToolCalls
from common.environment import SettingsInvalid


@dataclass(frozen=True)
class ProviderProfile:
    name: ProviderName
    base_url: str | None
    model: str | None
    needs_key: bool = True
    """Whether it demands a key, for which there is a setting `<name>_api_key`."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    max_temperature: float = 2.0
    takes_temperature: str = ""
    """A regular expression for the beginning of the names of models that accept a temperature."""
    reasoning_efforts: tuple[tuple[str, str], ...] = ()
    """The effort that is sent, by a regular expression for a part of the model's name."""
    api: ModelApi | None = None
    """The API by which all models are asked; None if that depends on their names."""
    responses_models: str = r"\b\B"
    """A regular expression for the names of models that are asked by the Responses API."""
    responses_efforts: tuple[tuple[str, str], ...] = ()
    """The effort that is sent there to models that reason; empty for their own."""
    agent_max_tokens: int = 8_000
    """The default output limit of agents: what the model's context holds in addition to the history."""
    output_limits: tuple[tuple[str, int], ...] = ()
    """Models that accept a smaller output limit, by a regular expression for a part of their name."""
    turn_form: TurnForm = field(default_factory=TurnForm)
    """How a model turn is given back."""
    roles: Roles = "any"
    """`alternate`: messages of user and assistant must alternate."""
    omits: tuple[str, ...] = ()
    """Optional fields that it rejects."""
    short_ids: bool = False
    """Whether the ids of calls must be nine letters and digits."""
    history_tokens: int = 8_000
    titles: bool = True
    tool_calls: ToolCalls = "streamed"
    lists_with: tuple[tuple[str, str], ...] = ()
    """Additional headers for its list of models."""
    loses_calls: bool = False
    """Whether streamed calls may be missing: an empty response is requested again without streaming."""
    other_urls: tuple[str, ...] = ()
    """Where its server may be, too, if no address is set."""
    context_cure: str = "Give its server a context of 16,384 tokens or more, or choose another model."
    """What the operator does if the model's context is too small."""
    cuts_silently: bool = False
    """Whether a request that exceeds the model's context is cut without an error."""

    @property
    def key_setting(self) -> str:
        return f"{self.name}_api_key"

    def effort_of(self, model: str, api: ModelApi = "chat") -> str | None:
        efforts = self.responses_efforts if api == "responses" else self.reasoning_efforts
        return next((effort for name, effort in efforts if re.search(name, model)), None)

    def api_of(self, model: str) -> ModelApi:
        return self.api or ("responses" if re.match(self.responses_models, model) else "chat")

    def agent_tokens_of(self, model: str) -> int:
        known = (tokens for name, tokens in self.output_limits if re.search(name, model))
        return min(self.agent_max_tokens, next(known, self.agent_max_tokens))

    def takes_temperature_of(self, model: str) -> bool:
        return "temperature" not in self.omits and re.match(self.takes_temperature, model) is not None

    def messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        valid = bodies.repair_messages(messages, short_ids=self.short_ids)
        return bodies.alternate_roles(valid) if self.roles == "alternate" else valid

    def shape(self, body: dict[str, Any], api: ModelApi = "chat") -> dict[str, Any]:
        """Returns a request as the provider accepts it, but for the form of its model turns and for the API."""
        body = {**body, "messages": self.messages(body["messages"])}
        if "max_tokens" in body:
            body[self.max_tokens_field] = body.pop("max_tokens")
        if "temperature" in body:
            given = min(body.pop("temperature"), self.max_temperature)
            body |= {"temperature": given} if self.takes_temperature_of(body["model"]) else {}
        effort = self.effort_of(body["model"], api)
        if effort:
            body["reasoning_effort"] = effort
        if api == "responses" and (effort is not None or not self.responses_efforts):
            body |= {"reasoning_summary": "auto", "encrypted_reasoning": True}
        if "tools" in body:
            body["tools"] = bodies.repair_tools(body["tools"])
        body = bodies.remove_fields(body, *self.omits)
        if self.tool_calls == "text":
            body = bodies.describe_tools(body)
            return {**body, "messages": self.messages(body["messages"])}
        return bodies.remove_streaming(body) if self.tool_calls == "whole" and "tools" in body else body


def _create_cautious_profile(
    name: ProviderName,
    base_url: str | None = None,
    model: str | None = None,
    *,
    loses_calls: bool = True,
    **more: Any,
) -> ProviderProfile:
    """Creates the profile of a server that may have any model."""
    return ProviderProfile(
        name,
        base_url,
        model,
        needs_key=False,
        agent_max_tokens=4_000,
        roles="alternate",
        short_ids=True,
        loses_calls=loses_calls,
        **more,
    )


PROFILES: dict[ProviderName, ProviderProfile] = {
    profile.name: profile
    for profile in (
        ProviderProfile(
            name="cerebras",
            base_url="https://api.cerebras.ai/v1",
            model="gpt-oss-120b",
            max_tokens_field="max_completion_tokens",
            max_temperature=1.5,
            reasoning_efforts=(("gpt-oss", "low"),),
            history_tokens=16_000,
        ),
        ProviderProfile(
            name="openai",
            base_url="https://api.openai.com/v1",
            model="gpt-6-luna",
            max_tokens_field="max_completion_tokens",
            takes_temperature="gpt-[34]|chatgpt-4o|ft:gpt-[34]",
            # These reject tools in chat completions while they reason, and some of them always.
            responses_models=r"(ft:)?gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!\S*-chat)|\S*(codex|-pro\b|deep-research)",
            # Pro and research models do not accept a low one.
            responses_efforts=(
                (r"-pro\b|deep-research", ""),
                (r"^(ft:)?(o\d|gpt-([5-9]|\d\d))(?!\S*-chat)|codex", "low"),
            ),
            reasoning_efforts=((r"^(ft:)?gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!\S*-chat)", "none"),),
            output_limits=((r"gpt-3\.5|gpt-4(-\d|-turbo|$)", 4_096),),
            history_tokens=32_000,
        ),
        ProviderProfile(
            name="ollama",
            base_url="http://localhost:11434/v1",
            model="qwen3:8b",
            needs_key=False,
            agent_max_tokens=4_000,
            reasoning_efforts=(("gpt-oss", "low"),),
            turn_form=TurnForm(text="empty"),
            loses_calls=True,
            context_cure="Start Ollama with OLLAMA_CONTEXT_LENGTH=16384, or set num_ctx to that in the model.",
            cuts_silently=True,
        ),
        ProviderProfile(
            name="anthropic",
            base_url="https://api.anthropic.com/v1/",
            model="claude-opus-5-5",
            max_temperature=1.0,
            takes_temperature=r"claude-3|claude-\w+-4-[0-6]",
            output_limits=((r"claude-3-(opus|sonnet|haiku)", 4_096),),
            lists_with=(("x-api-key", "{key}"), ("anthropic-version", "2023-06-01")),
            history_tokens=32_000,
        ),
        ProviderProfile(
            name="groq",
            base_url="https://api.groq.com/openai/v1",
            model="openai/gpt-oss-120b",
            max_tokens_field="max_completion_tokens",
            agent_max_tokens=4_000,
            reasoning_efforts=(("gpt-oss", "low"),),
            turn_form=TurnForm(replay="none"),
        ),
        ProviderProfile(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            model="openai/gpt-oss-120b",
            reasoning_efforts=(("gpt-oss", "low"),),
            history_tokens=16_000,
        ),
        ProviderProfile(
            name="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
            model="gemini-3.8-flash",
            takes_temperature=r"(models/)?gemini-[12]",  # from Gemini 3 on, Google advises against any but the default
            reasoning_efforts=((r"gemini-(2\.5|[3-9])", "low"),),
            turn_form=TurnForm(replay="extra_content"),
            history_tokens=32_000,
        ),
        ProviderProfile(
            name="mistral",
            base_url="https://api.mistral.ai/v1",
            model="mistral-medium-latest",
            max_temperature=1.5,
            roles="alternate",
            omits=("stream_options",),
            short_ids=True,
            history_tokens=16_000,
        ),
        # Without an address: its port is 8000, as ours.
        _create_cautious_profile("vllm", context_cure="Start vLLM with --max-model-len 16384."),
        _create_cautious_profile(
            "lmstudio",
            "http://localhost:1234/v1",
            context_cure="Load the model in LM Studio with a context of 16384 tokens.",
        ),
        # It serves one model under any name. Newer versions listen on the second port.
        _create_cautious_profile(
            "llamacpp",
            "http://localhost:8080/v1",
            "default",
            other_urls=("http://localhost:9931/v1",),
            context_cure="Start llama-server with -c 16384.",
        ),
        # Twice what it reads of a list at most: "show the rest" refers to its last answer.
        ProviderProfile(
            name="offline",
            base_url=None,
            model="offline-rules",
            needs_key=False,
            history_tokens=128_000,
            titles=False,
        ),
        _create_cautious_profile("custom", loses_calls=False),
    )
}


@dataclass(frozen=True)
class ModelEndpoint:
    """The provider's address, its default `model`, and all `models` that users may choose."""

    profile: ProviderProfile
    base_url: str
    api_key: str  # empty if there is none
    model: str
    retry_seconds: float = 0.5  # before the first retry
    models: tuple[str, ...] = ()
    agent_max_tokens: int = 8_000
    other_urls: tuple[str, ...] = ()
    """Where its server may be if it is not at `base_url`."""
    has_tool_calls_setting: bool = False
    """Whether LLM_TOOL_CALLS is set."""
    has_text_setting: bool = False
    has_replay_setting: bool = False
    """Whether LLM_EMPTY_TEXT and LLM_REPLAY are set."""
    limits: ResponseLimits = field(default_factory=ResponseLimits)

    @property
    def shown_url(self) -> str:
        """The address without a user and password."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class ModelNotConfigured(SettingsInvalid):
    """A sentence for the operator: which setting is missing or invalid."""


def resolve(settings: ModelSettings) -> ModelEndpoint:
    has_key = settings.cerebras_api_key or settings.llm_api_key
    name = settings.llm_provider or ("cerebras" if has_key else "offline")
    profile = _with_settings(PROFILES[name], settings)
    # Not LLM_BASE_URL: with a key set, the key and the messages would go to the offline model.
    default_url = settings.offline_url if name == "offline" else profile.base_url
    base_url, model = settings.llm_base_url or default_url, settings.llm_model or profile.model
    key = get_own_key(profile, settings) or settings.llm_api_key
    if not base_url:
        raise ModelNotConfigured(f"LLM_PROVIDER={name} needs LLM_BASE_URL, the address of its /v1.")
    if not model:
        raise ModelNotConfigured(f"LLM_PROVIDER={name} needs LLM_MODEL, the name of the model.")
    if key is None and profile.needs_key:
        raise ModelNotConfigured(f"LLM_PROVIDER={name} needs {profile.key_setting.upper()} or LLM_API_KEY.")
    agent_tokens = min(map(profile.agent_tokens_of, (model, *settings.llm_models)))
    return ModelEndpoint(
        profile,
        base_url,
        api_key=key.get_secret_value() if key else "",
        model=model,
        models=(*dict.fromkeys((model, *settings.llm_models)),),
        agent_max_tokens=settings.llm_agent_max_tokens or agent_tokens,
        other_urls=() if settings.llm_base_url else profile.other_urls,
        has_tool_calls_setting=settings.llm_tool_calls is not None,
        has_text_setting=settings.llm_empty_text is not None,
        has_replay_setting=settings.llm_replay is not None,
        limits=ResponseLimits(
            settings.limit_answer_chars, settings.llm_first_token_seconds, settings.llm_silence_seconds
        ),
    )


def _with_settings(profile: ProviderProfile, settings: ModelSettings) -> ProviderProfile:
    for name in settings.llm_omit:
        if name not in bodies.OPTIONAL:
            known = ", ".join(bodies.OPTIONAL)
            raise ModelNotConfigured(f"LLM_OMIT cannot leave out {name}. It takes any of these: {known}.")
    return replace(
        profile,
        history_tokens=profile.history_tokens if settings.history_tokens is None else settings.history_tokens,
        tool_calls=settings.llm_tool_calls or profile.tool_calls,
        roles=settings.llm_roles or profile.roles,
        omits=settings.llm_omit or profile.omits,
        api=settings.llm_api or profile.api,
        turn_form=TurnForm(
            settings.llm_empty_text or profile.turn_form.text, settings.llm_replay or profile.turn_form.replay
        ),
    )


def get_own_key(profile: ProviderProfile, settings: ModelSettings) -> SecretStr | None:
    return getattr(settings, profile.key_setting) if profile.needs_key else None


def check_options(model: object, temperature: object, *, endpoint: ModelEndpoint) -> dict[str, Any]:
    """The options of a run; None stands for the server's setting. Raises `InvalidRequest` for what is not offered."""
    if model is not None and model not in endpoint.models:
        raise InvalidRequest(f"This model is not available. Choose one of these: {', '.join(endpoint.models)}.")
    options = {} if model is None else {"model": str(model)}
    if temperature is None:
        return options
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        raise InvalidRequest("temperature must be a number from 0 to 2. Leave it out to use the server's setting.")
    name = endpoint.model if model is None else str(model)
    if not endpoint.profile.takes_temperature_of(name):
        raise InvalidRequest(f"The model {name} takes no temperature. Leave it out.")
    if temperature > endpoint.profile.max_temperature:
        most = f"{endpoint.profile.max_temperature:g}"
        raise InvalidRequest(f"The model {name} takes a temperature from 0 to {most}. Choose a lower one.")
    return {**options, "temperature": float(temperature)}
