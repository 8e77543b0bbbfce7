"""What is sent to a provider is valid whatever was stored, and what it says of a failure is safe to log."""

import json
import re
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.model.failures.errors import ModelError
from backend.model.providers import PROFILES, ModelEndpoint, resolve
from backend.model.requests.bodies import (
    OPTIONAL,
    alternate_roles,
    describe_tools,
    lower_output_limit,
    rejected_field,
    remove_fields,
    repair_messages,
    repair_tools,
)
from backend.model.requests.turn_forms import render_turns
from backend.model.tool_calls import legal_name
from backend.settings import BackendSettings, ProviderName
from common.environment import read_settings
from tests.examples import same_examples
from tests.strict_provider.contracts import CONTRACTS
from tests.strict_provider.responses import Json

Message = dict[str, Any]

_texts = st.sampled_from(["", "hello", "what is there?"])
_ids = st.sampled_from(["", "a", "b", "call_1"])
_calls = st.fixed_dictionaries(
    {
        "id": _ids,
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["add_task", "functions.add_task", "x" * 99, "bad name!", ""]),
                "arguments": st.sampled_from(["{}", '{"a": 1}', '{"a": "he said "hi""}', "[1]", "", '"{}"']),
            }
        ),
    }
)
_messages = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": _texts}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none(), "tool_calls": st.lists(_calls, min_size=1, max_size=3)}
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": _ids, "content": _texts}),
)
_histories = st.lists(_messages, max_size=8).map(lambda messages: [{"role": "system", "content": "Help."}, *messages])


def _make_calls(calls: list[Json], finished: int, message: Message) -> list[Message]:
    """A model turn whose last calls may have no output."""
    outputs = [{"role": "tool", "tool_call_id": call["id"], "content": "Done."} for call in calls[:finished]]
    return [{**message, "role": "assistant", "tool_calls": calls}, *outputs]


_THOUGHT = "I think."
_thoughts = st.fixed_dictionaries({}, optional={"replay": st.just({"message": {"reasoning": _THOUGHT}, "calls": []})})
_said = st.fixed_dictionaries({"role": st.just("user"), "content": _texts.filter(bool)})
_turns = st.builds(
    _make_calls,
    st.lists(_calls, min_size=1, max_size=3),
    st.integers(0, 3),
    st.builds(lambda text, thought: {"content": text, **thought}, st.none() | _texts, _thoughts),
)
_answers = st.builds(
    lambda text, thought: {"role": "assistant", "content": text, **thought}, _texts.filter(bool), _thoughts
)
_runs = st.tuples(
    st.lists(_said, min_size=1, max_size=2), st.lists(_turns, max_size=2), st.lists(_answers, max_size=1)
).map(lambda run: [*run[0], *(message for turn in run[1] for message in turn), *run[2]])
_conversations = st.builds(
    lambda runs, turns: [
        {"role": "system", "content": "Help."},
        *(message for run in runs for message in run),
        {"role": "user", "content": "hello"},
        *(message for turn in turns for message in turn),
    ],
    st.lists(_runs, max_size=3),
    st.lists(_turns, max_size=1),
)
"""As the SDK makes them of what is stored: a run may end without an answer, and the last one goes on."""


def check_calls(messages: list[Message]) -> None:
    ids: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        for call in message.get("tool_calls") or ():
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
        ids += waiting
    assert waiting == []
    assert len(set(ids)) == len(ids)


@given(_histories, st.booleans())
def test_any_history_is_sent_validly(history: list[Message], short_ids: bool) -> None:
    sent = repair_messages(history, short_ids=short_ids)
    check_calls(sent)
    kept = [message["content"] for message in history if message["role"] == "user"]
    assert [message["content"] for message in sent if message["role"] == "user"] == kept
    if short_ids:
        calls = [call for message in sent for call in message.get("tool_calls") or ()]
        assert all(re.fullmatch(r"[0-9a-z]{9}", call["id"]) for call in calls)


@given(_histories)
def test_user_and_assistant_take_turns(history: list[Message]) -> None:
    sent = alternate_roles(repair_messages(history))
    check_calls(sent)
    assert alternate_roles(sent) == sent
    for before, after in pairwise(sent):
        assert (before["role"], after["role"]) not in {("user", "user"), ("tool", "user"), ("system", "assistant")}
        if not (before.get("tool_calls") or after.get("tool_calls")):
            assert before["role"] != "assistant" or after["role"] != "assistant"


