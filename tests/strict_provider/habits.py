"""How each provider says that something went wrong, and what its streams have beside OpenAI's documentation."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

Json = dict[str, Any]
SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}


def _flat(message: str, status: int) -> Json:
    kind, code = {
        400: ("invalid_request_error", "wrong_api_format"),
        429: ("too_many_requests_error", "request_quota_exceeded"),
    }.get(status, ("server_error", "overloaded"))
    return {"message": message, "type": kind, "param": "quota", "code": code}


def _enveloped(message: str, status: int) -> Json:
    return {"error": _flat(message, status)}


def _numbered(message: str, status: int) -> Json:
    return {"error": {"code": status, "message": message, "metadata": {"provider_name": "somebody"}}}


def _object(message: str, status: int) -> Json:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}


def _listed(message: str, status: int) -> list[Json]:
    kind = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}.get(status, "UNAVAILABLE")
    return [{"error": {"code": status, "message": message, "status": kind}}]


def error(provider: str, message: str, status: int) -> Any:
    shapes: dict[str, Callable[[str, int], Any]] = {
        "cerebras": _flat,
        "openrouter": _numbered,
        "llamacpp": _numbered,
        "mistral": _object,
        "vllm": _object,
        "gemini": _listed,
    }
    return shapes.get(provider, _enveloped)(message, status)


def status_of_refusal(provider: str, reason: str) -> int:
    if provider == "mistral" and reason.startswith("extra_forbidden"):
        return 422
    return 500 if provider == "llamacpp" else 400


def failing_midway(provider: str) -> str:
    """The frame by which a stream that has begun ends."""
    told = error(provider, "overloaded", 503)
    if provider == "openrouter":
        told |= {"id": "gen", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}
    return f"data: {json.dumps(told)}\n\n"


def lose_calls(answer: Json) -> None:
    """As several servers of local models did: it ends with nothing called."""
    for choice in answer["choices"]:
        choice["delta"].pop("tool_calls", None)
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "stop"


def _said(answer: Json) -> Iterator[Json]:
    return map(_said_in, answer["choices"])


def _said_in(choice: Json) -> Json:
    return choice["delta"] if "delta" in choice else choice["message"]


class Answer:
    """One answer, as a provider sends it: `send` has the frames, or whole answers, that replace one of OpenAI's."""

    before = ""
    says_done = True

    def __init__(self) -> None:
        self._calls: dict[int, Json] = {}

    def send(self, answer: Json) -> list[Json]:
        return [answer]

    def _collect_calls(self, answer: Json) -> None:
        """Take the calls out of a frame, to send them whole."""
        for said in _said(answer):
            for call in said.pop("tool_calls", None) or ():
                begun = self._calls.setdefault(call.get("index", 0), {"type": "function", "function": {}})
                begun |= {"id": call["id"]} if "id" in call else {}
                function, more = begun["function"], call["function"]
                function["name"] = more.get("name") or function.get("name", "")
                function["arguments"] = function.get("arguments", "") + more.get("arguments", "")


class Ollama(Answer):
    """Ids are repeated."""

    def send(self, answer: Json) -> list[Json]:
        for said in _said(answer):
            for call in said.get("tool_calls") or ():
                call |= {"id": "call_1"} if "id" in call else {}
        return [answer]


class Anthropic(Answer):
    """Thoughts are not shown."""

    def send(self, answer: Json) -> list[Json]:
        for said in _said(answer):
            for name in ("reasoning", "reasoning_content"):
                said.pop(name, None)
        return [answer]


class OpenRouter(Answer):
    before = ": OPENROUTER PROCESSING\n\n"  # comments that keep the connection alive


