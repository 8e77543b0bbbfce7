"""The page at `/` and at each conversation's address: which chat it shows, what it may load, what it is told."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from backend.api.edge import LOOPBACK, without_port
from backend.doors.parts import parts_of
from backend.model.providers import Endpoint
from backend.settings import Settings

WEB = Path(__file__).parents[2] / "web"
VENDOR = WEB / "vendor"
# Of ours: comments, indentation, spaces around signs, semicolons at the end of a line. The tests compare what a browser
# reads.
_LEFT_OUT = {
    ".js": re.compile(
        r"[ \t]*/\*\*.*?\*/[ \t]*|(?:^|[ \t])[ \t]*// [^\n]*|^[ \t]+| (?==[ =>])|(?<= =) |(?<= ===) |(?<= =>) "
        r"|;(?=\s*\n\s*(?:/\*\*(?:[^*]|\*(?!/))*\*/\s*|//[^\n]*\s*)*[\w$#}])",
        re.DOTALL | re.MULTILINE,
    ),
    ".css": re.compile(r"/\*.*?\*/|^[ \t]+|(?<=[{};]) +| +(?=[{}])|(?<=[a-z]:) +", re.DOTALL | re.MULTILINE),
}
WIDGET_ORIGIN = "https://cdn.platform.openai.com"
LOCAL_DOMAIN_KEY = "local-dev"  # OpenAI verifies none for localhost
CHATS = ("built-in", "openai")
_CONVERSATION = re.compile(r"thr_[0-9a-f]{32}")  # as in web/address.js

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_BUILT_IN_POLICY = f"{_POLICY}; require-trusted-types-for 'script'; trusted-types lit-html"
_WIDGET_POLICY = _POLICY.replace("script-src 'self'", f"script-src 'self' {WIDGET_ORIGIN}").replace(
    "style-src 'self'",
    f"frame-src {WIDGET_ORIGIN}; style-src 'self' 'unsafe-inline'",  # its element styles itself
)


class Page:
    """Renders index.html, with what the page needs to know in a block of JSON."""

    def __init__(self, settings: Settings, endpoint: Endpoint) -> None:
        self._settings = settings
        self._html = (WEB / "index.html").read_text()
        self._facts = {
            "auth": settings.auth_mode,
            "model": {"offline": endpoint.profile.name == "offline", "name": endpoint.model},
            "messageChars": settings.limit_message_chars,
        }

    def response(self, request: Request, *, status: int = 200) -> Response:
        asked = request.query_params.get("ui")
        key = self._domain_key(request)
        tries_widget = key is not None and asked != "built-in"
        agents = parts_of(request).files.agents()
        config = {
            **self._facts,
            "agents": {**agents, "fileBytes": self._settings.limit_file_bytes} if agents else None,
            "widget": {"domainKey": key} if key is not None else None,
            "ui": asked if asked in CHATS else "auto",
        }
        return HTMLResponse(
            self._html.replace("<!-- config -->", _script(config)),
            status,
            headers={
                "Cache-Control": "no-cache",
                "Content-Security-Policy": _WIDGET_POLICY if tries_widget else _BUILT_IN_POLICY,
            },
        )

    def _domain_key(self, request: Request) -> str | None:
        """The key OpenAI's widget is tried with, or None where it is not."""
        if self._settings.chatkit_widget == "off":
            return None
        if self._settings.chatkit_domain_key:
            return self._settings.chatkit_domain_key
        local = without_port(request.headers.get("host", "").lower()) in LOOPBACK
        return LOCAL_DOMAIN_KEY if local or self._settings.chatkit_widget == "on" else None


def _script(config: dict[str, Any]) -> str:
    text = json.dumps(config).replace("<", "\\u003c")  # no text can end the element
    return f'<script type="application/json" id="config">{text}</script>'


class _Files(StaticFiles):
    def file_response(self, full_path: Any, *args: Any, **options: Any) -> Response:
        response = super().file_response(full_path, *args, **options)
        path = Path(full_path)
        if isinstance(response, FileResponse) and path.suffix in _LEFT_OUT and VENDOR not in path.parents:
            told = {name: response.headers[name] for name in ("etag", "last-modified", "content-type")}
            response = Response(as_sent(path, told["etag"]), headers=told)
        response.headers["Cache-Control"] = "no-cache"  # names stay the same over versions: asked for again, by ETag
        return response


@cache
def as_sent(path: Path, _version: str = "") -> str:
    """A module or style sheet of ours without what only we read, a fifth of it. Its lines keep their numbers."""
    return _LEFT_OUT[path.suffix].sub(lambda left_out: "\n" * left_out[0].count("\n"), path.read_text())


def routes(settings: Settings, endpoint: Endpoint) -> list[BaseRoute]:
    """`/`, the same page at `/c/ID`, which opens that conversation, and the files it loads."""
    page = Page(settings, endpoint)

    def of_conversation(request: Request) -> Response:
        known = _CONVERSATION.fullmatch(request.path_params["chat_id"])
        return page.response(request, status=200 if known else 404)  # the page says that it is not there

    compressed = [Middleware(GZipMiddleware)]
    return [
        Route("/", page.response, methods=["GET"], middleware=compressed),
        Route("/c/{chat_id}", of_conversation, methods=["GET"], middleware=compressed),
        Mount("/web", _Files(directory=WEB), middleware=compressed),
    ]
