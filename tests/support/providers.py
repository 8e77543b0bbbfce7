"""Conversations with a server that rejects what a provider rejects, and responds as it does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from backend.model.providers import PROFILES
from backend.settings import ProviderName
from tests.chatkit_client import Answer
from tests.scripted_endpoint.app import create_app as create_model
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.strict_provider.endpoint import StrictProvider
from tests.support.backends import LocalBackend, local_backend
from tests.support.model_requests import requests_to
from tests.support.stack import Services
from tests.support.users import User

Json = dict[str, Any]

KEY = "sk-very-secret-key"


@dataclass(frozen=True)
class ProviderConversation:
    """A conversation of a user through one provider."""

    backend: LocalBackend
    user: User
    model: ScriptedModel
    strict: StrictProvider
    provider: ProviderName
    thread_id: str

    async def say(self, text: str, *steps: Json, **more: Any) -> Answer:
        """Sends a message; the model responds with these steps."""
        await self.model.script(*steps)
        return await self.user.chatkit.say(text, self.thread_id, **more)

    async def bodies(self) -> list[Json]:
        return await requests_to(self.model)

    @asynccontextmanager
    async def with_new_user(self) -> AsyncIterator["ProviderConversation"]:
        """Yields a conversation of another user with the same backend and provider."""
        await self.model.finished_requests()
        await self.model.reset()
        self.strict.rejections.clear()
        async with User(self.backend) as user:
            yield replace(self, user=user, thread_id=(await user.runs.begin("A talk"))["id"])


@asynccontextmanager
async def open_conversation(
    services: Services,
    user: User,
    provider: ProviderName,
    options: Json | None = None,
    server: ProviderName | None = None,
    /,
    **environment: str,
) -> AsyncIterator[ProviderConversation]:
    """Starts a conversation; `options` are those of `StrictProvider`.

    `server` is the provider that the server imitates, if it is not `provider`.
    """
    strict = StrictProvider(create_model(), server or provider, **(options or {}))
    async with serve(strict, lifespan="off") as url:
        model = ScriptedModel(url)
        settings = {
            "LLM_PROVIDER": provider,
            "LLM_BASE_URL": f"{url}/v1",
            "LLM_API_KEY": KEY,
            "LLM_MODEL": PROFILES[server or provider].model or "m",
        }
        async with local_backend(services, **settings | environment) as backend, User(backend, user.name) as local_user:
            # A conversation with a title does not request one from the model.
            thread = (await local_user.runs.begin("A talk"))["id"]
            yield ProviderConversation(backend, local_user, model, strict, provider, thread)
        await model.aclose()


def call(name: str, *, id: str | None = "0", **arguments: Any) -> Json:
    """Returns a call whose id is always the same, as some servers send it."""
    return {"name": name, "arguments": arguments, "id": id}
