"""From a request to the delivery of its answer: the script's next step if one fits, else the rules."""

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any

from offline_model import rules
from offline_model.completion import Call, Completion, limited, pieces_of, server_sent, tokens_of, usage_of
from offline_model.delivery import Delivery
from offline_model.protocol import ChatRequest
from offline_model.request_log import ReceivedRequest
from offline_model.script import Step

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


def by_rules(chat: ChatRequest, request: ReceivedRequest, token_delay: float) -> Delivery:
    reply = rules.answer(chat.messages, chat.tool_names, must_call=chat.must_call)
    calls = tuple(Call(call.name, json.dumps(call.arguments)) for call in reply.calls)
    text = limited(reply.text, chat.token_limit)
    completion = Completion(
        model=chat.model,
        text=text,
        calls=calls,
        finish_reason="tool_calls" if calls else "stop" if text == reply.text else "length",
        usage=_estimate(chat, text, calls) if chat.include_usage else None,
    )
    frames = server_sent(completion.as_chunks(tokens_of)) if chat.stream else [json.dumps(completion.as_object())]
    return _delivery(frames, chat, request, token_delay=token_delay)


def by_script(step: Step, chat: ChatRequest, request: ReceivedRequest, token_delay: float) -> Delivery:
    if step.status is not None:
        body = step.body if isinstance(step.body, str) else json.dumps(step.body)
        headers = JSON | step.headers
        return Delivery(frames=[body], status=step.status, headers=headers, delay=step.delay, request=request)
    frames = _scripted_frames(step, chat)
    if step.eof_after is not None:
        frames = islice(frames, step.eof_after)
    if step.cut_after is not None:
        frames = islice(frames, step.cut_after)
    return _delivery(
        frames,
        chat,
        request,
        headers=step.headers,
        delay=step.delay,
        token_delay=token_delay if step.token_delay is None else step.token_delay,
        ending="abort" if step.cut_after is not None else "hang" if step.hang else "complete",
    )


def _delivery(frames: Iterable[str], chat: ChatRequest, request: ReceivedRequest, **how: Any) -> Delivery:
    headers = (EVENTS if chat.stream else JSON) | how.pop("headers", {})
    return Delivery(frames=frames, headers=headers, request=request, **how)


def _scripted_frames(step: Step, chat: ChatRequest) -> Iterable[str]:
    if step.raw is not None:
        return step.raw
    calls = tuple(call.as_call() for call in step.tool_calls)
    completion = Completion(
        model=chat.model,
        text=step.text,
        reasoning=step.reasoning,
        reasoning_field=step.reasoning_field,
        calls=calls,
        finish_reason=step.finish_reason if step.is_given("finish_reason") else "tool_calls" if calls else "stop",
        usage=_scripted_usage(step, chat, calls),
    )
    if not chat.stream:
        return [json.dumps(completion.as_object())]
    return server_sent(completion.as_chunks(pieces_of(step.chunk_chars) if step.chunk_chars else tokens_of))


def _scripted_usage(step: Step, chat: ChatRequest, calls: tuple[Call, ...]) -> dict[str, Any] | None:
    if step.is_given("usage"):
        return step.usage
    return _estimate(chat, step.reasoning + step.text, calls) if chat.include_usage else None


def _estimate(chat: ChatRequest, text: str, calls: tuple[Call, ...]) -> dict[str, int]:
    answer = len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
    return usage_of(chat.characters, answer)
