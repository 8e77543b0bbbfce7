from collections.abc import AsyncIterator

import pytest_asyncio
from openai import AsyncOpenAI

from tests.scripted_model import ScriptedModel, serve_scripted_model


@pytest_asyncio.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with serve_scripted_model() as model:
        yield model


@pytest_asyncio.fixture
async def openai(model: ScriptedModel) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=model.openai_base_url, api_key="secret", max_retries=0) as client:
        yield client