@given(_histories)
def test_a_history_that_grows_is_sent_as_a_longer_one(history: list[Message]) -> None:
    """So that a server's cache of what it has read helps."""
    end = {"role": "user", "content": "more"}
    before = repair_messages([*history, end])
    after = repair_messages([*history, end, {"role": "assistant", "content": "yes"}])
    assert after[: len(before)] == before


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("add_task", "add_task"),
        ("functions.add_task", "add_task"),
        ("add_task<|channel|>commentary", "add_task"),
        ("functions.add_task:0", "add_task"),
        ("default_api.add_task", "add_task"),
        ("add task!", "add_task_"),
        ("", "unknown"),
        ("x" * 99, "x" * 64),
    ],
)
def test_names_of_tools(written: str, name: str) -> None:
    assert legal_name(written) == name


@pytest.mark.parametrize("field", OPTIONAL)
def test_an_optional_field_that_is_rejected_is_found(field: str) -> None:
    body: dict[str, Any] = dict.fromkeys((*OPTIONAL, "model", "messages", "tools", "tool_choice"), 1)
    assert rejected_field(body, f"{field}: extra inputs are not permitted") == field
    assert rejected_field({}, field) is None


@pytest.mark.parametrize("field", ["model", "messages", "tools", "tool_choice"])
def test_a_field_that_is_needed_is_never_left_out(field: str) -> None:
    assert rejected_field({field: 1, "temperature": 1}, f"{field} is not valid") is None


def chat_model(provider: ProviderName) -> str:
    """A model that the provider offers by chat completions."""
    return OLDER_OPENAI if provider == "openai" else PROFILES[provider].model or "m"


def to_provider(provider: ProviderName, messages: list[Message], model: str | None = None, **more: Any) -> Json:
    """The request for chat completions as the provider is sent it."""
    profile = PROFILES[provider]
    body = {"model": model or chat_model(provider), "messages": messages, "max_tokens": 1000, "stream": True}
    shaped = profile.shape(body | {"stream_options": {"include_usage": True}, "temperature": 2.0} | more)
    return {**shaped, "messages": render_turns(shaped["messages"], profile.turn_form)}


OLDER_OPENAI = "gpt-4.1-mini"
TOOL: Json = {"type": "function", "function": {"name": "add_task", "parameters": {"type": "object"}, "strict": True}}
OTHER_TOOL: Json = {"type": "function", "function": {"name": "list_tasks", "parameters": {"type": "object"}}}
TOOLS: Json = {"tools": [TOOL, OTHER_TOOL], "tool_choice": "auto"}
HELLO: Message = {"role": "user", "content": "hello"}


def test_each_provider_has_a_profile_and_a_contract() -> None:
    assert set(PROFILES) == set(get_args(ProviderName)) == {*CONTRACTS, "offline"}


@pytest.mark.parametrize("provider", CONTRACTS)
@same_examples(50)
@given(_conversations, st.sampled_from([TOOLS, {}]))
def test_provider_accepts_any_conversation(provider: ProviderName, messages: list[Message], more: Json) -> None:
    """With tools, and without, as a summary is requested."""
    contract, profile = CONTRACTS[provider], PROFILES[provider]
    if contract.reasoning_field is None and profile.turn_form.replay != "none":  # it sends none
        messages = [remove_fields(message, "replay") for message in messages]
    sent = to_provider(provider, messages, **more)
    assert [*contract.find_violations(sent)] == []
    assert (sent.get("temperature"), sent.get("reasoning_effort")) == (contract.temperature, contract.effort)
    assert sent[profile.max_tokens_field] == 1000
    assert ("stream_options" in sent) is ("stream_options" not in profile.omits)
    thoughts = {key: message[key] for message in sent["messages"] for key in message if message[key] == _THOUGHT}
    called = [message for message in messages if message.get("tool_calls")]
    is_replayed = contract.reasoning_field is not None and any("replay" in message for message in called)
    assert thoughts == ({"reasoning": _THOUGHT} if is_replayed else {})


