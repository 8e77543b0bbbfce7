"""A server that receives webhooks, and answers as a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.serving import serve

SECRET = "a-secret-of-a-webhook"
Answer = Callable[[], Awaitable[Response]]


@dataclass
class Receiver:
    """`received` are the bodies with their idempotency keys by path; a path without an answer accepts at once."""

    url: str = ""
    received: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    """What the next requests to a path get; the last one stays."""
    accepted: list[tuple[str, str]] = field(default_factory=list)
    """The paths and keys of requests that were answered with success."""

    def target(self, path: str) -> dict[str, str]:
        return {"url": f"{self.url}/{path}", "secret": SECRET}

    def answer(self, path: str, *answers: Answer) -> None:
        self.answers[path] = [*answers]

    def at(self, path: str) -> list[dict[str, Any]]:
        return [body for found, _, body in self.received if found == path]

    def keys(self, path: str) -> list[str]:
        return [key for found, key, _ in self.received if found == path]

    async def receive(self, request: Request) -> Response:
        path, key = request.path_params["path"], request.headers["idempotency-key"]
        self.received.append((path, key, json.loads(await request.body())))
        answers = self.answers.get(path, [])
        answer = answers.pop(0) if len(answers) > 1 else (answers[0] if answers else None)
        response = await answer() if answer else Response(status_code=204)
        if response.status_code < 300:
            self.accepted.append((path, key))
        return response


def status(code: int, **headers: str) -> Answer:
    async def respond() -> Response:
        return Response(status_code=code, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return respond


def after(seconds: float, code: int = 204) -> Answer:
    async def respond() -> Response:
        await asyncio.sleep(seconds)
        return Response(status_code=code)

    return respond


@asynccontextmanager
async def run_receiver(port: int = 0) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = Starlette(routes=[Route("/{path}", receiver.receive, methods=["POST"])])
    async with serve(app, lifespan="off", port=port) as receiver.url:
        yield receiver
