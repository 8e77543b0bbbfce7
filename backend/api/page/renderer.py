"""Renders index.html, with the policy of what the page may load, and what it needs to know of this server."""

import json
import time
from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response

from backend.api.page.assets import Asset, Assets, compress
from backend.model.providers import ModelEndpoint
from backend.settings import BackendSettings
from common.server.edge import LOOPBACK, remove_port

WIDGET_ORIGIN = "https://cdn.platform.openai.com"
LOCAL_DOMAIN_KEY = "local-dev"  # OpenAI verifies none for localhost
_FREE_CONNECTIONS = 1
_CHECK_SECONDS = 1.0  # comparing the times of all files takes milliseconds
_MAX_STORED_PAGES = 32  # of different configurations
NO_CACHE = {"Cache-Control": "no-cache"}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
_BUILT_IN_POLICY = f"{_POLICY}; require-trusted-types-for 'script'; trusted-types lit-html service-worker"
_WIDGET_POLICY = _POLICY.replace("script-src 'self'", f"script-src 'self' {WIDGET_ORIGIN}").replace(
    "style-src 'self'",
    f"frame-src {WIDGET_ORIGIN}; style-src 'self' 'unsafe-inline'",  # its element styles itself
)


class PageRenderer:
    """Renders the page of this server; nothing in it is of a user, so that browsers may store it."""

    def __init__(self, settings: BackendSettings, endpoint: ModelEndpoint) -> None:
        self._settings = settings
        self._assets = Assets()
        self._checked_at = time.monotonic()
        self._pages = dict[tuple[str, str], Asset]()
        self._facts = {
            "auth": settings.auth_mode,
            "linksDevices": settings.has_sessions and settings.auth_mode != "proxy",
            "provider": settings.provider_name if settings.auth_mode == "oidc" else None,
            "model": {"offline": endpoint.profile.name == "offline", "name": endpoint.model},
            "messageChars": settings.limit_message_chars,
        }

    @property
    def assets(self) -> Assets:
        if time.monotonic() - self._checked_at > _CHECK_SECONDS:
            self._checked_at = time.monotonic()
            if self._assets.is_outdated():
                self._assets = Assets()
        return self._assets

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
            "missing": status == 404,
        }
        policy = _WIDGET_POLICY if domain_key else _BUILT_IN_POLICY
        # By http to another machine, browsers say by Referer alone that a request is of the page.
        headers = {**NO_CACHE, "Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}
        return self._find_page(config).respond(request, headers, status)

    def authorization_response(self, _: Request) -> Response:
        """Responds with the page that asks whether a client may use the tasks; nothing in it is of the request."""
        html = self.assets.authorization_html.replace('<base href="/">', self._base)
        html = html.replace("<!-- config -->", _render_script(self._facts))
        headers = {**NO_CACHE, "Content-Security-Policy": _BUILT_IN_POLICY}
        return Response(html, headers=headers, media_type="text/html")

    @property
    def _base(self) -> str:
        return f'<base href="{self._settings.path}/">'

    def _find_page(self, config: dict[str, Any]) -> Asset:
        """Returns the page that was rendered with these files and this configuration, or renders it."""
        assets = self.assets
        key = assets.hash, json.dumps(config)
        if key not in self._pages:
            if len(self._pages) >= _MAX_STORED_PAGES:
                self._pages.clear()
            self._pages[key] = compress(self._render(assets, config), "text/html")
        return self._pages[key]

    def _render(self, assets: Assets, config: dict[str, Any]) -> str:
        parts = {
            '<base href="/">': self._base,
            "<!-- modules -->": assets.place(_render_preloads(assets.page_modules)),
            "<!-- config -->": _render_script(config),
        }
        html = assets.html
        for place, part in parts.items():
            html = html.replace(place, part)
        return html

    def domain_key(self, request: Request) -> str | None:
        """Returns the key for OpenAI's widget; None if the page with it is off, or needs a key at this host."""
        if self._settings.chatkit_widget == "off":
            return None
        if self._settings.chatkit_domain_key:
            return self._settings.chatkit_domain_key
        local = remove_port(request.headers.get("host", "").lower()) in LOOPBACK
        return LOCAL_DOMAIN_KEY if local or self._settings.chatkit_widget == "on" else None


def _render_preloads(modules: Sequence[str]) -> str:
    """Browsers open six connections. Those that early.js and the style sheets leave free load modules at once, which
    then wait for the first requests of early.js.
    """
    lines = []
    for number, name in enumerate(modules):
        priority = "" if number < _FREE_CONNECTIONS else ' fetchpriority="low"'
        lines.append(f'<link rel="modulepreload"{priority} href="assets/{name}">')
    return "\n    ".join(lines)


def _render_script(config: dict[str, Any]) -> str:
    text = json.dumps(config).replace("<", "\\u003c")  # no text can end the element
    return f'<script type="application/json" id="config">{text}</script>'
