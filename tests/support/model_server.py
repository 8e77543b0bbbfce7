"""The scripted model behind the routes with which model servers say what their models can do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.scripted_endpoint.app import create_app
from tests.scripted_model import ScriptedModel
from tests.serving import serve


class ModelServer:
    """`routes` are responses by path: a JSON value, or an application. `paths` are those that were requested."""

    def __init__(self, routes: dict[str, Any]) -> None:
        self.routes = routes
        self.paths: list[str] = []
        self.url = ""
        self.model: ScriptedModel
        self._app = create_app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(("/script", "/requests", "/release")):
            await self._app(scope, receive, send)
            return
        self.paths.append(path)
        if path not in self.routes:
            await self._app(scope, receive, send)
            return
        route: Any = self.routes[path]
        respond = JSONResponse(route) if isinstance(route, dict | list) else cast(ASGIApp, route)
        await respond(scope, receive, send)

    @property
    def questions(self) -> list[str]:
        return [path for path in self.paths if path != "/v1/chat/completions"]


@asynccontextmanager
async def serve_model(routes: dict[str, Any], *, port: int = 0) -> AsyncIterator[ModelServer]:
    server = ModelServer(routes)
    async with serve(server, lifespan="off", port=port) as server.url, ScriptedModel(server.url) as server.model:
        yield server


def describe_llamacpp(*, tools: bool, context: int = 16_384) -> dict[str, Any]:
    props = {
        "default_generation_settings": {"n_ctx": context},
        "chat_template_caps": {"supports_tools": tools},
        "model_path": "/models/small.gguf",
    }
    return {"/props": props}


def describe_ollama(*, tools: bool, context: int = 16_384) -> dict[str, Any]:
    shown = {
        "capabilities": ["completion", *(["tools"] if tools else [])],
        "parameters": f'stop "<|end|>"\nnum_ctx    {context}',
        "model_info": {"small.context_length": 131_072},
    }
    return {"/api/show": shown, "/api/ps": {"models": []}}


def describe_lmstudio(*, tools: bool, context: int = 16_384) -> dict[str, Any]:
    model = {"id": "m", "type": "llm", "max_context_length": 131_072, "loaded_context_length": context}
    return {"/api/v0/models": {"data": [{**model, "capabilities": ["tool_use"] if tools else []}, {"id": "other"}]}}


def describe_llamacpp_as_custom(*, tools: bool, context: int = 16_384) -> dict[str, Any]:
    listed = {"data": [{"id": "m", "owned_by": "llamacpp"}]}
    return {"/v1/models": listed, **describe_llamacpp(tools=tools, context=context)}


async def hang(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(30)


async def send_endlessly(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1_000):
        await send({"type": "http.response.body", "body": b" " * 100_000, "more_body": True})
