"""A client of the task list API, which the page uses."""

import secrets
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.support.users import User

ZONE = "Europe/Berlin"


@dataclass
class TaskListClient:
    user: User

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def http(self) -> httpx2.AsyncClient:
        return self.user.chatkit.http

    async def request(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> httpx2.Response:
        headers |= {"Idempotency-Key": key} if key else {}
        return await self.http.request(method, path, headers=headers, json=body)

    async def change(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Sends a change, with a new idempotency key unless one is given."""
        answer = await self.request(method, path, body, key=key or secrets.token_hex(8))
        assert answer.status_code == (201 if (method, path) == ("POST", "/tasks") else 200), answer.text
        return answer.json()

    async def add(self, title: str, **details: Any) -> dict[str, Any]:
        (task,) = (await self.change("POST", "/tasks", {"title": title, **details}))["tasks"]
        return task

    async def get_view(self, view: str, **params: Any) -> dict[str, Any]:
        answer = await self.http.get("/tasks", params={"view": view, **params})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def titles(self, view: str, **params: Any) -> list[str]:
        return [task["title"] for task in (await self.get_view(view, **params))["tasks"]]

    async def get_changes(self, after: int | None = None) -> dict[str, Any]:
        params = {} if after is None else {"after": after}
        answer = await self.http.get("/tasks/changes", params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def get_error(self, status: int, method: str, path: str, body: Any = None, **options: Any) -> str:
        """Sends a request that is rejected with this status; returns the error's sentence."""
        answer = await self.request(method, path, body, **options)
        assert (answer.status_code, set(answer.json())) == (status, {"error"}), answer.text
        return answer.json()["error"]
