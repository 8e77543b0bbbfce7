"""The page at `/` and at each conversation's address: what it may load, its configuration, and its session cookie."""

import json
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from backend.api.dependencies import AppServices
from backend.api.identity import Identity, cookie_name
from backend.api.openapi import errors
from backend.errors import BackendError, InvalidRequest
from backend.model.providers import ModelEndpoint
from backend.settings import BackendSettings
from backend.users.limits import check_rate
from common.server.edge import LOOPBACK, remove_port

WEB = Path(__file__).parents[2] / "web"
WIDGET_ORIGIN = "https://cdn.platform.openai.com"
LOCAL_DOMAIN_KEY = "local-dev"  # OpenAI verifies none for localhost
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

router = APIRouter()


class PageRenderer:
    """Renders index.html, with what the page needs to know in a block of JSON."""

    def __init__(self, settings: BackendSettings, endpoint: ModelEndpoint) -> None:
        self._settings = settings
        self._html = (WEB / "index.html").read_text()
        self._facts = {
            "auth": settings.auth_mode,
            "model": {"offline": endpoint.profile.name == "offline", "name": endpoint.model},
            "messageChars": settings.limit_message_chars,
        }

    def response(self, request: Request, *, status: int = 200, domain_key: str | None = None) -> Response:
        files = request.app.state.services.folder_files
        agents = files.agents() if files else None
        modes = request.app.state.services.model.client.modes
        config = {
            **self._facts,
            "model": {**self._facts["model"], "writesCalls": modes.get(self._facts["model"]["name"]) == "text"},
            "agents": {**agents, "fileBytes": self._settings.limit_file_bytes} if agents else None,
            "domainKey": domain_key,
            "hasWidget": self.domain_key(request) is not None,
        }
        return HTMLResponse(
            self._html.replace("<!-- config -->", _render_script(config)),
            status,
            headers={
                "Cache-Control": "no-cache",
                "Content-Security-Policy": _WIDGET_POLICY if domain_key else _BUILT_IN_POLICY,
            },
        )

    def domain_key(self, request: Request) -> str | None:
        """Returns the key for OpenAI's widget; None if the page with it is off, or needs a key at this host."""
        if self._settings.chatkit_widget == "off":
            return None
        if self._settings.chatkit_domain_key:
            return self._settings.chatkit_domain_key
        local = remove_port(request.headers.get("host", "").lower()) in LOOPBACK
        return LOCAL_DOMAIN_KEY if local or self._settings.chatkit_widget == "on" else None


def _render_script(config: dict[str, Any]) -> str:
    text = json.dumps(config).replace("<", "\\u003c")  # no text can end the element
    return f'<script type="application/json" id="config">{text}</script>'


class WidgetOff(BackendError):
    """OpenAI's chat is off here. Open / for the built-in chat."""

    code, status = "widget_off", 404


class _Files(StaticFiles):
    def get_path(self, scope: Scope) -> str:
        return os.path.normpath(scope["path_params"]["path"])

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"  # names stay the same over versions: asked for again, by ETag
        return response


def routes(settings: BackendSettings, endpoint: ModelEndpoint) -> list[BaseRoute]:
    page = PageRenderer(settings, endpoint)

    def serve_conversation(request: Request) -> Response:
        known = _CONVERSATION.fullmatch(request.path_params["chat_id"])
        return page.response(request, status=200 if known else 404)  # the page says that it is not there

    def with_widget(request: Request) -> Response:
        key = page.domain_key(request)
        if key is None:
            raise WidgetOff
        return page.response(request, domain_key=key)

    compressed = [Middleware(GZipMiddleware)]
    return [
        Route("/", page.response, methods=["GET"], middleware=compressed),
        Route("/c/{chat_id}", serve_conversation, methods=["GET"], middleware=compressed),
        Route("/widget", with_widget, methods=["GET"], middleware=compressed),
        Route("/web/{path:path}", _Files(directory=WEB), methods=["GET"], middleware=compressed),
    ]


class SignedIn(BaseModel):
    user_id: str
    expires: datetime


@router.post("/session", responses=errors(400, 401, 429))
async def sign_in(request: Request, services: AppServices, response: Response) -> SignedIn:
    """Sets the page's cookie for the user of a bearer token, until that token expires."""
    identity: Identity = request.app.state.identity
    if not identity.required:
        raise InvalidRequest("This server has no sign-in: AUTH_MODE=none has a single local user.")
    claims = await identity.read_token(request)
    user_id, expires = claims["sub"], int(claims["exp"])
    check_rate(services.rate_limit, user_id)  # or sessions that are ended would fill the database
    response.set_cookie(
        cookie_name(request),
        identity.create_session(user_id, expires=expires),
        max_age=max(0, expires - int(time.time())),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
    )
    return SignedIn(user_id=user_id, expires=datetime.fromtimestamp(expires, UTC))


@router.delete("/session", status_code=204, responses=errors(401, 403))
async def sign_out(request: Request, services: AppServices) -> Response:
    """Ends the session, also for copies of its cookie, and deletes the cookie; succeeds without a session too."""
    identity: Identity = request.app.state.identity
    await identity.sign_out(request, services.database)
    response = Response(status_code=204)
    secure = request.url.scheme == "https"
    response.delete_cookie(cookie_name(request), httponly=True, samesite="strict", secure=secure)
    return response
