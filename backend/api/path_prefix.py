"""Serves the backend below a path of a proxy, whether the proxy leaves that path in requests or removes it."""

from starlette.types import ASGIApp, Receive, Scope, Send


class PathPrefix:
    """Adds the path to requests without it, as ASGI has it in `path` and in `root_path`."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._path and scope["type"] == "http":
            scope = {**scope, "root_path": self._path}
            if not f"{scope['path']}/".startswith(f"{self._path}/"):
                raw = scope.get("raw_path", b"")
                scope |= {"path": self._path + scope["path"], "raw_path": self._path.encode() + raw}
        await self._app(scope, receive, send)
