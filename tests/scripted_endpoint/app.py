"""The application of the offline model, with a script that takes precedence over its rules."""

import asyncio
import json
from collections.abc import Iterable
from itertools import islice

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from offline_model import app as offline
from offline_model.protocol import CompletionRequest, parse_request, render_error
from offline_model.settings import OfflineSettings
from tests.scripted_endpoint.delivery import Delivery
from tests.scripted_endpoint.request_log import ReceivedRequest, RequestLog
from tests.scripted_endpoint.script import Addition, Script, Step

_JSON = {"content-type": "application/json"}


def create_app() -> Starlette:
    app = offline.create_app(OfflineSettings())
    endpoint = Endpoint()
    app.router.routes[:0] = [
        Route("/v1/chat/completions", endpoint.chat_completions, methods=["POST"]),
        Route("/script", endpoint.add_to_script, methods=["POST"]),
        Route("/script", endpoint.clear_script, methods=["DELETE"]),
        Route("/release", endpoint.release, methods=["POST"]),
        Route("/requests", endpoint.list_requests),
    ]
    return app


class Endpoint:
    def __init__(self) -> None:
        self._script = Script()
        self._log = RequestLog()
        self._released = asyncio.Event()

    async def chat_completions(self, request: Request) -> Delivery:
        raw = await request.body()
        received = self._log.receive(raw, request.headers)
        try:
            chat = parse_request(raw)
        except HTTPException:
            received.finish("completed")
            raise
        user_text = next((message.content for message in reversed(chat.messages) if message.role == "user"), "")
        return self._create_delivery(chat, self._script.take(user_text), received)

    def _create_delivery(self, chat: CompletionRequest, step: Step | None, received: ReceivedRequest) -> Delivery:
        frames = _render_frames(chat, step)
        step = step or Step()
        return Delivery(
            frames=islice(frames, step.eof_after if step.cut_after is None else step.cut_after),
            charset=step.charset,
            status=step.status or 200,
            headers=(offline.EVENTS if chat.stream and step.status is None else _JSON) | step.headers,
            delay=step.delay,
            token_delay=step.token_delay,
            ending="abort" if step.cut_after is not None else "hang" if step.hang else "complete",
            hold_after=step.hold_after,
            released=self._released,
            request=received,
        )

    async def add_to_script(self, request: Request) -> Response:
        try:
            self._script.add(Addition.model_validate(await request.json()).steps)
        except ValidationError as error:
            raise HTTPException(400, render_error(error)) from error
        self._released.clear()
        return Response(status_code=204)

    async def clear_script(self, request: Request) -> Response:
        self._script.clear()
        self._log.clear()
        self._released.set()
        return Response(status_code=204)

    async def release(self, request: Request) -> Response:
        """Continues all paused responses; further ones do not pause until steps are added."""
        self._released.set()
        return Response(status_code=204)

    async def list_requests(self, request: Request) -> Response:
        return JSONResponse(self._log.as_list())


def _render_frames(chat: CompletionRequest, step: Step | None) -> Iterable[str]:
    if step is not None and step.status is not None:
        return [step.body if isinstance(step.body, str) else json.dumps(step.body)]
    if step is not None and step.raw is not None:
        return step.raw
    completion = offline.create_completion(chat) if step is None else step.create_completion(chat)
    return completion.as_events() if chat.stream else [json.dumps(completion.as_object())]
