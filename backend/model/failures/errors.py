"""Errors of model requests: a code, a sentence for the user, and the provider's own words for the log."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from backend.errors import BackendError
from backend.model.failures import refusals
from backend.model.failures.waits import find_wait

MAX_WORDS_CHARS = 500  # of what a provider says


@dataclass(frozen=True)
class Failure:
    sentence: str
    allow_retry: bool = True
    """Whether the user is offered another try."""
    is_passing: bool = False
    """Whether the request may be sent again at once, unless a part of the response was shown."""
    outcome: str = "failed"
    """The label in the metric of requests to the model."""
    reason: str = ""
    """For the operator: what has to be changed."""


def _setup(reason: str) -> Failure:
    return Failure(
        f"The assistant's model is not set up correctly ({reason}). The person who runs this server can see why in "
        "its log.",
        allow_retry=False,
        outcome="refused",
        reason=f"{reason[0].upper()}{reason[1:]}.",
    )


_RAISE_CHARS = "The person who runs this server can raise LIMIT_ANSWER_CHARS."

# docs/troubleshooting.md has a row for each.
FAILURES: dict[str, Failure] = {
    "model_unreachable": Failure(
        "The model cannot be reached right now. Try again in a moment.", is_passing=True, outcome="unreachable"
    ),
    "model_timeout": Failure(
        "The model took too long to answer. Try again in a moment.", is_passing=True, outcome="timeout"
    ),
    "model_busy": Failure(
        "The model is busy right now. Try again in a moment.", is_passing=True, outcome="rate_limited"
    ),
    "model_failed": Failure("The model's service failed. Try again in a moment.", is_passing=True),
    "model_key_rejected": _setup("its key was rejected"),
    "model_not_found": _setup("the model's name or address is unknown"),
    "model_no_credit": _setup("the account has no credit"),
    "model_access_denied": _setup("its provider denies access"),
    "model_request_rejected": Failure(
        "The model's server rejected the request. The person who runs this server can see why in its log.",
        allow_retry=False,
        outcome="refused",
        reason="It rejected the request.",
    ),
    "model_filtered": Failure(
        "The model's provider blocked this message by its content filter. Ask in other words.",
        allow_retry=False,
        outcome="refused",
    ),
    "model_context_exceeded": Failure(
        "This conversation is too long for the model. Start a new one, or ask the person who runs this server to "
        "lower HISTORY_TOKENS.",
        allow_retry=False,
        outcome="refused",
    ),
    "model_context_too_small": Failure(
        "The model's context has {context:,} tokens, and the assistant's instructions and tools need about "
        "{needed:,}. {cure}",
        allow_retry=False,
        outcome="refused",
    ),
    "model_instructions_too_long": Failure(
        "The model's context cannot hold the assistant's instructions and tools, which need about {needed:,} tokens. "
        "{cure}",
        allow_retry=False,
        outcome="refused",
    ),
    "model_message_too_long": Failure(
        "This message is too long for the model. Shorten it, or ask the person who runs this server for a model with a "
        "larger context.",
        allow_retry=False,
        outcome="refused",
    ),
    "model_answer_read_too_much": Failure(
        "What this answer has read does not fit into the model's context{of_context}. Ask for less at once, or ask the "
        "person who runs this server for a larger context.",
        allow_retry=False,
        outcome="refused",
    ),
    "model_loading": Failure(
        "The model is still being loaded. Try again in a few minutes; the person who runs this server can raise "
        "LLM_FIRST_TOKEN_SECONDS, so that answers wait longer.",
        outcome="timeout",
    ),
    "model_silent": Failure(
        "The model did not begin to answer within {seconds:g} seconds. Try again; if it needs more time, the person "
        "who runs this server can raise LLM_FIRST_TOKEN_SECONDS.",
        outcome="timeout",
    ),
    "model_stalled": Failure(
        "The model stopped in the middle of its answer: nothing came for {seconds:g} seconds. Try again; if it needs "
        "more time, the person who runs this server can raise LLM_SILENCE_SECONDS.",
        outcome="timeout",
    ),
    "model_cut_off": Failure("The model's answer was cut off before its end. Try again.", is_passing=True),
    "model_unreadable": Failure("The model's answer could not be read. Try again.", is_passing=True),
    "model_output_limit": Failure(
        "The model used up its output limit before it said anything. Ask for less at once, or raise LLM_MAX_TOKENS, "
        "and LLM_AGENT_MAX_TOKENS for agents."
    ),
    "model_answer_too_long": Failure(
        f"The model's answer was ended because it has more than {{most:,}} characters. {_RAISE_CHARS}"
    ),
    "model_answer_too_large": Failure(
        "The model's answer was ended because its server sent more data than an answer of {most:,} characters needs. "
        + _RAISE_CHARS
    ),
    "model_unusable_answer": Failure(
        "The model twice asked for something that does not exist here or cannot be read. Try again, or rephrase it."
    ),
}


class ModelError(BackendError):
    """A request to a model failed, with a code of `FAILURES`.

    `values` are those in its sentence. `provider_status` is the HTTP status of its response, if there was one; `words`
    are the provider's, for the log alone: they may quote the conversation.
    """

    def __init__(self, code: str, *, status: int | None = None, words: str = "", **values: Any) -> None:
        failure = FAILURES[code]
        super().__init__(failure.sentence.format(**values))
        self.code, self.values = code, values
        self.provider_status = status
        self.words = words
        self.wait_seconds: float | None = None
        """How long the provider asks to wait before the request is sent again."""
        self.request_tokens: int | None = None
        """How many tokens the provider has counted, if it rejects a request as too long for the model's context."""
        self.context_tokens: int | None = None
        self.allow_retry = failure.allow_retry
        self.failure = failure
        self.is_passing = failure.is_passing

    @property
    def rejects_tools(self) -> bool:
        """Whether the provider rejects the request because the model cannot call tools."""
        return self.provider_status in (400, 404, 422, 500, 501) and _WITHOUT_TOOLS.search(self.words) is not None

    @classmethod
    def of_body(cls, body: Any, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> Self:
        """The error that a provider sent as a body or as a frame of a stream; Gemini sends a list of one."""
        sent = body
        if isinstance(body, list) and body:
            body = body[0]
        words = refusals.find_sentence(body)
        statuses = [int(kind) for kind in refusals.list_kinds(body) if re.fullmatch(r"[45]\d\d", kind)]
        code = refusals.find_code(status or next(iter(statuses), None), body, words)
        error = cls(code, status=status, words=words)
        error.wait_seconds = find_wait(headers or {}, sent, words)
        if error.code == "model_context_exceeded":
            error.request_tokens, error.context_tokens = _find_sizes(body, words)
        return error

    def words_for_log(self, messages: Iterable[Any], key: str) -> str:
        """The provider's words without keys and quotations; none where it rejects the key: it may show a part of it."""
        if self.code == "model_key_rejected":
            return ""
        words = self.words[: 4 * MAX_WORDS_CHARS]
        words = _SECRET.sub("…", words.replace(key, "…") if key else words)
        words = _remove_quotes(words, list(_iter_texts(messages)))
        words = "".join(one if one.isprintable() else " " for one in words)
        return words if len(words) <= MAX_WORDS_CHARS else f"{words[:MAX_WORDS_CHARS]}…"


_CONTEXT_SIZE = re.compile(
    r"(?:\bn_ctx\b|maximum model length|(?:context|maximum prompt) (?:length|window|size)(?! by)(?!.*\bn_ctx\b))"
    r"[^.\d]{0,30}?(\d[\d,]{2,8})",
    re.IGNORECASE,
)
_WITHOUT_TOOLS = re.compile(
    r"not support (tools|tool.?(use|call)|function.?call)|support tool use|tool.?choice\W{0,3} requires"
    r"|tools? (param )?requires? --jinja|(tools?|tool use|tool calls?|tool calling) (is|are) not supported",
    re.IGNORECASE,
)


def _find_sizes(body: Any, words: str) -> tuple[int | None, int | None]:
    """Returns the tokens of the request and of the context, by llama.cpp's fields or, of the context, by the words."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    fields = inner if isinstance(inner, dict) else {}
    request, context = fields.get("n_prompt_tokens"), fields.get("n_ctx")
    if all(isinstance(size, int) and size > 0 for size in (request, context)):
        return request, context
    written = _CONTEXT_SIZE.search(words)
    return None, int(written[1].replace(",", "")) if written else None


_SECRET = re.compile(
    r"\b(sk|gsk|csk|pk|key|AIza|xai|hf)[-_][\w-]{8,}|\bAIza[\w-]{20,}|(?<=Bearer )\S+|[\w-]{0,40}\*{3,}[\w-]{0,40}",
    re.IGNORECASE,
)
# Fields of a message without a text that somebody has written, and encrypted fields of a replay, which may be long.
_NO_TEXTS = (
    "role",
    "type",
    "id",
    "name",
    "tool_call_id",
    "encrypted_content",
    "data",
    "signature",
    "thought_signature",
)
_QUOTE = 16  # characters that a quotation has at least, and a short text that is quoted whole at most


def _iter_texts(value: Any) -> Iterator[str]:
    """Every text in the messages but the instructions, also as JSON writes it: errors quote the request's body."""
    match value:
        case {"role": "system"}:
            return
        case str():
            yield from {value, json.dumps(value)[1:-1]}
        case dict():
            for name, part in value.items():
                if name not in _NO_TEXTS:
                    yield from _iter_texts(part)
        case list() | tuple():
            for part in value:
                yield from _iter_texts(part)


def _remove_quotes(words: str, texts: list[str]) -> str:
    for text in texts:
        if 4 <= len(text) < _QUOTE:
            words = words.replace(text, "…")
    quoted: set[int] = set()
    for start in range(len(words) - _QUOTE + 1):
        if any(words[start : start + _QUOTE] in text for text in texts):
            quoted.update(range(start, start + _QUOTE))
    return re.sub("\0+", "…", "".join("\0" if place in quoted else one for place, one in enumerate(words)))
