"""Requests to `/chat`, as front ends send them."""

from collections.abc import Mapping
from typing import Any

import httpx2

from tests.chatkit_client import ChatKit

MINI = [{"role": "user", "content": [{"type": "text", "text": "add milk"}]}]


def part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def send(
    chat: ChatKit, messages: Any, path: str = "/chat", *, headers: Mapping[str, str] | None = None, **more: Any
) -> httpx2.Response:
    return await chat.http.post(path, json={"messages": messages, **more}, headers=headers)


async def ask(chat: ChatKit, messages: Any, status: int = 200, **more: Any) -> Any:
    """The JSON that is answered, with this status."""
    response = await send(chat, messages, **more)
    assert response.status_code == status, response.text
    return response.json()