class Gemini(Anthropic):
    """Each call is whole, at index 0 and without an id, the first one is signed, and the end is a plain stop."""

    def send(self, answer: Json) -> list[Json]:
        super().send(answer)
        self._collect_calls(answer)
        ends = any(choice.get("finish_reason") for choice in answer["choices"])
        calls = [*self._calls.values()] if ends else []
        frames: list[Json] = []
        for number, call in enumerate(calls):
            signed = {"extra_content": SIGNATURE} if number == 0 else {}
            delta = {"role": "assistant", "tool_calls": [{**call, "index": 0, "id": ""} | signed]}
            frames.append({**answer, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None})
        for choice in answer["choices"]:
            if choice.get("finish_reason") == "tool_calls":
                choice["finish_reason"] = "stop"
        return [*frames, answer]


class Mistral(Answer):
    """Calls are whole, in the last frame; thoughts are parts of the content."""

    def send(self, answer: Json) -> list[Json]:
        self._collect_calls(answer)
        for choice in answer["choices"]:
            said = _said_in(choice)
            thought = said.pop("reasoning", None) or said.pop("reasoning_content", None)
            if thought:
                said["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
            elif said.get("content"):
                said["content"] = (
                    [{"type": "text", "text": said["content"]}] if len(said["content"]) > 5 else said["content"]
                )
            if choice.get("finish_reason"):
                choice["finish_reason"] = {"length": "model_length"}.get(
                    choice["finish_reason"], choice["finish_reason"]
                )
                said["tool_calls"] = [
                    {**call, "index": index, "id": f"a1b2c3d{index:02}"} for index, call in self._calls.items()
                ]
        return [answer]


class Vllm(Answer):
    """Thoughts are `reasoning_content`, and each call is sent again, whole, at the end."""

    def send(self, answer: Json) -> list[Json]:
        for choice in answer["choices"]:
            said = _said_in(choice)
            if "reasoning" in said:
                said["reasoning_content"] = said.pop("reasoning")
            if said.get("tool_calls") and choice.get("finish_reason") is None:
                fragments = json.loads(json.dumps(said["tool_calls"]))
                self._collect_calls({"choices": [{"delta": {"tool_calls": fragments}}]})
            elif choice.get("finish_reason") == "tool_calls":
                said["tool_calls"] = [{**call, "index": index} for index, call in self._calls.items()]
        return [answer]


class LmStudio(Answer):
    """Thoughts are text in tags."""

    def __init__(self) -> None:
        super().__init__()
        self._thinks = False

    def send(self, answer: Json) -> list[Json]:
        for choice in answer["choices"]:
            said = _said_in(choice)
            thought = said.pop("reasoning", None) or said.pop("reasoning_content", None)
            if thought:
                said["content"] = thought if self._thinks else f"<think>\n{thought}"
                self._thinks = True
            elif self._thinks and (said.get("content") or said.get("tool_calls") or choice.get("finish_reason")):
                said["content"] = f"\n</think>\n\n{said.get('content') or ''}"
                self._thinks = False
        return [answer]


class LlamaCpp(LmStudio):
    """And calls are whole, with arguments that are objects, and nothing says that the stream is done."""

    says_done = False

    def send(self, answer: Json) -> list[Json]:
        super().send(answer)
        self._collect_calls(answer)
        for choice in answer["choices"]:
            if self._calls and choice.get("finish_reason"):
                said = _said_in(choice)
                said["tool_calls"] = [self._as_object(call, index) for index, call in self._calls.items()]
        return [answer]

    def _as_object(self, call: Json, index: int) -> Json:
        arguments = call["function"]["arguments"]
        with suppress(ValueError):
            arguments = json.loads(arguments)
        return {**call, "index": index, "function": {**call["function"], "arguments": arguments}}


ANSWERS: dict[str, type[Answer]] = {
    "ollama": Ollama,
    "anthropic": Anthropic,
    "openrouter": OpenRouter,
    "gemini": Gemini,
    "mistral": Mistral,
    "vllm": Vllm,
    "lmstudio": LmStudio,
    "llamacpp": LlamaCpp,
}
