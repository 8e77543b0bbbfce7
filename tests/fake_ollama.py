"""A server with the part of Ollama's API that finds models, or with any other responses at its address."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.serving import serve_in_threads

Model = dict[str, Any]
RespondTo = Callable[[BaseHTTPRequestHandler], None]


def model(name: str, *capabilities: str, size: int = 1_000, **more: Any) -> Model:
    """Returns a model of /api/tags; older versions list no capabilities there, only in /api/show."""
    fields = {"name": name, "model": name, "size": size, "modified_at": "2026-11-01T10:00:00Z", **more}
    return {**fields, "capabilities": [*capabilities]} if capabilities else fields


@contextmanager
def serve_ollama(
    *models: Model, shown: dict[str, Model] | None = None, instead: RespondTo | None = None
) -> Iterator[str]:
    """Yields the address in the form of OLLAMA_HOST. `instead` responds to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (instead or Handler.answer)(self)

        def do_POST(self) -> None:
            self.do_GET()

        def answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
            if self.path == "/api/tags":
                send(self, {"models": models})
            elif self.path == "/v1/models":
                send(self, {"object": "list", "data": [{"id": one["name"], "object": "model"} for one in models]})
            elif self.path == "/api/show" and shown and body["model"] in shown:
                send(self, shown[body["model"]])
            else:
                self.send_error(404)

    with serve_in_threads(Handler) as url:
        yield url.removeprefix("http://")


def send(handler: BaseHTTPRequestHandler, body: Any, status: int = 200, **headers: str) -> None:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(text)


def send_endlessly(piece: bytes, pause: float) -> RespondTo:
    """Returns a handler that sends the piece until the client disconnects."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(piece)
                time.sleep(pause)
        except OSError:
            handler.close_connection = True

    return answer
