"""What each provider rejects, how it responds, and what the backend sends it; see `sources.md`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from backend.settings import ProviderName
from tests.strict_provider import responses, rules
from tests.strict_provider.responses import Formatter
from tests.strict_provider.rules import Body, Rule


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
    """The field in which it sends its reasoning, and gets it back; None if it does not want it back."""
    sends_reasoning: bool = True
    rejected_of_custom: tuple[str, ...] = ()
    """Fields that the profile `custom` sends it once."""

    def find_violations(self, body: Body) -> Iterator[str]:
        return (reason for rule in self.rules if (reason := rule(body)))


# Local servers ignore unknown fields; these are rules of the chat templates of Mistral and Gemma.
_LOCAL: tuple[Rule, ...] = (
    rules.require_alternating_roles,
    rules.require_assistant_content,
    rules.require_nine_character_ids,
    rules.require_object_arguments,
    rules.require_paired_calls,
)

CONTRACTS: dict[ProviderName, Contract] = {
    "cerebras": Contract(
        rules=(
            rules.allow_common_fields_and("max_completion_tokens", "reasoning_effort"),
            rules.require_equal_strict,
            rules.allow_message_fields("reasoning"),
            rules.limit_temperature(1.5),
            rules.allow_efforts("low", "medium", "high"),
            rules.require_paired_calls,
        ),
        render_error=responses.render_flat_error,
        temperature=1.5,
        effort="low",
        reasoning_field="reasoning",
        rejected_of_custom=("max_tokens", "temperature"),
    ),
    "openai": Contract(
        rules=(
            rules.allow_common_fields_and("max_completion_tokens", "store", "metadata", "reasoning_effort"),
            rules.allow_message_fields(),
            rules.limit_temperature(2),
            rules.reject_temperature_for(r"o\d|gpt-[5-9]"),
            rules.reject_tools_while_reasoning(r"gpt-5\.6|gpt-6"),
            rules.require_paired_calls,
        ),
        formatter=responses.OpenAi,
        sends_reasoning=False,
        rejected_of_custom=("max_tokens",),
    ),
    "ollama": Contract(
        rules=(
            rules.allow_common_fields_and("max_tokens", "reasoning_effort"),
            rules.require_text_content,
            rules.reject_null_content,
            rules.allow_message_fields("reasoning"),
            rules.allow_efforts("low", "medium", "high", "max", "none"),
            rules.require_paired_calls,
        ),
        formatter=responses.Ollama,
        reasoning_field="reasoning",
    ),
    "anthropic": Contract(
        rules=(
            rules.allow_common_fields_and("max_tokens", "max_completion_tokens"),
            rules.allow_message_fields(),
            rules.limit_temperature(1),
            rules.reject_temperature_for(r"claude-\w+-(4-[7-9]|[5-9])"),
            rules.require_paired_calls,
        ),
        formatter=responses.Anthropic,
        temperature=None,
        sends_reasoning=False,
        rejected_of_custom=("temperature",),
    ),
    "groq": Contract(
        rules=(
            rules.allow_common_fields_and("max_completion_tokens", "reasoning_effort"),
            rules.allow_message_fields(),
            rules.reject_names,
            rules.limit_temperature(2),
            rules.allow_efforts("low", "medium", "high"),
            rules.require_paired_calls,
        ),
        effort="low",
        rejected_of_custom=("max_tokens",),
    ),
    "openrouter": Contract(
        rules=(
            rules.allow_common_fields_and("max_tokens", "reasoning_effort", "reasoning"),
            rules.allow_message_fields("reasoning", "reasoning_details"),
            rules.limit_temperature(2),
            rules.allow_efforts("low", "medium", "high", "xhigh", "max", "minimal", "none"),
            rules.require_paired_calls,
        ),
        formatter=responses.OpenRouter,
        render_error=responses.render_numeric_code_error,
        effort="low",
        reasoning_field="reasoning",
    ),
    "gemini": Contract(
        rules=(
            rules.allow_common_fields_and("max_tokens", "max_completion_tokens", "reasoning_effort"),
            rules.allow_message_fields(),
            rules.limit_temperature(2),
            rules.allow_efforts("minimal", "low", "medium", "high"),
            rules.require_signed_calls,
            rules.require_object_arguments,
            rules.require_paired_calls,
        ),
        formatter=responses.Gemini,
        render_error=responses.render_list_error,
        temperature=None,
        effort="low",
        sends_reasoning=False,
    ),
    "mistral": Contract(
        rules=(
            rules.allow_fields(
                *("model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"),
                *("max_tokens", "stop", "random_seed", "response_format", "frequency_penalty", "presence_penalty", "n"),
            ),
            rules.allow_message_fields(),
            rules.limit_temperature(1.5),
            rules.require_role_order(
                tool=("tool", "assistant"), user=("user", "assistant"), assistant=("user", "assistant")
            ),
            rules.require_assistant_content,
            rules.require_nine_character_ids,
            rules.require_object_arguments,
            rules.require_paired_calls,
        ),
        formatter=responses.Mistral,
        render_error=responses.render_object_error,
        rejection_status=422,
        temperature=1.5,
        rejected_of_custom=("stream_options", "temperature"),
    ),
    "vllm": Contract(
        rules=_LOCAL,
        formatter=responses.Vllm,
        render_error=responses.render_object_error,
        reasoning_field="reasoning_content",
    ),
    "lmstudio": Contract(rules=_LOCAL, formatter=responses.LmStudio),
    "llamacpp": Contract(
        rules=_LOCAL,
        formatter=responses.LlamaCpp,
        render_error=responses.render_numeric_code_error,
        rejection_status=500,
    ),
    "custom": Contract(
        rules=(
            rules.allow_common_fields_and("max_tokens"),
            rules.reject_strict,
            rules.require_text_content,
            rules.allow_message_fields("reasoning"),
            *_LOCAL,
        ),
        reasoning_field="reasoning",
    ),
}
