"""The list of conversations: found by title, and which of them are being answered."""

from typing import Any

import pytest

from client.chatkit import request, user_input
from tests.backend.slow_turns import SLOW, read_text
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel


async def listed(chat: ChatKit, metadata: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    asked = {**request("threads.list", order="desc", **params), "metadata": metadata or {}}
    response = await chat.http.post("/chatkit", json=asked)
    assert response.status_code == 200
    return response.json()


async def titles(chat: ChatKit, titled: str) -> list[str]:
    return [one["title"] for one in (await listed(chat, {"titled": titled}))["data"]]


async def test_conversations_are_found_by_letters_of_their_titles(chat: ChatKit) -> None:
    for text in ("Buy 100% juice", "buy 1000 nails", "Call mum_"):
        await chat.say(text)
    assert await titles(chat, "BUY") == ["buy 1000 nails", "Buy 100% juice"]
    assert await titles(chat, "100%") == ["Buy 100% juice"]
    assert await titles(chat, "m_") == ["Call mum_"]
    assert await titles(chat, "_") == ["Call mum_"]
    assert await titles(chat, "nothing of it") == []
    assert len(await titles(chat, "")) == 3


async def test_what_is_found_comes_in_pages(chat: ChatKit) -> None:
    for text in ("buy a", "call b", "buy c", "buy d"):
        await chat.say(text)
    first = await listed(chat, {"titled": "buy"}, limit=2)
    assert ([one["title"] for one in first["data"]], first["has_more"]) == (["buy d", "buy c"], True)
    rest = await listed(chat, {"titled": "buy"}, limit=2, after=first["after"])
    assert ([one["title"] for one in rest["data"]], rest["has_more"]) == (["buy a"], False)


@pytest.mark.parametrize("titled", [7, None, ["buy"], "x" * 201])
async def test_what_can_be_in_no_title_is_refused(chat: ChatKit, titled: Any) -> None:
    asked = {**request("threads.list"), "metadata": {"titled": titled}}
    response = await chat.http.post("/chatkit", json=asked)
    assert response.status_code == 400
    assert response.json() == {"error": "titled is text of at most 200 characters."}


async def test_a_list_tells_what_is_being_answered(chat: ChatKit, model: ScriptedModel) -> None:
    before = (await chat.say("add milk")).thread_id
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=4)
        now = (await listed(chat))["data"]
        assert [bool(one.get("answering")) for one in now] == [True, False]
        assert now[1]["id"] == before
        async for _ in events:
            pass
    assert not any(one.get("answering") for one in (await listed(chat))["data"])