@pytest.mark.parametrize("provider", CONTRACTS)
def test_custom_profile_leaves_out_what_a_provider_rejects(provider: ProviderName) -> None:
    contract, rejected = CONTRACTS[provider], list[str]()
    sent = to_provider("custom", [HELLO], model=chat_model(provider), **TOOLS)
    while reason := next(contract.find_violations(sent), None):
        field = rejected_field(sent, reason)
        assert field, reason
        rejected.append(field)
        sent = remove_fields(sent, field)
    assert tuple(rejected) == contract.rejected_of_custom


# models that are asked otherwise than the provider's own → temperature, effort
OTHERS: dict[tuple[ProviderName, str], tuple[float | None, str | None]] = {
    ("cerebras", "qwen-3.8-27b"): (0.7, None),
    ("openai", "gpt-4o-mini"): (0.7, None),
    ("openai", "gpt-5-mini"): (None, None),
    ("openai", "o4-mini"): (None, None),
    ("openai", "gpt-5.6-luna"): (None, "none"),
    ("openai", "gpt-6-luna"): (None, "none"),
    ("ollama", "gpt-oss:20b"): (0.7, "low"),
    ("anthropic", "claude-3-haiku-20240307"): (0.7, None),
    ("anthropic", "claude-opus-4-20250514"): (0.7, None),
    ("anthropic", "claude-sonnet-4-6"): (0.7, None),
    ("anthropic", "claude-opus-4-7"): (None, None),
    ("anthropic", "claude-sonnet-5"): (None, None),
    ("groq", "qwen/qwen3.6-27b"): (0.7, None),
    ("openrouter", "anthropic/claude-opus-5-5"): (0.7, None),
    ("custom", "gpt-oss"): (0.7, None),
}


@pytest.mark.parametrize(("provider", "name"), OTHERS)
def test_request_to_another_model(provider: ProviderName, name: str) -> None:
    sent = to_provider(provider, [HELLO], model=name, temperature=0.7)
    assert [*CONTRACTS[provider].find_violations(sent)] == []
    assert (sent.get("temperature"), sent.get("reasoning_effort")) == OTHERS[provider, name]


@pytest.mark.parametrize("provider", CONTRACTS)
def test_errors_of_a_provider(provider: ProviderName) -> None:
    for status, code in ((429, "model_busy"), (400, "model_request_rejected")):
        error = ModelError.of_body(CONTRACTS[provider].render_error("not now", status), status=status)
        assert (error.code, error.words) == (code, "not now")


