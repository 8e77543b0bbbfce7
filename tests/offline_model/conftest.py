from collections.abc import AsyncIterator

import pytest_asyncio
from openai import AsyncOpenAI

from offline_model.app import create_app
from offline_model.settings import Settings
from tests.serving import serve


@pytest_asyncio.fixture
async def url() -> AsyncIterator[str]:
    async with serve(create_app(Settings()), lifespan="off") as url:
        yield url


@pytest_asyncio.fixture
async def openai(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0) as client:
        yield client
