"""Personal access tokens, made as the page makes them."""

from collections.abc import Sequence
from typing import Any

from tests.serving import http_client
from tests.support.users import User


async def make_token(
    user: User, scopes: Sequence[str] = ("chat", "tasks"), *, name: str = "a program", **fields: Any
) -> dict[str, Any]:
    """Returns a token of the user, with its `id`."""
    async with http_client(user.url, headers={"Origin": user.url}) as http:
        await sign_in(http, user)
        response = await http.post("/tokens", json={"name": name, "scopes": list(scopes), **fields})
        assert response.status_code == 201, response.text
        await http.delete("/session")
        return response.json()


async def sign_in(http: Any, user: User) -> None:
    response = await http.post("/session", headers={"Authorization": f"Bearer {user.token}"})
    assert response.status_code == 200, response.text
