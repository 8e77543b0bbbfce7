"""The run API as a program speaks it: chats, interactions and their events. `docs/api.md` has the shapes."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, NamedTuple

import httpx2

from todo_client.connection import ApiError, Client, ConnectionLost, connected, sentence
from todo_client.sse import NamedFrames

Json = dict[str, Any]


class Event(NamedTuple):
    """`number` is where a reader goes on; None where the server gave none."""

    number: int | None
    name: str
    data: Json


Events = AbstractAsyncContextManager[AsyncIterator[Event]]
"""The events of an interaction as they come; leaving the block stops the reading, and nothing else."""


class Runs(Client):
    """One person's connection to one backend; every operation raises `ApiError` or `ConnectionLost`.

    A `key` lets a request be sent again without being done twice. `more` goes beside a message: `model`, `metadata`.
    """

    def interact(
        self, chat_id: str, user_message: str, *, key: str | None = None, more: Mapping[str, Any] | None = None
    ) -> Events:
        """Say something; a `chat_id` that is a new name makes a chat."""
        body = {"user_message": user_message, **(more or {})}
        return self._stream("POST", f"/chats/{chat_id}/interactions", body, key=key)

    def edit(
        self,
        chat_id: str,
        interaction_id: str,
        new_user_message: str,
        *,
        key: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Events:
        """Say something else in place of an interaction's message."""
        body = {"new_user_message": new_user_message, **(more or {})}
        return self._stream("POST", f"{_place(chat_id, interaction_id)}/edit", body, key=key)

    def events(self, chat_id: str, interaction_id: str, *, after: int = 0) -> Events:
        """The events after a number."""
        headers = {"Last-Event-ID": str(after)} if after else {}
        return self._stream("GET", f"{_place(chat_id, interaction_id)}/events", headers=headers)

    async def get_chats(self, *, limit: int = 20, after: str | None = None, titled: str = "") -> Json:
        """The newest, or those before one; with `titled` only chats with these letters in their title."""
        params = {"limit": limit, "titled": titled, **({"after": after} if after is not None else {})}
        return await self._ask("GET", "/chats", params=params)

    async def get_chat(self, chat_id: str, *, limit: int = 20, before: str | None = None) -> Json:
        """With its newest interactions, or the newest before one."""
        params = {"limit": limit, **({"before": before} if before is not None else {})}
        return await self._ask("GET", f"/chats/{chat_id}", params=params)

    async def get_interaction(self, chat_id: str, interaction_id: str, *, brief: bool = False) -> Json:
        """With all that it said, and what the model is sent after it; a `brief` one without."""
        params = {"brief": True} if brief else None
        return await self._ask("GET", _place(chat_id, interaction_id), params=params)

    async def get_steps(self, chat_id: str, interaction_id: str, *, limit: int = 20, after: int = 0) -> Json:
        """What its agents did, and where the next page begins."""
        params = {"limit": limit, "after": after}
        return await self._ask("GET", f"{_place(chat_id, interaction_id)}/steps", params=params)

    async def get_log(self, chat_id: str) -> AsyncIterator[Json]:
        """What was said and done in a chat, a line each."""
        with connected():
            async with self.http.stream("GET", f"/chats/{chat_id}/log") as response:
                if not response.is_success:
                    await response.aread()
                    raise ApiError(response.status_code, sentence(response))
                async for line in response.aiter_lines():
                    yield json.loads(line)

    async def approve(
        self,
        chat_id: str,
        interaction_id: str,
        approval_id: str,
        *,
        approved: bool,
        reason: str | None = None,
        always: bool = False,
        key: str | None = None,
    ) -> Json:
        """Approve a call that waits, or refuse it; `always`: an agent is not asked about again in this chat."""
        body: Json = {"approval_id": approval_id, "approved": approved}
        body |= {} if reason is None else {"reason": reason}
        body |= {"always": True} if always else {}
        return await self._ask("POST", f"{_place(chat_id, interaction_id)}/approve", body, key=key)

    async def send(
        self,
        chat_id: str,
        interaction_id: str,
        text: str | list[Json],
        *,
        mode: Literal["steer", "follow_up"],
        key: str | None = None,
    ) -> Json:
        """Say something to an interaction that goes on: a text, or its parts where it names tasks."""
        body = {"text": text, "mode": mode}
        return await self._ask("POST", f"{_place(chat_id, interaction_id)}/messages", body, key=key)

    async def steer(self, chat_id: str, interaction_id: str, input_id: str, *, key: str | None = None) -> Json:
        """Let a follow-up be read before the model is asked again."""
        return await self._ask("POST", f"{_place(chat_id, interaction_id)}/messages/{input_id}/steer", key=key)

    async def drop(self, chat_id: str, interaction_id: str, input_id: str) -> Json:
        """Delete a message that was not read."""
        return await self._ask("DELETE", f"{_place(chat_id, interaction_id)}/messages/{input_id}")

    async def cancel(self, chat_id: str, interaction_id: str, *, key: str | None = None) -> Json:
        return await self._ask("POST", f"{_place(chat_id, interaction_id)}/cancel", key=key)

    async def branch(self, chat_id: str, interaction_id: str | None, *, key: str | None = None) -> Json:
        """Show the chat as it was after an interaction; None: before the first."""
        return await self._ask("POST", f"/chats/{chat_id}/branch", {"interaction_id": interaction_id}, key=key)

    async def compact(self, chat_id: str, *, key: str | None = None) -> Json:
        """Let all but the newest messages be summarised."""
        return await self._ask("POST", f"/chats/{chat_id}/compact", key=key)

    async def _ask(
        self,
        method: Literal["DELETE", "GET", "POST"],
        path: str,
        body: Json | None = None,
        *,
        key: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Json:
        response = await self.request(method, path, body, params=params, headers=_keyed(key))
        with connected():
            return response.json()

    @asynccontextmanager
    async def _stream(
        self,
        method: Literal["GET", "POST"],
        path: str,
        body: Json | None = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        asked = self.http.build_request(method, path, json=body, headers={**_keyed(key), **(headers or {})})
        with connected():
            response = await self.http.send(asked, stream=True)
        try:
            if not response.is_success:
                with connected():
                    await response.aread()
                raise ApiError(response.status_code, sentence(response))
            yield _events(response)
        finally:
            await response.aclose()


async def _events(response: httpx2.Response) -> AsyncIterator[Event]:
    frames = NamedFrames()
    with connected():
        async for piece in response.aiter_bytes():
            for event in frames.feed(piece):
                yield Event(int(event.id) if event.id else None, event.name, json.loads(event.data))
    if frames.cut_off:
        raise ConnectionLost


def _place(chat_id: str, interaction_id: str) -> str:
    return f"/chats/{chat_id}/interactions/{interaction_id}"


def _keyed(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}
