"""Calls of the five tools by one user."""

import json
from typing import Any

import httpx2

from tests.mcp.servers import AUDIENCE
from tests.mcp.wire import MODERN, call, send
from tests.tokens import mint_mcp_token

KEY = {"todo/idempotency_key": "key-1"}
FULL: dict[str, Any] = {
    "title": "milk",
    "description": "2 litres",
    "due": "Fri 2026-11-27 15:00",
    "priority": "high",
    "labels": ["shop"],
    "repeat": "FREQ=WEEKLY;BYDAY=FR",
    "remind": 10,
}
"""A value for each argument of add_task that sets a field: tests of surfaces expect these fields everywhere."""


class Tools:
    """The tools for a user whom the backend names, as it does with every call."""

    def __init__(self, http: httpx2.AsyncClient, user: str, *, version: str = MODERN) -> None:
        self.http, self.user, self.version = http, user, version
        self.token = mint_mcp_token(user, AUDIENCE)

    async def result(self, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole result, of a rejected call, too."""
        made = call(name, arguments, version=self.version, token=self.token, meta=meta)
        response = await send(self.http, made)
        assert response.status_code == 200, response.text
        return response.json()["result"]

    async def call(self, name: str, *, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        """The structured result; an AssertionError with the sentence if the call was rejected."""
        result = await self.result(name, arguments, meta)
        assert not result["isError"], text(result)
        return result["structuredContent"]

    async def error(self, name: str, *, meta: dict[str, Any] | None = None, **arguments: Any) -> str:
        """The sentence with which a call is rejected."""
        result = await self.result(name, arguments, meta)
        assert result["isError"], result
        assert result.get("structuredContent") is None
        sentence = text(result)
        assert "internal error" not in sentence
        assert sentence.isprintable()
        return sentence

    async def text(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What a model reads of the result."""
        return json.loads(text(await self.result(name, arguments)))

    async def add(self, title: str, **arguments: Any) -> dict[str, Any]:
        return await self.call("add_task", title=title, **arguments)

    async def complete(self, task_id: int, *also: int, **arguments: Any) -> dict[str, Any]:
        return await self.call("complete_task", task_id=task_id, also=[*also], **arguments)

    async def update(self, task_id: int, *also: int, **arguments: Any) -> dict[str, Any]:
        return await self.call("update_task", task_id=task_id, also=[*also], **arguments)

    async def delete(self, task_id: int, *also: int, **arguments: Any) -> dict[str, Any]:
        return await self.call("delete_task", task_id=task_id, also=[*also], **arguments)

    async def undo(self, task_id: int, *also: int, **arguments: Any) -> dict[str, Any]:
        return await self.update(task_id, *also, undo=True, **arguments)

    async def undo_batch(self, batch: str, **meta: str) -> dict[str, Any]:
        return await self.call("update_task", task_id=1, meta={"todo/undo_batch": batch, **meta})

    async def tasks(self, **arguments: Any) -> list[dict[str, Any]]:
        """Of all pages."""
        page = await self.call("list_tasks", **{"limit": 100, **arguments})
        tasks = page["tasks"]
        while page["next_cursor"]:
            page = await self.call("list_tasks", **{"limit": 100, **arguments}, cursor=page["next_cursor"])
            tasks += page["tasks"]
        assert page["total"] == len(tasks)
        return tasks

    async def ids(self, **arguments: Any) -> list[int]:
        return [task["id"] for task in await self.tasks(**arguments)]

    async def titles(self, **arguments: Any) -> list[str]:
        return [task["title"] for task in await self.tasks(**arguments)]

    async def comparable(self) -> list[dict[str, Any]]:
        """All tasks as an undo restores them: without when they changed."""
        return [{name: value for name, value in task.items() if name != "updated_at"} for task in await self.tasks()]

    async def changes(self, after: int = 0) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        response = await self.http.get("/changes", params={"after": after}, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()

    async def state(self) -> tuple[Any, ...]:
        """All that the user has: what a rejected call must leave as it is."""
        return await self.tasks(), await self.tasks(status="deleted"), await self.changes()


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    return block["text"]


def ids_and_titles(result: dict[str, Any]) -> list[tuple[int, str]]:
    """Of each task that a call changed."""
    return [(task["id"], task["title"]) for task in (result, *result["also"])]


def due(text: str) -> dict[str, str | None]:
    """Such as 2026-11-27 15:00, as it is in a structured result."""
    day, _, time = text.partition(" ")
    return {"date": day, "time": time or None}
