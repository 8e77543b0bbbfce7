"""Why a provider refuses a request: one of a closed set of codes, from its fields first, then its words and status."""

import json
import re
from typing import Any

# What providers write into `code`, `type`, `status` or `param`, in small letters with underscores.
_OVERFLOW, _FILTERED, _CREDIT, _BUSY = "model_context_exceeded", "model_filtered", "model_no_credit", "model_busy"
_KEY, _ACCESS, _UNKNOWN_MODEL, _FAILED = "model_key_rejected", "model_access_denied", "model_not_found", "model_failed"
_KINDS: dict[str, tuple[str, ...]] = {
    _OVERFLOW: (
        *("context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "prompt_too_long"),
        *("request_too_large", "input_too_long", "max_context_length_exceeded"),
    ),
    _FILTERED: (
        *("content_filter", "data_inspection_failed", "datainspectionfailed", "content_policy_violation"),
        *("responsibleaipolicyviolation", "moderation_blocked", "prohibited_content", "content_filtered", "1301"),
        *("content_blocked", "sensitive_content", "unsafe_content", "input_moderation", "output_moderation"),
    ),
    _CREDIT: (
        *("insufficient_quota", "insufficient_balance", "insufficient_credits", "insufficient_credit"),
        *("billing_not_active", "billing_hard_limit_reached", "exceeded_current_quota_error", "arrearage"),
        *("credit_balance_too_low", "insufficient_funds", "payment_required"),
    ),
    _KEY: ("invalid_api_key", "authentication_error", "invalid_authentication", "invalid_authentication_error"),
    _UNKNOWN_MODEL: ("model_not_found", "model_not_exist", "model_not_found_error", "unknown_model"),
    _ACCESS: (
        *("unsupported_country_region_territory", "model_not_entitled", "permission_denied", "permission_error"),
        *("request_forbidden", "access_denied", "model_access_denied", "account_deactivated", "forbidden"),
    ),
    _BUSY: (
        *("rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests", "overloaded_error"),
        *("engine_overloaded", "engine_overloaded_error", "slow_down", "service_unavailable_error", "throttling"),
    ),
    _FAILED: ("tool_use_failed", "failed_generation", "output_parse_failed"),  # the model's own output
}
_CODE_OF_KIND = {kind: code for code, kinds in _KINDS.items() for kind in kinds}
# These say less than the words beside them, and more than a status of 400.
_SERVER_ERRORS = frozenset(
    {
        *("server_error", "internal_server_error", "internal_error", "internal", "service_error", "upstream_error"),
        *("bad_gateway", "gateway_timeout"),
    }
)

_LOADING = re.compile(
    r"\bloading (the )?(llm |this )?model\b|\bmodel\b.{0,200}\b(is|being|still|currently) (being )?load(ing|ed)\b"
    r"|\bmodel loading\b|\b(model|weights)\b.{0,40}\bwarming up\b|\bweights\b.{0,40}\bloading\b"
    r"|\bloading (\w+ ){0,3}weights\b",
    re.IGNORECASE | re.DOTALL,
)
_NOT_LOADED = re.compile(
    r"fail|error loading|unable|could not|couldn't|cannot|can't|not found|no model|out of memory|\boom\b|insufficient"
    r"|not enough|abort|cancel|stopped|terminated|killed|crash|timed out|time-?out",
    re.IGNORECASE,
)
_OVERFLOW_WORDS = re.compile(
    r"context_length_exceeded|(context|prompt|input|request|conversation).{0,40}(too (long|large)|exceed)"
    r"|(max\w*|exceed\w*).{0,20}context (length|window|size)|reduce the length|too many (input |prompt )?tokens"
    r"|exceed\w*.{0,20}(token limit|max_num_tokens)|input length should be"
    r"|`inputs` (tokens .{0,30}must be|must have)|maximum prompt length|greater than the context length"
    r"|context length of only|longer than the maximum model length|n_keep.{0,20}n_ctx|(context|kv cache).{0,20}full"
    r"|exceeds? (the )?(model'?s? )?(max\w* )?(token|sequence|input|context)",
    re.IGNORECASE,
)
_ABOUT_INPUT = re.compile(r"\b(inputs?|prompt|context|messages?|conversation|sequence|history)\b", re.IGNORECASE)
_ABOUT_TOKENS = re.compile(r"token|length|context", re.IGNORECASE)
_ABOUT_OUTPUT = re.compile(r"max_(new_|completion_|output_)?tokens|(output|completion|generated) tokens", re.IGNORECASE)
_LIMIT = re.compile(
    r"limit|max|exceed|at most|must (be|have)|less than|longer|greater|too (long|large|many)|only|>|≤|<=",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?")
_MIN_TOKENS = 256  # a smaller number is no size of a context
_PER_MINUTE = re.compile(r"limit:? (\d[\d,]*).{0,60}requested:? (\d[\d,]*)", re.IGNORECASE | re.DOTALL)
_FILTER_WORDS = re.compile(
    r"content (management|policy|filter|safety|moderation)|moderation|\bflagged\b|inappropriate content|\bunsafe\b"
    r"|sensitive (content|word|information)|safety (system|filter|polic|check)|prohibited content"
    r"|violat\w+.{0,60}polic(y|ies)|usage polic|不安全或敏感",
    re.IGNORECASE,
)
_OWN_OUTPUT = re.compile(
    r"failed to (parse|generate|decode).{0,20}(tool|function)|error parsing tool.?call|malformed.{0,10}(tool|function)"
    r"|failed_generation|(invalid|unparsable) (tool|function).?calls?\b.{0,40}(model|generat)",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"(not enough|insufficient|no|out of|low|used all.{0,20}) (\w+ )?(credits?|balance|funds)|insufficient_\w+"
    r"|balance (is )?(too low|insufficient|not enough)",
    re.IGNORECASE,
)
_BILLING = re.compile(r"billing|payment", re.IGNORECASE)
_WRONG_KEY = re.compile(
    r"api.?key.{0,30}(not valid|invalid|incorrect|wrong|missing|expired|revoked)"
    r"|(invalid|incorrect|wrong).{0,10}api.?key"
    r"|(invalid|missing|expired) (authorization|authentication|credentials|token)|unauthori[sz]ed|not authenticated",
    re.IGNORECASE,
)
_BUSY_WORDS = re.compile(
    r"rate.?limit|too.?many.?requests|overloaded|at capacity|too busy|temporarily unavailable|queue.{0,20}full",
    re.IGNORECASE,
)
_MODEL_MISSING = re.compile(
    r"model\b.{0,80}(not (found|exist)|does not exist|unknown|is not available)|unknown model", re.IGNORECASE
)
_PASSING = frozenset({408, 409, 425, 500, 502, 503, 504, 529})
_BAD_REQUEST = (None, 200, 400, 413, 422, 500)
_MAX_JUDGED = 4_000  # characters of words


def find_code(status: int | None, body: Any, words: str) -> str:
    """Returns the code of a failure, a key of `FAILURES`, for a response of an error or an error in a stream."""
    words = words[:_MAX_JUDGED]
    kinds = list_kinds(body)
    text = f"{' '.join(kinds)} {words}"
    if status in (None, 200, 409, 425, 429, 500, 503) and _LOADING.search(words) and not _NOT_LOADED.search(words):
        return "model_loading"
    if _is_overflow(status, text, words):
        return _OVERFLOW
    code = next((_CODE_OF_KIND[kind] for kind in kinds if kind in _CODE_OF_KIND), None)
    if code is not None and not (code == _BUSY and _NO_CREDIT.search(text)):
        return code
    if (said := _judge_words(status, text)) is not None:
        return said
    return _FAILED if status == 400 and not _SERVER_ERRORS.isdisjoint(kinds) else _judge_status(status)


def _is_overflow(status: int | None, text: str, words: str) -> bool:
    rate = _PER_MINUTE.search(words)
    if rate is not None and status in (413, 429):  # it would never fit into the limit of a minute
        return _parse_number(rate[2]) > _parse_number(rate[1])
    if status == 413:
        return True
    if status not in _BAD_REQUEST:
        return False
    kinds = set(re.findall(r"\w+", text.lower()))
    if kinds & set(_KINDS[_OVERFLOW]):
        return True
    if _ABOUT_OUTPUT.search(words) and not _ABOUT_INPUT.search(words):
        return False
    return _OVERFLOW_WORDS.search(text) is not None or _has_size_over_limit(words)


def _has_size_over_limit(words: str) -> bool:
    """Whether words about input or tokens have a limit and two sizes, of which one is larger than the other."""
    if not (_ABOUT_INPUT.search(words) and _ABOUT_TOKENS.search(words) and _LIMIT.search(words)):
        return False
    sizes = [size for size in map(_parse_number, _NUMBER.findall(words)) if size >= _MIN_TOKENS]
    return len(set(sizes)) > 1


def _parse_number(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))


def _judge_words(status: int | None, text: str) -> str | None:
    if status in (None, 200, 400, 403, 409, 422, 451) and _FILTER_WORDS.search(text):
        return _FILTERED
    if status in (None, 200, 400, 422, 500) and _OWN_OUTPUT.search(text):
        return _FAILED
    if status == 402 or (status in (None, 200, 400, 403, 429) and _NO_CREDIT.search(text)):
        return _CREDIT
    if status in (None, 200, 403) and _BILLING.search(text):
        return _CREDIT
    if status in (None, 200, 400, 401, 403) and _WRONG_KEY.search(text):
        return _KEY
    if status in (None, 200, 400, 403, 422) and _MODEL_MISSING.search(text):
        return _UNKNOWN_MODEL
    if status in (None, 200, 503, 529) and _BUSY_WORDS.search(text):
        return _BUSY
    return None


def _judge_status(status: int | None) -> str:
    match status:
        case 401:
            return _KEY
        case 402:
            return _CREDIT
        case 403 | 451:
            return _ACCESS
        case 404:
            return _UNKNOWN_MODEL
        case 429:
            return _BUSY
        case int() if 300 <= status < 400:  # a redirect, which is not followed
            return _UNKNOWN_MODEL
        case int() if 400 <= status < 500 and status not in _PASSING:
            return "model_request_rejected"
        case _:
            return _FAILED


def find_sentence(body: Any) -> str:
    """Returns a provider's words about an error."""
    match body:
        case str():
            return body
        case {"error": value} if value:
            return find_sentence(value)
        case {"message": str(text)} | {"detail": str(text)} | {"msg": str(text)} | {"error_msg": str(text)}:
            return text
        case None:
            return ""
        case _:
            return json.dumps(body, ensure_ascii=False, default=str)


def list_kinds(body: Any) -> list[str]:
    """Returns the values of the fields that say of which kind an error is, in small letters with underscores."""
    if not isinstance(body, dict):
        return []
    inner = body.get("error")
    fields = {**body, **(inner if isinstance(inner, dict) else {})}
    names = ("code", "type", "error_type", "status", "reason", "param")
    values = [str(fields[name]) for name in names if isinstance(fields.get(name), str | int) and fields[name]]
    return [re.sub(r"\W+", "_", value.lower()).strip("_") for value in values]
