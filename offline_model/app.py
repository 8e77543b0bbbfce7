from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from offline_model import answers
from offline_model.protocol import MODEL, ChatRequest, NotJson, error_response, parsed, sentence_of
from offline_model.request_log import RequestLog
from offline_model.script import Addition, Script
from offline_model.settings import Settings


def create_app(settings: Settings) -> Starlette:
    endpoint = Endpoint(settings)
    routes = [
        Route("/health", endpoint.health),
        Route("/v1/models", endpoint.models),
        Route("/v1/chat/completions", endpoint.chat_completions, methods=["POST"]),
    ]
    if settings.scripted:
        routes += [
            Route("/script", endpoint.add_to_script, methods=["POST"]),
            Route("/script", endpoint.clear_script, methods=["DELETE"]),
            Route("/requests", endpoint.received_requests),
        ]
    handlers: dict[Any, Any] = {
        ValidationError: lambda _, error: error_response(400, sentence_of(error)),
        NotJson: lambda _, error: error_response(400, str(NotJson.__doc__)),
        HTTPException: lambda _, error: error_response(error.status_code, f"{error.detail}."),
        ClientDisconnect: lambda _, error: Response(),
    }
    return Starlette(routes=routes, exception_handlers=handlers)


class Endpoint:
    def __init__(self, settings: Settings) -> None:
        self._token_delay = settings.token_delay
        self._script = Script()
        self._log = RequestLog(keep=settings.scripted)

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "offline"}
        return JSONResponse({"object": "list", "data": [model]})

    async def chat_completions(self, request: Request) -> ASGIApp:
        raw = await request.body()
        received = self._log.receive(raw, request.headers)
        try:
            chat = ChatRequest.model_validate(parsed(raw))
        except (ValidationError, NotJson):
            received.finish("completed")
            raise
        step = self._script.take(chat.last_user_text)
        if step is None:
            return answers.by_rules(chat, received, self._token_delay)
        return answers.by_script(step, chat, received, self._token_delay)

    async def add_to_script(self, request: Request) -> Response:
        self._script.add(Addition.model_validate(parsed(await request.body())).steps)
        return Response(status_code=204)

    async def clear_script(self, request: Request) -> Response:
        self._script.clear()
        self._log.clear()
        return Response(status_code=204)

    async def received_requests(self, request: Request) -> Response:
        return JSONResponse(self._log.as_list())
