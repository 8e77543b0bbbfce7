"""The forms of error bodies, and how the responses of providers differ from OpenAI's documentation."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

Json = dict[str, Any]
SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}


def render_flat_error(message: str, status: int) -> Json:
    kind, code = {
        400: ("invalid_request_error", "wrong_api_format"),
        429: ("too_many_requests_error", "request_quota_exceeded"),
    }.get(status, ("server_error", "overloaded"))
    return {"message": message, "type": kind, "param": "quota", "code": code}


def render_openai_error(message: str, status: int) -> Json:
    return {"error": render_flat_error(message, status)}


def render_numeric_code_error(message: str, status: int) -> Json:
    return {"error": {"code": status, "message": message, "metadata": {"provider_name": "somebody"}}}


def render_object_error(message: str, status: int) -> Json:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}


def render_list_error(message: str, status: int) -> list[Json]:
    kind = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}.get(status, "UNAVAILABLE")
    return [{"error": {"code": status, "message": message, "status": kind}}]


def drop_calls(response: Json) -> None:
    """Removes the tool calls, as several servers of local models did: the response stops without any."""
    for choice in response["choices"]:
        choice["delta"].pop("tool_calls", None)
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "stop"


def _messages(response: Json) -> Iterator[Json]:
    """Returns the delta or message of each choice."""
    return map(_message, response["choices"])


def _message(choice: Json) -> Json:
    return choice["delta"] if "delta" in choice else choice["message"]


class Formatter:
    """Converts one response: `format` returns the chunks that replace a chunk or a whole response of OpenAI."""

    prefix = ""  # of each event
    sends_done = True

    def __init__(self) -> None:
        self._calls: dict[int, Json] = {}

    def format(self, response: Json) -> list[Json]:
        return [response]

    def format_error(self, error: Any) -> Any:
        """Converts an error in the middle of a stream."""
        return error

    def _collect_calls(self, response: Json) -> None:
        """Removes the calls from a chunk, and merges their fragments to complete calls."""
        for message in _messages(response):
            for call in message.pop("tool_calls", None) or ():
                collected = self._calls.setdefault(call.get("index", 0), {"type": "function", "function": {}})
                collected |= {"id": call["id"]} if "id" in call else {}
                function, more = collected["function"], call["function"]
                function["name"] = more.get("name") or function.get("name", "")
                function["arguments"] = function.get("arguments", "") + more.get("arguments", "")


class Ollama(Formatter):
    """All calls have the same id."""

    def format(self, response: Json) -> list[Json]:
        for message in _messages(response):
            for call in message.get("tool_calls") or ():
                call |= {"id": "call_1"} if "id" in call else {}
        return [response]


class Anthropic(Formatter):
    """Reasoning is left out."""

    def format(self, response: Json) -> list[Json]:
        for message in _messages(response):
            for name in ("reasoning", "reasoning_content"):
                message.pop(name, None)
        return [response]


class OpenAi(Anthropic):
    """As documented, which has no reasoning in chat completions."""


class OpenRouter(Formatter):
    prefix = ": OPENROUTER PROCESSING\n\n"  # comments that keep the connection alive

    def format_error(self, error: Json) -> Json:
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return error | {"id": "gen", "choices": [choice]}


class Gemini(Anthropic):
    """Each call is one chunk, at index 0 and without an id; the first one is signed; the finish reason is stop."""

    def format(self, response: Json) -> list[Json]:
        super().format(response)
        self._collect_calls(response)
        ends = any(choice.get("finish_reason") for choice in response["choices"])
        calls = [*self._calls.values()] if ends else []
        chunks: list[Json] = []
        for number, call in enumerate(calls):
            signed = {"extra_content": SIGNATURE} if number == 0 else {}
            delta = {"role": "assistant", "tool_calls": [{**call, "index": 0, "id": ""} | signed]}
            chunks.append({**response, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None})
        for choice in response["choices"]:
            if choice.get("finish_reason") == "tool_calls":
                choice["finish_reason"] = "stop"
        return [*chunks, response]


class Mistral(Formatter):
    """Calls come in the last chunk; reasoning is a part of the content."""

    def format(self, response: Json) -> list[Json]:
        self._collect_calls(response)
        for choice in response["choices"]:
            message = _message(choice)
            reasoning = message.pop("reasoning", None) or message.pop("reasoning_content", None)
            if reasoning:
                message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]}]
            elif message.get("content"):
                message["content"] = (
                    [{"type": "text", "text": message["content"]}]
                    if len(message["content"]) > 5
                    else message["content"]
                )
            if choice.get("finish_reason"):
                choice["finish_reason"] = {"length": "model_length"}.get(
                    choice["finish_reason"], choice["finish_reason"]
                )
                message["tool_calls"] = [
                    {**call, "index": index, "id": f"a1b2c3d{index:02}"} for index, call in self._calls.items()
                ]
        return [response]


class Vllm(Formatter):
    """Reasoning is `reasoning_content`; the last chunk repeats each call completely."""

    def format(self, response: Json) -> list[Json]:
        for choice in response["choices"]:
            message = _message(choice)
            if "reasoning" in message:
                message["reasoning_content"] = message.pop("reasoning")
            if message.get("tool_calls") and choice.get("finish_reason") is None:
                fragments = json.loads(json.dumps(message["tool_calls"]))
                self._collect_calls({"choices": [{"delta": {"tool_calls": fragments}}]})
            elif choice.get("finish_reason") == "tool_calls":
                message["tool_calls"] = [{**call, "index": index} for index, call in self._calls.items()]
        return [response]


class LmStudio(Formatter):
    """Reasoning is text in tags."""

    def __init__(self) -> None:
        super().__init__()
        self._is_reasoning = False

    def format(self, response: Json) -> list[Json]:
        for choice in response["choices"]:
            message = _message(choice)
            reasoning = message.pop("reasoning", None) or message.pop("reasoning_content", None)
            if reasoning:
                message["content"] = reasoning if self._is_reasoning else f"<think>\n{reasoning}"
                self._is_reasoning = True
            elif self._is_reasoning and (
                message.get("content") or message.get("tool_calls") or choice.get("finish_reason")
            ):
                message["content"] = f"\n</think>\n\n{message.get('content') or ''}"
                self._is_reasoning = False
        return [response]


class LlamaCpp(LmStudio):
    """Like LM Studio, but each call comes in one chunk, its arguments are an object, and there is no [DONE]."""

    sends_done = False

    def format(self, response: Json) -> list[Json]:
        super().format(response)
        self._collect_calls(response)
        for choice in response["choices"]:
            if self._calls and choice.get("finish_reason"):
                message = _message(choice)
                message["tool_calls"] = [self._as_object(call, index) for index, call in self._calls.items()]
        return [response]

    def _as_object(self, call: Json, index: int) -> Json:
        arguments = call["function"]["arguments"]
        with suppress(ValueError):
            arguments = json.loads(arguments)
        return {**call, "index": index, "function": {**call["function"], "arguments": arguments}}
