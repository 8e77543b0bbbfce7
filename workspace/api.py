"""HTTP routes with which the backend manages a user's files and stops commands."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, BinaryIO

from fastmcp import FastMCP
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from common.tool_server.errors import CallError, Kind, TooManyAtOnce
from workspace.caller import Workspace, get_request_directory, get_user, hold_lock
from workspace.errors import DiskFull, FileTooLarge, PathNotFound, UploadsOff, explain_error
from workspace.files import incoming, listing, opening, uploads, writing
from workspace.files.folder import Folder
from workspace.files.quota import Amount

_PIECE_BYTES = 65_536
_STATUS_OF_ERRORS: dict[type[CallError], int] = {DiskFull: 507, TooManyAtOnce: 503}
_STATUS: dict[Kind, int] = {"invalid": 400, "not_found": 404, "conflict": 409, "limit": 413, "unavailable": 503}


class FilesApi:
    def __init__(self, workspace: Workspace, *, largest: int) -> None:
        self._workspace = workspace
        self._largest = largest
        self._store = workspace.store

    def add_to(self, server: FastMCP) -> None:
        for path, method, handler in (
            ("/files", "DELETE", self._delete),
            ("/files/{folder}", "DELETE", self._delete),
            ("/directory", "GET", self._check_directory),
            ("/files/{folder}", "GET", self._list),
            ("/files/{folder}/{path:path}", "GET", self._get),
            ("/files/{folder}/{path:path}", "PUT", self._put),
            ("/files/{folder}/{path:path}", "DELETE", self._delete_file),
            ("/uploads/{folder}/{other}", "POST", self._copy_uploads),
            ("/stop/{folder}", "POST", self._stop),
        ):
            server.custom_route(path, methods=[method])(self._explain_errors(handler))

    def _list(self, request: Request) -> Response:
        with self._store.open_existing(get_user(), request.path_params["folder"], get_request_directory()) as folder:
            return JSONResponse(listing.list_files(folder) if folder else {"files": [], "more": False})

    def _get(self, request: Request) -> Response:
        path = request.path_params["path"]
        with self._store.open_existing(get_user(), request.path_params["folder"], get_request_directory()) as folder:
            if folder is None:
                raise PathNotFound(path=path)
            with opening.open_file(folder.descriptor, path) as opened:
                file = os.fdopen(os.dup(opened.file.fileno()), "rb")
        headers = {"Content-Length": str(opened.size), "Content-Disposition": "attachment"}
        pieces = _stream_pieces(file, opened.size)
        return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)

    async def _put(self, request: Request) -> Response:
        path, user, name = request.path_params["path"], get_user(), _get_writable_folder(request)
        with ExitStack() as stack:
            folder = await asyncio.to_thread(stack.enter_context, self._store.open_folder(user, name))
            size = int(request.headers.get("content-length", 0))  # the server has checked that it is a number
            async with hold_lock(user):  # a check beside a write would leave an amount from before it
                await asyncio.to_thread(self._check, folder, path, size)
            file = stack.enter_context(incoming.create_incoming(folder))
            size, digest = 0, hashlib.sha256()
            async for piece in request.stream():
                if (size := size + len(piece)) > self._largest:
                    raise FileTooLarge(most=self._largest)
                digest.update(piece)
                await asyncio.to_thread(file.write, piece)
            async with hold_lock(user):
                created = await asyncio.to_thread(incoming.move_incoming, folder, path, file) is None
                await asyncio.to_thread(uploads.record, folder, path, digest.hexdigest())
        return JSONResponse({"path": path, "bytes": size, "created": created}, status_code=201 if created else 200)

    def _check(self, folder: Folder, path: str, size: int) -> None:
        opening.split_path(path)
        if size > self._largest:
            raise FileTooLarge(most=self._largest)
        folder.quota.check(folder.path, more=Amount(size, 1))

    def _delete(self, request: Request) -> Response:
        return JSONResponse({"deleted": self._store.remove(get_user(), request.path_params.get("folder"))})

    def _delete_file(self, request: Request) -> Response:
        path = request.path_params["path"]
        with self._store.open_existing(get_user(), _get_writable_folder(request)) as folder:
            if folder is None:
                raise PathNotFound(path=path)
            writing.delete(folder, path)
        return JSONResponse({"deleted": True})

    def _copy_uploads(self, request: Request) -> Response:
        user, name, other = get_user(), _get_writable_folder(request), request.path_params["other"]
        with self._store.open_existing(user, name) as folder, self._store.open_folder(user, other) as to:
            return JSONResponse({"files": uploads.copy(folder, to) if folder else []})

    def _check_directory(self, _: Request) -> Response:
        directory = get_request_directory()
        with self._store.open_directory(directory or ""):
            return JSONResponse({"directory": directory})

    async def _stop(self, request: Request) -> Response:
        folder = self._store.get_directory(get_user()) / request.path_params["folder"]
        return JSONResponse({"stopped": self._workspace.commands.stop(folder)})

    def _explain_errors(self, handler: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        """Runs a handler in a thread if it is no coroutine function, and then one change of a user at a time."""

        async def answer(request: Request) -> Response:
            try:
                if iscoroutinefunction(handler):
                    return await handler(request)
                if request.method == "GET":
                    return await self._workspace.read(get_user(), partial(handler, request))
                async with hold_lock(get_user()):
                    return await asyncio.to_thread(handler, request)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            except Exception as error:  # noqa: BLE001 - answers must not show internal errors
                failure = error if isinstance(error, CallError) else explain_error(error)
                status = _STATUS_OF_ERRORS.get(type(failure)) or _STATUS[failure.kind]
                return JSONResponse({"error": str(failure)}, status_code=status)

        return answer


def _get_writable_folder(request: Request) -> str:
    """Raises `UploadsOff` for a directory of the user, who adds and deletes files there without us."""
    if get_request_directory() is not None:
        raise UploadsOff
    return request.path_params["folder"]


async def _stream_pieces(file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """Streams as many bytes as the file had when it was opened."""
    with file:
        while size and (piece := await asyncio.to_thread(file.read, min(_PIECE_BYTES, size))):
            size -= len(piece)
            yield piece
