"""The addresses of the page, of its files, its manifest and its service worker."""

import re

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route

from backend.api.page.renderer import NO_CACHE, PageRenderer
from backend.errors import BackendError

VIEWS = ("today", "upcoming", "all", "done", "deleted")  # as in web/address.js
_CONVERSATION = re.compile(r"thr_[0-9a-f]{32}")
_TASK = re.compile(r"[1-9][0-9]{0,17}")
_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_WORKER_POLICY = {"Content-Security-Policy": "default-src 'none'; connect-src 'self'"}


class WidgetOff(BackendError):
    """OpenAI's chat is off here. Open / for the built-in chat."""

    code, status = "widget_off", 404


class PageRoutes:
    def __init__(self, page: PageRenderer) -> None:
        self._page = page

    def list_routes(self) -> list[BaseRoute]:
        views = [Route(f"/{view}", self._page.response, methods=["GET"]) for view in ("", *VIEWS)]
        return [
            *views,
            Route("/t/{task_id}", self._serve_task, methods=["GET"]),
            Route("/c/{chat_id}", self._serve_conversation, methods=["GET"]),
            Route("/widget", self._serve_widget, methods=["GET"]),
            Route("/assets/{hash}/{path:path}", self._serve_asset, methods=["GET"]),
            Route("/manifest.json", self._serve_manifest, methods=["GET"]),
            Route("/service-worker.js", self._serve_worker, methods=["GET"]),
        ]

    def _serve_task(self, request: Request) -> Response:
        return self._serve_known(request, _TASK, request.path_params["task_id"])

    def _serve_conversation(self, request: Request) -> Response:
        return self._serve_known(request, _CONVERSATION, request.path_params["chat_id"])

    def _serve_known(self, request: Request, form: re.Pattern[str], id_: str) -> Response:
        """Whether it exists, the page finds out: its address is of nobody."""
        if not form.fullmatch(id_):
            raise HTTPException(404)
        return self._page.response(request)

    def _serve_widget(self, request: Request) -> Response:
        key = self._page.domain_key(request)
        if key is None:
            raise WidgetOff
        return self._page.response(request, domain_key=key)

    def _serve_asset(self, request: Request) -> Response:
        """Serves the present file whatever the hash: while servers are replaced, a page may be of another version."""
        assets = self._page.assets
        asset = assets.files.get(request.path_params["path"])
        if asset is None:
            raise HTTPException(404)
        is_present = request.path_params["hash"] == assets.hash
        headers = {"ETag": f'"{assets.hash}"', **(_FOREVER if is_present else NO_CACHE)}
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={**headers, "Vary": "Accept-Encoding"})
        return asset.respond(request, headers)

    def _serve_manifest(self, _: Request) -> Response:
        return Response(self._page.assets.manifest, media_type="application/manifest+json", headers=NO_CACHE)

    def _serve_worker(self, request: Request) -> Response:
        headers = {**NO_CACHE, **_WORKER_POLICY}  # the policy of what the worker itself may load
        return self._page.assets.worker.respond(request, headers)
