"""What each provider rejects, how it responds, and what the backend sends it; see `sources.md`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from backend.settings import ProviderName
from tests.strict_provider import responses
from tests.strict_provider.responses import Formatter
from tests.strict_provider.rules import (
    Body,
    Rule,
    allow_common_fields_and,
    allow_efforts,
    allow_fields,
    allow_message_fields,
    limit_temperature,
    reject_names,
    reject_strict,
    reject_temperature_for,
    reject_tools_while_reasoning,
    require_alternating_roles,
    require_assistant_content,
    require_equal_strict,
    require_nine_character_ids,
    require_object_arguments,
    require_paired_calls,
    require_role_order,
    require_signed_calls,
    require_text_content,
)


@dataclass(frozen=True)
class Contract:
    rules: tuple[Rule, ...]
    """What it rejects."""
    formatter: type[Formatter] = Formatter
    render_error: Callable[[str, int], Any] = responses.render_openai_error
    rejection_status: int = 400
    temperature: float | None = 2.0
    """What it is sent of a temperature of 2."""
    effort: str | None = None
    reasoning_field: str | None = None
    """The field in which its reasoning is sent back."""
    sends_reasoning: bool = True
    rejected_of_custom: tuple[str, ...] = ()
    """Fields that the profile `custom` sends it once."""

    def find_violations(self, body: Body) -> Iterator[str]:
        return (reason for rule in self.rules if (reason := rule(body)))


_LOCAL: tuple[Rule, ...] = (  # unknown fields are ignored; these are rules of the chat templates of Mistral and Gemma
    require_alternating_roles,
    require_assistant_content,
    require_nine_character_ids,
    require_object_arguments,
    require_paired_calls,
)

CONTRACTS: dict[ProviderName, Contract] = {
    "cerebras": Contract(
        rules=(
            allow_common_fields_and("max_completion_tokens", "reasoning_effort"),
            require_equal_strict,
            allow_message_fields("reasoning"),
            limit_temperature(1.5),
            allow_efforts("low", "medium", "high"),
            require_paired_calls,
        ),
        render_error=responses.render_flat_error,
        temperature=1.5,
        effort="low",
        reasoning_field="reasoning",
        rejected_of_custom=("max_tokens", "temperature"),
    ),
    "openai": Contract(
        rules=(
            allow_common_fields_and("max_completion_tokens", "store", "metadata", "reasoning_effort"),
            allow_message_fields(),
            limit_temperature(2),
            reject_temperature_for(r"o\d|gpt-[5-9]"),
            reject_tools_while_reasoning(r"gpt-5\.6|gpt-6"),
            require_paired_calls,
        ),
        rejected_of_custom=("max_tokens",),
    ),
    "ollama": Contract(
        rules=(
            allow_common_fields_and("max_tokens", "reasoning_effort"),
            require_text_content,
            allow_message_fields("reasoning"),
            allow_efforts("low", "medium", "high", "max", "none"),
            require_paired_calls,
        ),
        formatter=responses.Ollama,
        reasoning_field="reasoning",
    ),
    "anthropic": Contract(
        rules=(
            allow_common_fields_and("max_tokens", "max_completion_tokens"),
            allow_message_fields(),
            limit_temperature(1),
            reject_temperature_for(r"claude-\w+-(4-[7-9]|[5-9])"),
            require_paired_calls,
        ),
        formatter=responses.Anthropic,
        temperature=None,
        sends_reasoning=False,
        rejected_of_custom=("temperature",),
    ),
    "groq": Contract(
        rules=(
            allow_common_fields_and("max_completion_tokens", "reasoning_effort"),
            allow_message_fields(),
            reject_names,
            limit_temperature(2),
            allow_efforts("low", "medium", "high"),
            require_paired_calls,
        ),
        effort="low",
        rejected_of_custom=("max_tokens",),
    ),
    "openrouter": Contract(
        rules=(
            allow_common_fields_and("max_tokens", "reasoning_effort", "reasoning"),
            allow_message_fields("reasoning", "reasoning_details"),
            limit_temperature(2),
            allow_efforts("low", "medium", "high", "xhigh", "max", "minimal", "none"),
            require_paired_calls,
        ),
        formatter=responses.OpenRouter,
        render_error=responses.render_numeric_code_error,
        effort="low",
        reasoning_field="reasoning",
    ),
    "gemini": Contract(
        rules=(
            allow_common_fields_and("max_tokens", "max_completion_tokens", "reasoning_effort"),
            allow_message_fields(),
            limit_temperature(2),
            allow_efforts("minimal", "low", "medium", "high"),
            require_signed_calls,
            require_object_arguments,
            require_paired_calls,
        ),
        formatter=responses.Gemini,
        render_error=responses.render_list_error,
        temperature=None,
        effort="low",
        sends_reasoning=False,
    ),
    "mistral": Contract(
        rules=(
            allow_fields(
                *("model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"),
                *("max_tokens", "stop", "random_seed", "response_format", "frequency_penalty", "presence_penalty", "n"),
            ),
            allow_message_fields(),
            limit_temperature(1.5),
            require_role_order(tool=("tool", "assistant"), user=("user", "assistant"), assistant=("user", "assistant")),
            require_assistant_content,
            require_nine_character_ids,
            require_object_arguments,
            require_paired_calls,
        ),
        formatter=responses.Mistral,
        render_error=responses.render_object_error,
        rejection_status=422,
        temperature=1.5,
        rejected_of_custom=("stream_options", "temperature"),
    ),
    "vllm": Contract(rules=_LOCAL, formatter=responses.Vllm, render_error=responses.render_object_error),
    "lmstudio": Contract(rules=_LOCAL, formatter=responses.LmStudio),
    "llamacpp": Contract(
        rules=_LOCAL,
        formatter=responses.LlamaCpp,
        render_error=responses.render_numeric_code_error,
        rejection_status=500,
    ),
    "custom": Contract(
        rules=(
            allow_common_fields_and("max_tokens"),
            reject_strict,
            require_text_content,
            allow_message_fields(),
            *_LOCAL,
        ),
    ),
}
