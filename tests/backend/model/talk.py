"""A backend that talks with a strict provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from backend.model.providers import PROFILES
from backend.settings import ProviderName
from tests.backend.conftest import Backend
from tests.chatkit_client import Answer, ChatKit
from tests.scripted_endpoint.app import create_app as create_model
from tests.scripted_model import ScriptedModel
from tests.serving import serve
from tests.strict_provider.endpoint import StrictProvider

KEY = "sk-very-secret-key"


@dataclass
class Talk:
    """A backend that talks with a provider."""

    chat: ChatKit
    model: ScriptedModel
    strict: StrictProvider
    thread_id: str | None = None  # of the one conversation that `say` goes on with

    async def say(self, text: str, *steps: dict[str, Any], **more: Any) -> Answer:
        """What is answered when the model says these steps."""
        await self.model.script(*steps)
        answer = await self.chat.say(text, self.thread_id, **more)
        self.thread_id = answer.thread_id
        return answer

    async def bodies(self) -> list[dict[str, Any]]:
        return [request["body"] for request in await self.model.finished_requests()]


@asynccontextmanager
async def talking(
    backend: Backend, provider: ProviderName, *, tool_calls: str = "streamed", **habit: Any
) -> AsyncIterator[Talk]:
    strict = StrictProvider(create_model(), provider, **habit)
    async with serve(strict, lifespan="off") as url:
        model = ScriptedModel(url)
        changes = {
            "llm_provider": provider,
            "llm_base_url": f"{url}/v1",
            "llm_api_key": SecretStr(KEY),
            "llm_model": PROFILES[provider].model or "m",
            "llm_temperature": 2.0,
            "llm_tool_calls": tool_calls,
        }
        async with backend(**changes) as chat:
            yield Talk(chat, model, strict)
        await model.aclose()


def call(name: str, *, id: str | None = "0", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "id": id}