CONTEXT = "model_context_exceeded"
# status, body → code
ERRORS: list[tuple[int | None, Any, str]] = [
    (400, {"error": {"message": "tools is not supported"}}, "model_request_rejected"),
    (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, "model_context_exceeded"),
    (400, {"message": "This model's maximum context length is 8192 tokens"}, "model_context_exceeded"),
    (400, {"message": "too many tokens: size limit exceeded by 1200 tokens."}, "model_context_exceeded"),
    (400, {"error": {"message": "The sum of prompt length (9000.0) should not exceed max_num_tokens (8192)"}}, CONTEXT),
    (400, {"error": {"message": "Your request exceeded model token limit: 8192 (requested: 9011)"}}, CONTEXT),
    (400, {"error": "The number of tokens to keep is greater than the context length. Load a larger one"}, CONTEXT),
    (400, {"error": "the model is loaded with context length of only 4096 tokens, which is not enough."}, CONTEXT),
    (400, {"error": {"message": "Range of input length should be [1, 30720]"}}, CONTEXT),
    (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens"}, CONTEXT),
    (422, {"error": {"message": "`inputs` must have less than 8193 tokens. Given: 9000"}}, CONTEXT),
    (400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812."}, CONTEXT),
    (400, {"error": {"message": "max_tokens must be at most 4096"}}, "model_request_rejected"),
    (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "model_loading"),
    (500, {"error": "unexpected server status: llm server loading model"}, "model_loading"),
    (503, {"error": "Model acme/small is currently loading", "estimated_time": 20}, "model_loading"),
    (503, {"error": "The model is still being loaded, please wait"}, "model_loading"),
    (503, {"error": "Model is warming up"}, "model_loading"),
    (503, {"error": {"message": "The model's weights are loading"}}, "model_loading"),
    (503, {"error": "weights loading"}, "model_loading"),
    (503, {"error": "Loading weights, try again later"}, "model_loading"),
    (500, {"error": {"message": "error loading model: out of memory"}}, "model_failed"),
    (500, {"error": "Model loading was stopped due to insufficient system resources."}, "model_failed"),
    (500, {"error": "model loading: out of memory"}, "model_failed"),
    (500, {"error": "CUDA out of memory while loading model"}, "model_failed"),
    (503, {"error": "Model loading aborted"}, "model_failed"),
    (503, {"error": "Model loading was cancelled"}, "model_failed"),
    (500, {"error": "timed out waiting for llama runner to start: loading model"}, "model_failed"),
    (500, {"error": "llama runner process has terminated while loading model: exit status 2"}, "model_failed"),
    (500, {"error": "The process crashed during model loading"}, "model_failed"),
    (500, {"error": "not enough memory for loading the model"}, "model_failed"),
    (500, {"error": "Failed to load model while loading model"}, "model_failed"),
    (400, {"error": {"message": "bad call", "code": "tool_use_failed"}}, "model_failed"),
    (401, {"error": "no"}, "model_key_rejected"),
    (402, {"detail": "pay"}, "model_no_credit"),
    (403, "<html>", "model_access_denied"),
    (404, {"error": {"message": "model not found"}}, "model_not_found"),
    (302, "", "model_not_found"),
    (429, {"message": "Requests per minute exceeded"}, "model_busy"),
    (429, {"error": {"type": "insufficient_quota", "message": "check your plan"}}, "model_no_credit"),
    (422, {"detail": [{"loc": ["body", "x"], "msg": "extra"}]}, "model_request_rejected"),
    (500, {"error": {"message": "boom"}}, "model_failed"),
    (503, {"error": {"message": "model is overloaded"}}, "model_busy"),
    (None, {"error": {"code": 502, "message": "bad gateway"}}, "model_failed"),
    (None, {"code": 1261, "msg": "The prompt is too long", "success": False}, "model_context_exceeded"),
    (None, {"error": {"code": "429", "message": "slow"}}, "model_busy"),
    (None, {"code": 2049, "message": "invalid api key"}, "model_key_rejected"),
    # Longer than what the key may send in a minute, and not only for now
    (413, {"error": {"message": "Limit 8000, Requested 9120", "code": "rate_limit_exceeded"}}, CONTEXT),
    (429, {"error": {"message": "tokens per min: Limit 30,000, Requested 31,204", "code": "rate_limit"}}, CONTEXT),
    (429, {"error": {"message": "Limit 30000, Used 29000, Requested 2000", "type": "tokens"}}, "model_busy"),
    (413, "Request Entity Too Large", CONTEXT),
    # Sizes in words that no list has
    (400, {"error": {"message": "Your messages have 70123 tokens, and at most 65536 fit"}}, CONTEXT),
    (400, {"error": {"message": "prompt is 210000 tokens > 200000 maximum"}}, CONTEXT),
    (400, {"error": {"message": "This request has 40,000 input tokens; the limit is 32,768"}}, CONTEXT),
    (
        400,
        {"error": {"message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}},
        CONTEXT,
    ),
    (
        400,
        {"error": {"message": "max_tokens: 64000 > 8192, which is the maximum of output tokens"}},
        "model_request_rejected",
    ),
    (400, {"error": {"message": "temperature must be at most 1.5"}}, "model_request_rejected"),
    (400, {"error": {"message": "tool_call_id of messages[1024] is not in messages[1023]"}}, "model_request_rejected"),
    # Filters
    (400, {"error": {"code": "data_inspection_failed", "message": "Input data may be bad."}}, "model_filtered"),
    (400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}, "model_filtered"),
    (400, {"error": {"type": "content_filter", "code": 421, "message": "Moderation Block"}}, "model_filtered"),
    (
        400,
        {"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
        "model_filtered",
    ),
    (403, {"error": {"message": "Your input was flagged. No credits were charged.", "code": 403}}, "model_filtered"),
    (400, {"error": {"message": "The request violates our usage policies"}}, "model_filtered"),
    (None, {"error": {"message": "blocked by our safety filter"}}, "model_filtered"),
    # A right key that may not do this
    (
        403,
        {"error": {"message": "Your organization must be verified", "code": "model_not_entitled"}},
        "model_access_denied",
    ),
    (403, {"error": {"code": "unsupported_country_region_territory"}}, "model_access_denied"),
    (403, "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>", "model_access_denied"),
    (403, {"error": {"message": "Invalid API key provided"}}, "model_key_rejected"),
    (403, {"error": {"message": "API key is missing"}}, "model_key_rejected"),
    (401, {"error": {"message": "Your API key has no credit left"}}, "model_key_rejected"),
    # What the provider owes
    (403, {"error": "Your team has used all available credits"}, "model_no_credit"),
    (400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}, "model_no_credit"),
    (429, {"error": {"type": "exceeded_current_quota_error", "message": "check your plan"}}, "model_no_credit"),
    (429, {"error": {"message": "Insufficient balance. Please recharge."}}, "model_no_credit"),
    (
        429,
        [{"error": {"status": "RESOURCE_EXHAUSTED", "message": "check your plan and billing details"}}],
        "model_busy",
    ),
    # Of the model, or of the server, whatever the status
    (400, {"message": "Failed to generate tool_calls.", "param": "failed_generation"}, "model_failed"),
    (400, {"error": {"message": "Oh.", "type": "server_error"}}, "model_failed"),
    (500, {"error": {"message": "error parsing tool call: raw='x'"}}, "model_failed"),
    (503, {"error": {"message": "Service is too busy", "type": "service_unavailable_error"}}, "model_busy"),
    (None, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "model_busy"),
    # Models
    (400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error"}}, "model_not_found"),
    (400, {"error": {"message": "The model `x` does not exist or you do not have access"}}, "model_not_found"),
    (418, {"error": {"message": "no"}}, "model_request_rejected"),
]


@pytest.mark.parametrize(("status", "body", "code"), ERRORS)
def test_error_codes(status: int | None, body: Any, code: str) -> None:
    assert ModelError.of_body(body, status=status).code == code


OFFLINE = ("offline", "http://127.0.0.1:8002/v1", "", "offline-rules")
CEREBRAS = ("cerebras", "https://api.cerebras.ai/v1", "k", "gpt-oss-120b")


def resolved(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> ModelEndpoint:
    for name in BackendSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in {"DATABASE_URL": "postgresql://localhost/todo", **variables}.items():
        monkeypatch.setenv(name, value)
    return resolve(read_settings(BackendSettings))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, OFFLINE),
        ({"OPENAI_API_KEY": "k"}, OFFLINE),
        ({"LLM_PROVIDER": "", "CEREBRAS_API_KEY": ""}, OFFLINE),
        ({"OFFLINE_URL": "http://x/v1"}, ("offline", "http://x/v1", "", "offline-rules")),
        ({"OFFLINE_URL": "http://x/v1", "CEREBRAS_API_KEY": "k"}, CEREBRAS),
        ({"CEREBRAS_API_KEY": "k"}, CEREBRAS),
        ({"LLM_API_KEY": "k"}, CEREBRAS),
        (
            {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "CEREBRAS_API_KEY": "c", "LLM_MODEL": "m"},
            ("openai", "https://api.openai.com/v1", "k", "m"),
        ),
        ({"LLM_PROVIDER": "ollama"}, ("ollama", "http://localhost:11434/v1", "", "qwen3:8b")),
        (
            {"LLM_PROVIDER": "anthropic", "LLM_API_KEY": "k"},
            ("anthropic", "https://api.anthropic.com/v1/", "k", "claude-opus-5-5"),
        ),
        (
            {"LLM_PROVIDER": "custom", "LLM_BASE_URL": "http://x/v1", "LLM_MODEL": "m"},
            ("custom", "http://x/v1", "", "m"),
        ),
    ],
)
def test_provider(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[str, ...]) -> None:
    endpoint = resolved(monkeypatch, variables)
    assert (endpoint.profile.name, endpoint.base_url, endpoint.api_key, endpoint.model) == expected


_TEXT, _NESTED = {"type": "string", "default": ""}, {"type": "object", "properties": {"title": {"type": "string"}}}
_TOOLS = [
    {
        "name": "search",
        "description": "Search\n  notes.",
        "parameters": {
            "type": "object",
            "title": "Search",
            "properties": {
                "title": {**_TEXT, "title": "Title", "description": "Its words."},
                "in": {"enum": ["notes", "all"], "default": "all", "type": "string"},
                "where": {"type": "array", "items": _NESTED, "default": []},
                "most": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 0},
            },
            "required": ["most"],
        },
    },
    {
        "name": "rename",
        "parameters": {
            "properties": {"id": {"type": "integer"}, "title": {**_TEXT, "description": "Its words."}},
            "required": ["id", "title"],
        },
    },
    {"name": "look"},
]
_SHOWN_TOOLS = """\
search(title?: string, in?: notes|all, where?: {"type": "object", "properties": {"title": {"type": "string"}}}[], \
most: integer|null): Search notes.
  title: Its words.
rename(id: integer, title: string)
look()"""


def test_tools_without_what_says_nothing() -> None:
    """Titles of schemas and empty defaults are left out; an argument named title stays."""
    tools = repair_tools([{"type": "function", "function": {**tool, "strict": True}} for tool in _TOOLS])
    arguments = tools[0]["function"]["parameters"]["properties"]
    assert "title" not in tools[0]["function"]["parameters"]
    assert arguments["title"] == {"type": "string", "description": "Its words."}
    assert arguments["where"] == {"type": "array", "items": _NESTED}
    assert [arguments[name]["default"] for name in ("in", "most")] == ["all", 0]


def test_tools_as_signatures() -> None:
    """An argument that was described is not described again; the example is of a tool that needs little."""
    tools = [{"type": "function", "function": tool} for tool in _TOOLS]
    body = describe_tools({"messages": [{"role": "system", "content": "Help."}], "tools": tools, "tool_choice": "auto"})
    assert body.keys() == {"messages"}
    [system] = body["messages"]
    assert system["content"].startswith("Help.\n\n# Tools")
    assert system["content"].endswith(f"\n{_SHOWN_TOOLS}")
    assert '{"name": "search", "arguments": {"most": "…"}}' in system["content"]


SECOND = {"error": {"message": "slow"}}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, SECOND, 7),
        ({"retry-after-ms": "1500", "retry-after": "2"}, SECOND, 1.5),
        ({"Retry-After": "6m0s"}, SECOND, 360),
        ({"x-ratelimit-reset-requests": "4s", "x-ratelimit-remaining-requests": "0"}, SECOND, 4),
        (
            {
                "x-ratelimit-reset-requests": "2h",
                "x-ratelimit-remaining-requests": "9",
                "x-ratelimit-reset-tokens": "250ms",
                "x-ratelimit-remaining-tokens": "0",
            },
            SECOND,
            0.25,
        ),
        ({}, {"error": {"metadata": {"retry_after_seconds": 4}}}, 4),
        ({}, [{"error": {"details": [{"retryDelay": "1.2s"}]}}], 1.2),
        ({}, {"error": {"message": "Please try again in 4s."}}, 4),
        ({}, {"error": {"message": "Please retry in 1m5.5s. Billing is 3s."}}, 65.5),
        ({}, {"error": {"message": "Rate limit is 20 in 1s, with no more said"}}, None),
        ({"retry-after": "soon"}, SECOND, None),
        ({"retry-after": "-3"}, SECOND, None),
        ({}, SECOND, None),
    ],
)
def test_how_long_a_provider_asks_to_wait(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    assert ModelError.of_body(body, status=429, headers=headers).wait_seconds == seconds


@pytest.mark.parametrize(
    ("words", "lower"),
    [
        ("max_tokens must be less than or equal to 4096", 4096),
        ("max_tokens: 8000 > 8,192, which is the maximum", None),
        ("max_tokens (8000) is too large: at most 2,048 output tokens, context 4096", 4096),
        ("messages are wrong", None),
    ],
)
def test_an_output_limit_that_is_too_large_is_lowered(words: str, lower: int | None) -> None:
    body = {"max_tokens": 8000, "messages": []}
    assert rejected_field(body, words) is None
    assert lower_output_limit(body, words) == (lower and {**body, "max_tokens": lower})


@pytest.mark.parametrize(
    ("words", "context"),
    [
        ("the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to", 4_096),
        ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7_424),
        ("The decoder prompt (length 21535) is longer than the maximum model length of 16384. Make sure", 16_384),
        ("the model is loaded with context length of only 4096 tokens, which is not enough", 4_096),
    ],
)
def test_context_that_a_server_names(words: str, context: int) -> None:
    """As LM Studio and vLLM do, not the size of the request."""
    error = ModelError.of_body({"error": words}, status=400)
    assert (error.code, error.context_tokens) == ("model_context_exceeded", context)
