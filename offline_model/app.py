import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from common.server.edge import Edge
from common.server.http_errors import explain_status, list_methods
from english import DateOrder
from offline_model import model, protocol
from offline_model.protocol import Completion, CompletionCall, CompletionRequest
from offline_model.settings import OfflineSettings

_CORS = {"allow_methods": ["GET", "POST"], "allow_headers": ["*"]}
EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


def create_app(settings: OfflineSettings) -> Starlette:
    endpoint = Endpoint(settings.offline_token_delay, settings.date_order)
    routes = [
        Route("/health", endpoint.health),
        Route("/v1/models", endpoint.models),
        Route("/v1/chat/completions", endpoint.chat_completions, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {
        HTTPException: _render_http_exception,
        ClientDisconnect: lambda _, error: Response(),
    }
    edge = Middleware(
        Edge,
        hosts=settings.allowed_hosts,
        origins=settings.allowed_origins,
        cors=_CORS,
        render=lambda error: protocol.create_error_response(error.status, str(error), {}),
    )
    return Starlette(routes=routes, exception_handlers=handlers, middleware=[edge])


def _render_http_exception(request: Request, error: HTTPException) -> Response:
    status, sentence, headers = error.status_code, error.detail, dict[str, str]()
    if status in (404, 405):  # raised by Starlette
        methods = list_methods(request.scope, request.app.routes)
        headers = {"Allow": ", ".join(methods)} if methods else {}
        sentence = explain_status(status, request.scope, methods)
    return protocol.create_error_response(status, sentence, headers)


class Endpoint:
    def __init__(self, token_delay: float, order: DateOrder | None) -> None:
        self._token_delay = token_delay
        self._order: DateOrder | None = order

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        model = {"id": protocol.MODEL, "object": "model", "created": 0, "owned_by": "offline"}
        return JSONResponse({"object": "list", "data": [model]})

    async def chat_completions(self, request: Request) -> Response:
        chat = protocol.parse_request(await request.body())
        completion = create_completion(chat, self._order)
        if not chat.stream:
            return JSONResponse(completion.as_object())
        return StreamingResponse(self._delay(completion.as_events()), headers=EVENTS)

    async def _delay(self, events: Iterable[str]) -> AsyncIterator[str]:
        for event in events:
            yield event
            await asyncio.sleep(self._token_delay)


def create_completion(chat: CompletionRequest, order: DateOrder | None = None) -> Completion:
    reply = model.create_reply(chat.messages, chat.tool_names, order)
    answer, planned = (reply, ()) if isinstance(reply, str) else ("", reply)
    text = "".join(protocol.split_tokens(answer)[: chat.max_completion_tokens or chat.max_tokens])
    calls = [CompletionCall(call.name, json.dumps(call.arguments)) for call in planned]
    return Completion(
        model=chat.model,
        text=text,
        calls=calls,
        finish_reason="tool_calls" if calls else "stop" if text == answer else "length",
        usage=protocol.estimate_usage(chat.characters, text, calls) if chat.include_usage else None,
    )
