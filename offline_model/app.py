import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from english import DateOrder
from offline_model import model, protocol
from offline_model.protocol import Completion, CompletionCall, CompletionRequest, RequestError
from offline_model.settings import OfflineSettings

_SHORT_BYTES = 32 * 1024
"""Longer requests are parsed in one thread, so that short ones do not wait."""
_AT_ONCE = 32
EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


def create_app(settings: OfflineSettings, order: DateOrder | None = None) -> Starlette:
    endpoint = Endpoint(settings.token_delay, order)
    routes = [
        Route("/health", endpoint.health),
        Route("/v1/models", endpoint.models),
        Route("/v1/chat/completions", endpoint.chat_completions, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {
        RequestError: lambda _, error: protocol.create_error_response(*error.args),
        HTTPException: lambda _, error: protocol.create_error_response(error.status_code, f"{error.detail}."),
        ClientDisconnect: lambda _, error: Response(),
    }
    return Starlette(routes=routes, exception_handlers=handlers)


class Endpoint:
    def __init__(self, token_delay: float, order: DateOrder | None) -> None:
        self._token_delay = token_delay
        self._order: DateOrder | None = order
        self._long_ones = ThreadPoolExecutor(max_workers=1)

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        model = {"id": protocol.MODEL, "object": "model", "created": 0, "owned_by": "offline"}
        return JSONResponse({"object": "list", "data": [model]})

    async def chat_completions(self, request: Request) -> Response:
        raw = await request.body()
        if len(raw) <= _SHORT_BYTES:
            return self._answer(raw)
        return await asyncio.get_running_loop().run_in_executor(self._long_ones, self._answer, raw)

    def _answer(self, raw: bytes) -> Response:
        chat = protocol.parse_request(raw)
        completion = create_completion(chat, self._order)
        if not chat.stream:
            return JSONResponse(completion.as_object())
        return StreamingResponse(self._paced(completion.as_events()), headers=EVENTS)

    async def _paced(self, events: Iterable[str]) -> AsyncIterator[str]:
        for index, event in enumerate(events):
            if index and (self._token_delay or index % _AT_ONCE == 0):
                await asyncio.sleep(self._token_delay)  # even of 0, so that other requests are served, too
            yield event


def create_completion(chat: CompletionRequest, order: DateOrder | None = None) -> Completion:
    reply = model.reply_to(chat.messages, chat.tool_names, must_call=chat.must_call, order=order)
    text = "".join(protocol.split_tokens(reply.text)[: chat.max_completion_tokens or chat.max_tokens])
    calls = [CompletionCall(call.name, json.dumps(call.arguments)) for call in reply.calls]
    return Completion(
        model=chat.model,
        text=text,
        calls=calls,
        finish_reason="tool_calls" if calls else "stop" if text == reply.text else "length",
        usage=protocol.estimate_usage(chat.characters, text, calls) if chat.include_usage else None,
    )
