"""People who have a calendar, and programs that read it as calendar programs do."""

from dataclasses import dataclass
from typing import Any

import httpx2
from icalendar import Calendar

from tests.chatkit_client import ChatKit
from tests.tokens import IDP_SECRET, ISSUER, minted

AUDIENCE = "https://todo.example"


@dataclass
class Subscriber:
    """One person, who signs in where that is asked for; reading a calendar sends neither token nor cookie."""

    chat: ChatKit
    person: str = "local"

    @property
    def headers(self) -> dict[str, str]:
        token = minted(IDP_SECRET, sub=self.person, iss=ISSUER, aud=AUDIENCE)
        return {} if self.person == "local" else {"Authorization": f"Bearer {token}"}

    async def make(self) -> str:
        response = await self.chat.http.post("/calendar", headers=self.headers)
        assert response.status_code == 201, response.text
        return response.json()["url"]

    async def revoke(self) -> None:
        assert (await self.chat.http.delete("/calendar", headers=self.headers)).status_code == 204

    async def is_active(self) -> bool:
        return (await self.chat.http.get("/calendar", headers=self.headers)).json()["active"]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call of a task tool, as the backend makes it for the person."""
        tools = self.chat.app.state.services.tools  # pyright: ignore[reportAttributeAccessIssue]
        meta = {"todo/user_id": self.person, "todo/actor": "person"}
        result = await tools.call_tool(tool, arguments, meta)
        assert not result.is_error, result.content
        return result.structured_content

    async def read(self, url: str, **headers: str) -> httpx2.Response:
        return await self.chat.http.get(url, headers=headers)

    async def events(self, url: str) -> dict[str, Any]:
        """By summary."""
        response = await self.read(url)
        assert response.status_code == 200, response.text
        return {str(event["summary"]): event for event in Calendar.from_ical(response.content).events}
