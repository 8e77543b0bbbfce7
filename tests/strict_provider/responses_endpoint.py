"""OpenAI's Responses API in front of the scripted model of chat completions: converts requests and responses."""

import json
from typing import Any
from uuid import uuid4

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.strict_provider.responses_rules import find_violations

Json = dict[str, Any]


class ResponsesEndpoint:
    def __init__(self, app: ASGIApp, rejections: list[str]) -> None:
        self._app, self._rejections = app, rejections
        self.bodies: list[Json] = []
        self.issued: dict[str, str] = {}
        """The encrypted contents that were sent, with the model of each; what is removed cannot be verified."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, body: Json) -> None:
        self.bodies.append(body)
        if (reason := next(find_violations(body, self.issued), None)) is not None:
            self._rejections.append(reason)
            error = {"message": reason, "type": "invalid_request_error", "param": "input", "code": None}
            await JSONResponse({"error": error}, status_code=400)(scope, receive, send)
            return
        chat = json.dumps(create_chat(body)).encode()
        pending: list[Message] = [{"type": "http.request", "body": chat, "more_body": False}]
        response = _Response(body["model"], self.issued)
        is_error = False

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        async def deliver(message: Message) -> None:
            nonlocal is_error
            if message["type"] == "http.response.start":
                is_error = message["status"] != 200
            elif not is_error:
                text = message.get("body", b"").decode()
                is_last = not message.get("more_body")
                message = {**message, "body": response.format(text, is_last=is_last).encode()}
            await send(message)

        await self._app({**scope, "path": "/v1/chat/completions", "raw_path": b"/v1/chat/completions"}, replay, deliver)


def create_chat(body: Json) -> Json:
    messages: list[Json] = []
    if "instructions" in body:
        messages.append({"role": "system", "content": body["instructions"]})
    for item in body["input"]:
        match item:
            case {"type": "message", "role": role, "content": [{"text": text}]}:
                messages.append({"role": role, "content": text})
            case {"type": "function_call"}:
                if messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None})
                function = {"name": item["name"], "arguments": item["arguments"]}
                call = {"id": item["call_id"], "type": "function", "function": function}
                messages[-1].setdefault("tool_calls", []).append(call)
            case {"type": "function_call_output"}:
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            case _:
                pass
    chat = {"model": body["model"], "messages": messages, "max_completion_tokens": body.get("max_output_tokens")}
    if body.get("stream"):
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    tools = [{"type": "function", "function": {**tool, "type": None}} for tool in body.get("tools", ())]
    return chat | ({"tools": tools} if tools else {})


class _Response:
    """One response. Events are rendered of chunks, and the object of a completion that is not streamed."""

    def __init__(self, model: str, issued: dict[str, str]) -> None:
        self._model, self._issued = model, issued
        self._items: list[Json] = []
        self._calls: dict[Any, Json] = {}
        self._finish = "stop"
        self._usage: Json | None = None
        self._has_begun = self._has_ended = False

    def format(self, text: str, *, is_last: bool) -> str:
        events = "" if self._has_begun or not text.startswith("data: ") else self._begin()
        for frame in filter(None, text.split("\n\n")):
            if not frame.startswith("data: "):
                return text if not frame.startswith("{") else self._format_whole(json.loads(frame))
            if frame != "data: [DONE]":
                events += self._read(json.loads(frame.removeprefix("data: ")))
        if self._has_begun and not self._has_ended and (is_last or "data: [DONE]" in text):
            self._has_ended = True
            events += self._end()
        return events

    def _begin(self) -> str:
        self._has_begun = True
        return _event("response.created", response={"id": "resp_1", "status": "in_progress", "output": []})

    def _read(self, chunk: Json) -> str:
        self._usage = chunk.get("usage") or self._usage
        events = ""
        for choice in chunk["choices"]:
            delta = choice.get("delta") or choice.get("message") or {}
            self._finish = choice.get("finish_reason") or self._finish
            if text := delta.get("reasoning"):
                events += self._add("reasoning", text)
            if text := delta.get("content"):
                events += self._add("message", text)
            if text := delta.get("refusal"):
                events += self._add("refusal", text)
            for call in delta.get("tool_calls") or ():
                events += self._add_call(call)
        return events

    def _add(self, kind: str, text: str) -> str:
        events = ""
        if not self._items or self._items[-1]["kind"] != kind:
            self._items.append({"kind": kind, "text": ""})
            item = {"type": "message" if kind == "refusal" else kind, "id": f"x_{len(self._items)}"}
            events = _event("response.output_item.added", output_index=len(self._items) - 1, item=item)
        self._items[-1]["text"] += text
        names = {"reasoning": "reasoning_summary_text", "message": "output_text", "refusal": "refusal"}
        return events + _event(f"response.{names[kind]}.delta", output_index=len(self._items) - 1, delta=text)

    def _add_call(self, call: Json) -> str:
        key, function, events = call.get("index"), call["function"], ""
        known = self._calls.get(key)
        if known is None or (function.get("name") and known["arguments"]):
            known = self._calls[key] = {"kind": "function_call", "name": function["name"], "arguments": ""}
            known |= {"index": len(self._items), "call_id": f"call_{uuid4().hex[:12]}"}
            self._items.append(known)
            item = self._render(known) | {"arguments": ""}
            events = _event("response.output_item.added", output_index=known["index"], item=item)
        more = function.get("arguments") or ""
        known["arguments"] += more
        kind = "response.function_call_arguments.delta"
        return events + (_event(kind, output_index=known["index"], delta=more) if more else "")

    def _render(self, item: Json) -> Json:
        identity = {"id": f"item_{uuid4().hex[:12]}", "status": "completed"}
        match item:
            case {"kind": "reasoning", "text": text}:
                encrypted = f"gAAA{uuid4().hex}"
                self._issued[encrypted] = self._model
                summary = [{"type": "summary_text", "text": text}]
                return identity | {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}
            case {"kind": "function_call"}:
                names = ("call_id", "name", "arguments")
                return identity | {"type": "function_call", **{name: item[name] for name in names}}
            case {"kind": kind, "text": text}:
                type_, name = ("refusal", "refusal") if kind == "refusal" else ("output_text", "text")
                phase = "commentary" if self._calls else "final_answer"
                content = [{"type": type_, name: text}]
                return identity | {"type": "message", "role": "assistant", "content": content, "phase": phase}
            case _:
                raise ValueError(item)

    def _create_object(self, output: list[Json]) -> Json:
        is_cut, usage = self._finish in ("length", "content_filter"), self._usage or {}
        reason = {"length": "max_output_tokens"}.get(self._finish, self._finish)
        counts = {"input_tokens": usage.get("prompt_tokens", 0), "output_tokens": usage.get("completion_tokens", 0)}
        return {
            "id": "resp_1",
            "object": "response",
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": reason} if is_cut else None,
            "error": None,
            "output": output,
            "usage": {**counts, "output_tokens_details": {"reasoning_tokens": 0}} if usage else None,
        }

    def _end(self) -> str:
        output = [self._render(item) for item in self._items]
        done = [_event("response.output_item.done", output_index=index, item=item) for index, item in enumerate(output)]
        response = self._create_object(output)
        return "".join(done) + _event(f"response.{response['status']}", response=response)

    def _format_whole(self, completion: Json) -> str:
        self._read(completion)
        return json.dumps(self._create_object([self._render(item) for item in self._items]))


def _event(kind: str, **values: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **values})}\n\n"
