"""The requests of the run API, and for tasks, files and the memory. `docs/api.md` has the shapes."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal
from urllib.parse import quote

from todo_client.connection import Client, Json, RunEvent

Message = str | list[Json]
"""A text, or its parts if it names tasks."""
Events = AbstractAsyncContextManager[AsyncIterator[RunEvent]]
"""The events of an interaction. Leaving the block stops the reading, and nothing else."""


class Runs(Client):
    """Each method raises `ApiError` or `ConnectionLost`.

    `more` is sent with a message: `model`, `metadata`.
    """

    def interact(
        self, chat_id: str, user_message: Message, *, key: str | None = None, more: Json | None = None
    ) -> Events:
        """Sends a message; a `chat_id` that is a new name creates the chat."""
        body = {"user_message": user_message, **(more or {})}
        return self.open_events("POST", f"/chats/{chat_id}/interactions", body, key=key)

    def edit(
        self,
        chat_id: str,
        interaction_id: str,
        new_user_message: Message,
        *,
        key: str | None = None,
        more: Json | None = None,
    ) -> Events:
        body = {"new_user_message": new_user_message, **(more or {})}
        return self.open_events("POST", f"{_path(chat_id, interaction_id)}/edit", body, key=key)

    def events(self, chat_id: str, interaction_id: str, *, after: int = 0) -> Events:
        """Follows an interaction from the event after a number."""
        headers = {"Last-Event-ID": str(after)} if after else {}
        return self.open_events("GET", f"{_path(chat_id, interaction_id)}/events", headers=headers)

    async def get_chats(self, *, limit: int = 20, after: str | None = None, titled: str = "") -> Json:
        """Returns a page of chats, the newest first; `titled` finds chats by letters of their title."""
        params = {"limit": limit, "titled": titled, **({"after": after} if after is not None else {})}
        return await self.request_json("GET", "/chats", params=params)

    async def find_last_used_chat(self) -> str | None:
        """Returns the chat with the newest interaction; the ids of interactions are in the order of time."""
        page = await self.get_chats(limit=100)
        chats = page["chats"]
        while page["after"] is not None:
            page = await self.get_chats(limit=100, after=page["after"])
            chats += page["chats"]
        last = max(chats, key=lambda chat: chat["leaf"] or "", default=None)
        return last["chat_id"] if last else None

    async def get_chat(self, chat_id: str, *, limit: int = 20, before: str | None = None) -> Json:
        """Returns a chat with its newest interactions, or the newest before one."""
        params = {"limit": limit, **({"before": before} if before is not None else {})}
        return await self.request_json("GET", f"/chats/{chat_id}", params=params)

    async def rename_chat(self, chat_id: str, title: str) -> Json:
        return await self.request_json("PATCH", f"/chats/{chat_id}", {"title": title})

    async def delete_chat(self, chat_id: str) -> None:
        await self.request("DELETE", f"/chats/{chat_id}")

    async def get_interaction(self, chat_id: str, interaction_id: str, *, brief: bool = False) -> Json:
        """Returns an interaction; a `brief` one without its events and the final state."""
        params = {"brief": True} if brief else None
        return await self.request_json("GET", _path(chat_id, interaction_id), params=params)

    async def get_steps(self, chat_id: str, interaction_id: str, *, limit: int = 20, after: int = 0) -> Json:
        params = {"limit": limit, "after": after}
        return await self.request_json("GET", f"{_path(chat_id, interaction_id)}/steps", params=params)

    async def get_log(self, chat_id: str) -> list[str]:
        return (await self.request("GET", f"/chats/{chat_id}/log")).text.splitlines()

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
        """Approves or rejects a call that waits; `always` also approves further calls of its kind in this chat."""
        body = {"approval_id": approval_id, "approved": approved, "reason": reason, "always": always}
        return await self.request_json("POST", f"{_path(chat_id, interaction_id)}/approve", body, key=key)

    async def send(
        self,
        chat_id: str,
        interaction_id: str,
        text: Message,
        *,
        mode: Literal["steer", "follow_up"],
        key: str | None = None,
    ) -> Json:
        body = {"text": text, "mode": mode}
        return await self.request_json("POST", f"{_path(chat_id, interaction_id)}/messages", body, key=key)

    async def steer(self, chat_id: str, interaction_id: str, input_id: str) -> Json:
        return await self.request_json("POST", f"{_path(chat_id, interaction_id)}/messages/{input_id}/steer")

    async def cancel(self, chat_id: str, interaction_id: str, *, key: str | None = None) -> Json:
        return await self.request_json("POST", f"{_path(chat_id, interaction_id)}/cancel", key=key)

    async def branch(self, chat_id: str, interaction_id: str | None) -> Json:
        """Shows the branch that ends with an interaction; None shows the empty beginning."""
        return await self.request_json("POST", f"/chats/{chat_id}/branch", {"interaction_id": interaction_id})

    async def compact(self, chat_id: str, *, key: str | None = None) -> Json:
        """Has all but the newest messages summarised for the model."""
        return await self.request_json("POST", f"/chats/{chat_id}/compact", key=key)

    async def ready(self) -> Json:
        return await self.request_json("GET", "/ready")

    async def tasks(self, view: str) -> Json:
        """Returns the first hundred tasks of a view."""
        return await self.request_json("GET", "/tasks", params={"view": view, "limit": 100})

    async def memory(self) -> Json:
        return await self.request_json("GET", "/memory")

    async def add_to_memory(self, text: str, *, chat_id: str | None = None, key: str | None = None) -> Json:
        """Adds a text on lines of its own; with `chat_id`, the log of that chat says so."""
        body = {"text": text, **({} if chat_id is None else {"chat_id": chat_id})}
        return await self.request_json("POST", "/memory", body, key=key)

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


def _path(chat_id: str, interaction_id: str) -> str:
    return f"/chats/{chat_id}/interactions/{interaction_id}"
