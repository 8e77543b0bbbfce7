"""The other requests of the page: tasks, the files of a conversation, the memory."""

from typing import NamedTuple
from urllib.parse import quote

import httpx2

from todo_client.connection import ApiError, Client, Json, connected


class Memory(NamedTuple):
    """A change is sent with `version`, and rejected (412) if there was another one; `unread` counts lines."""

    text: str
    version: str
    unread: int


class Page(Client):
    """Each method raises `ApiError` or `ConnectionLost`."""

    async def ready(self) -> Json:
        return await self.request_json("GET", "/ready")

    async def tasks(self, view: str) -> Json:
        """Returns the first hundred tasks of a view."""
        return await self.request_json("GET", "/tasks", params={"view": view, "limit": 100})

    async def memory(self) -> Memory:
        return _memory(await self.request("GET", "/memory"))

    async def remember(self, text: str, version: str) -> Memory:
        return _memory(await self.request("PUT", "/memory", {"text": text}, headers={"If-Match": version}))

    async def begin(self, title: str, *, left: str | None = None, directory: str | None = None) -> Json:
        """Creates a conversation without messages, to upload files or to work in a `directory` of the server's machine;
        the user may have `left` another for it.
        """
        body = {"title": title, "left": left, "directory": directory}
        return await self.request_json("POST", "/conversations", {name: value for name, value in body.items() if value})

    async def files(self, chat_id: str) -> Json:
        return await self.request_json("GET", f"/chats/{chat_id}/files")

    async def put_file(self, chat_id: str, path: str, content: bytes) -> Json:
        return await self.request_json("PUT", f"/chats/{chat_id}/files/{quote(path)}", content=content)

    async def get_file(self, chat_id: str, path: str) -> bytes:
        return (await self.request("GET", f"/chats/{chat_id}/files/{quote(path)}")).content

    async def commit(self, chat_id: str, message: str) -> Json:
        return await self.request_json("POST", f"/chats/{chat_id}/commit", {"message": message})


def _memory(response: httpx2.Response) -> Memory:
    with connected():
        told = response.json()
    if (version := response.headers.get("etag")) is None:
        raise ApiError(502, "The answer has no ETag: something between took it away, and what is there could be lost.")
    return Memory(told["text"], version, told["lines"] - told["lines_read"])
