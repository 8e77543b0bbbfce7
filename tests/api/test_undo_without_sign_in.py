"""Undo where nobody signs in: with the secret that `./todo up` makes, and without one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mcp_server.server import create_app
from mcp_server.settings import McpSettings
from tests.chatkit_client import ChatKit
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.support.backends import local_backend
from tests.support.cards import click_undo, list_widgets
from tests.support.script import add_task, call, calls, says
from tests.support.stack import Services
from tests.tokens import MCP_TOKEN_SECRET

pytestmark = pytest.mark.long

NO_SIGN_IN = {
    **{"AUTH_MODE": "none", "AUTH_JWT_SECRET": "", "AUTH_ISSUER": "", "AUTH_AUDIENCE": ""},
    **{"AGENTS": "off", "WORKSPACE_URL": "", "WORKSPACE_TOKEN_SECRET": ""},
}


@asynccontextmanager
async def chat_of(services: Services, secret: str) -> AsyncIterator[ChatKit]:
    settings = {"database_url": services.database_url, "mcp_token_secret": secret or None}
    async with (
        serve(create_app(McpSettings.model_validate(settings))) as url,
        local_backend(
            services, **NO_SIGN_IN, MCP_INTERNAL_URL=f"{url}/mcp", MCP_URL="", MCP_TOKEN_SECRET=secret
        ) as own,
        ChatKit(own.url) as chat,
    ):
        yield chat


@pytest.mark.parametrize("secret", [MCP_TOKEN_SECRET, ""], ids=["secret", "no secret"])
async def test_undo(services: Services, model: ScriptedModel, secret: str) -> None:
    """Without a secret no call of the page can be trusted to name the answer it undoes: a sentence says what to set."""
    async with chat_of(services, secret) as chat:

        async def titles() -> set[str]:
            return {task["title"] for task in (await chat.http.get("/tasks?view=all")).json()["tasks"]}

        before = await titles()
        title = f"milk, {'with' if secret else 'without'} a secret"
        added = (await chat.http.post("/tasks", json={"title": title})).json()
        undone = await chat.http.post("/tasks/undo", json={"batch": added["batch"]})
        assert undone.status_code == (200 if secret else 400)
        assert ("MCP_TOKEN_SECRET" in undone.text) is not bool(secret)
        assert await titles() == (before if secret else before | {title})
        if not secret:
            await model.script(calls(call("update_task", task_id=added["tasks"][0]["id"], undo=True)), says("Undone."))
            await chat.say("undo that")
        assert await titles() == before, "the assistant can undo in either case"

        await model.script(add_task(title), says("Added."))
        [card] = list_widgets(await chat.say("add milk"))
        clicked = await click_undo(chat, card)
        assert ("MCP_TOKEN_SECRET" in str(clicked.error)) is not bool(secret)
        assert await titles() == (before if secret else before | {title})
