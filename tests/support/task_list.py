"""Somebody at the page's list."""

import secrets
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.chatkit_client import ChatKit
from tests.support.stack import AUDIENCE
from tests.tokens import IDP_SECRET, ISSUER, minted

ZONE = "Europe/Berlin"


@dataclass
class Person:
    chat: ChatKit
    name: str

    @property
    def headers(self) -> dict[str, str]:
        token = minted(IDP_SECRET, sub=self.name, iss=ISSUER, aud=AUDIENCE)
        return {"Authorization": f"Bearer {token}", "X-Time-Zone": ZONE}

    async def ask(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> httpx2.Response:
        given = self.headers | headers | ({"Idempotency-Key": key} if key else {})
        content = {} if body is None else {"json": body}
        return await self.chat.http.request(method, path, headers=given, **content)

    async def done(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """The answer to a change, under a key of its own if none is given."""
        answer = await self.ask(method, path, body, key=key or secrets.token_hex(8))
        assert answer.status_code == (201 if (method, path) == ("POST", "/tasks") else 200), answer.text
        return answer.json()

    async def add(self, title: str, **details: Any) -> dict[str, Any]:
        (task,) = (await self.done("POST", "/tasks", {"title": title, **details}))["tasks"]
        return task

    async def view(self, view: str, **asked: Any) -> dict[str, Any]:
        answer = await self.chat.http.get("/tasks", params={"view": view, **asked}, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def titles(self, view: str, **asked: Any) -> list[str]:
        return [task["title"] for task in (await self.view(view, **asked))["tasks"]]

    async def news(self, after: int | None = None) -> dict[str, Any]:
        params = {} if after is None else {"after": after}
        answer = await self.chat.http.get("/tasks/changes", params=params, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def sentence(self, status: int, method: str, path: str, body: Any = None, **given: Any) -> str:
        """What a refused request is answered."""
        answer = await self.ask(method, path, body, **given)
        assert (answer.status_code, set(answer.json())) == (status, {"error"}), answer.text
        return answer.json()["error"]
