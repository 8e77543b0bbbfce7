"""What the page asks beside ChatKit: the list of tasks, a conversation's files, what is remembered, and the log."""

from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2

from todo_client.connection import ApiError, Client, connected

Json = dict[str, Any]


class Memory(NamedTuple):
    """`version` goes with a change, which is refused (412) where another was quicker; so many lines are not read."""

    text: str
    version: str
    unread: int


class Page(Client):
    """One person's connection to one backend; every operation raises `ApiError` or `ConnectionLost`."""

    async def ready(self) -> Json:
        return await self._json("GET", "/ready")

    async def tasks(self, view: str, *, query: str = "", limit: int = 100) -> Json:
        return await self._json(
            "GET", "/tasks", params={"view": view, "limit": limit, **({"query": query} if query else {})}
        )

    async def memory(self) -> Memory:
        return _memory(await self.request("GET", "/memory"))

    async def remember(self, text: str, version: str) -> Memory:
        """Put this in place of the memory that was read in this version."""
        return _memory(await self.request("PUT", "/memory", {"text": text}, headers={"If-Match": version}))

    async def begin(self, title: str, *, left: str | None = None) -> Json:
        """A conversation in which nothing is said yet, to put files in; it may take the place of one that is `left`."""
        return await self._json("POST", "/conversations", {"title": title, **({"left": left} if left else {})})

    async def files(self, chat_id: str) -> Json:
        return await self._json("GET", f"/chats/{chat_id}/files")

    async def put_file(self, chat_id: str, path: str, content: bytes) -> Json:
        response = await self.request("PUT", f"/chats/{chat_id}/files/{quote(path)}", content=content)
        with connected():
            return response.json()

    async def get_file(self, chat_id: str, path: str) -> bytes:
        return (await self.request("GET", f"/chats/{chat_id}/files/{quote(path)}")).content

    async def commit(self, chat_id: str, message: str) -> Json:
        return await self._json("POST", f"/chats/{chat_id}/commit", {"message": message})

    async def _json(self, method: str, path: str, body: Json | None = None, *, params: Json | None = None) -> Json:
        response = await self.request(method, path, body, params=params)
        with connected():
            return response.json()


def _memory(response: httpx2.Response) -> Memory:
    with connected():
        told = response.json()
    if (version := response.headers.get("etag")) is None:
        raise ApiError(502, "The answer has no ETag: something between took it away, and what is there could be lost.")
    return Memory(told["text"], version, told["lines"] - told["lines_read"])
