"""A person's files over HTTP, for the backend: put in, listed, read and deleted."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack

from fastmcp import FastMCP
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from service.tool_server.refusals import Kind, Refusal
from service.tool_server.running_calls import person_of_request
from workspace.caller import one_at_a_time
from workspace.files import listing, opening, writing
from workspace.files.folder import Folder, Store
from workspace.refusals import NotThere, explained

_PIECE = 65_536  # bytes
_STATUS: dict[Kind, int] = {"invalid": 400, "not_found": 404, "conflict": 409, "limit": 413, "unavailable": 503}
Handler = Callable[[Request], Awaitable[Response]]


class Files:
    def __init__(self, store: Store) -> None:
        self._store = store

    def add_to(self, server: FastMCP) -> None:
        for path, method, handler in (
            ("/files", "DELETE", self._delete),
            ("/files/{folder}", "DELETE", self._delete),
            ("/files/{folder}", "GET", self._list),
            ("/files/{folder}/{path:path}", "GET", self._get),
            ("/files/{folder}/{path:path}", "PUT", self._put),
        ):
            server.custom_route(path, methods=[method])(_with_sentences(handler))

    async def _list(self, request: Request) -> Response:
        def found() -> dict[str, object]:
            with self._store.existing(_person(), _folder(request)) as folder:
                return listing.files(folder) if folder else {"files": [], "more": False}

        return JSONResponse(await asyncio.to_thread(found))

    async def _get(self, request: Request) -> Response:
        path = request.path_params["path"]
        kept = ExitStack()

        def found() -> opening.Opened:
            folder = kept.enter_context(self._store.existing(_person(), _folder(request)))
            if folder is None:
                raise NotThere(path=path)
            return kept.enter_context(opening.file(folder.descriptor, path))

        try:
            opened = await asyncio.to_thread(found)
        except BaseException:
            kept.close()
            raise
        headers = {"Content-Length": str(opened.size), "Content-Disposition": "attachment"}
        return StreamingResponse(_pieces(opened, kept), media_type="application/octet-stream", headers=headers)

    async def _put(self, request: Request) -> Response:
        path, person, name = request.path_params["path"], _person(), _folder(request)
        with ExitStack() as kept:
            folder = await asyncio.to_thread(kept.enter_context, self._store.folder(person, name))
            given = request.headers.get("content-length", "")
            await asyncio.to_thread(_check, folder, path, int(given) if given.isdecimal() else 0)
            incoming, descriptor = kept.enter_context(writing.incoming(folder))
            size = 0
            async for piece in request.stream():
                await asyncio.to_thread(_write, descriptor, piece)
                size += len(piece)
            async with one_at_a_time(person, name):
                created = await asyncio.to_thread(writing.put, folder, path, incoming, descriptor)
        return JSONResponse({"path": path, "bytes": size, "created": created}, status_code=201 if created else 200)

    async def _delete(self, request: Request) -> Response:
        name = request.path_params.get("folder")
        found = await asyncio.to_thread(self._store.remove, _person(), name)
        return JSONResponse({"deleted": found})


def _person() -> str:
    person = person_of_request()
    assert person, "a request without a token does not come this far"
    return person


def _folder(request: Request) -> str:
    return request.path_params["folder"]


def _check(folder: Folder, path: str, size: int) -> None:
    """Before any of it is sent: whether there is room for it, by a name that can be used."""
    opening.names(path)
    folder.quota.check(folder.path, more_bytes=size, more_files=1)


def _write(descriptor: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(descriptor, piece) :]


async def _pieces(opened: opening.Opened, kept: ExitStack) -> AsyncIterator[bytes]:
    """As many bytes as the file had; what it grows by meanwhile is left out."""
    with kept:
        left = opened.size
        while left and (piece := await asyncio.to_thread(os.read, opened.descriptor, min(_PIECE, left))):
            left -= len(piece)
            yield piece


def _with_sentences(handler: Handler) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            raise
        except Refusal as refusal:
            return JSONResponse({"error": str(refusal)}, status_code=_STATUS[refusal.kind])
        except Exception as error:  # noqa: BLE001 - an edge of the process: only sentences leave it
            return JSONResponse({"error": str(explained(error))}, status_code=503)

    return answer
