"""A client of the scripted endpoint, which sets its responses and reads its requests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn

from tests.scripted_endpoint.app import create_app


class ScriptedModel:
    """Steps have the fields of `tests.scripted_endpoint.script.Step`."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url.rstrip("/")
        self._client = httpx2.AsyncClient(base_url=self.base_url, trust_env=False, verify=False)

    @property
    def openai_base_url(self) -> str:
        return f"{self.base_url}/v1"

    async def script(self, *steps: dict[str, Any]) -> None:
        (await self._client.post("/script", json={"steps": steps})).raise_for_status()

    async def release(self) -> None:
        """Continues the responses that pause because of `hold_after`."""
        (await self._client.post("/release")).raise_for_status()

    async def requests(self) -> list[dict[str, Any]]:
        """Returns the requests in order, with n, body, headers, received_at, finished_at and outcome."""
        response = await self._client.get("/requests")
        return response.raise_for_status().json()

    async def received_requests(self, count: int) -> list[dict[str, Any]]:
        """Waits for this number of requests, and returns them."""
        return await self._requests_when(lambda requests: len(requests) >= count)

    async def finished_requests(self) -> list[dict[str, Any]]:
        """Waits until no request is open, and returns all."""
        return await self._requests_when(lambda requests: all(one["outcome"] != "open" for one in requests))

    async def _requests_when(self, condition: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        async with asyncio.timeout(5):
            requests = await self.requests()
            while not condition(requests):
                await asyncio.sleep(0.005)
                requests = await self.requests()
            return requests

    async def reset(self) -> None:
        """Removes all steps and requests."""
        (await self._client.delete("/script")).raise_for_status()

    async def aclose(self) -> None:
        await self._client.aclose()


class LocalScriptedModel(ScriptedModel):
    def __init__(self, base_url: str, server: uvicorn.Server) -> None:
        super().__init__(base_url)
        self._server = server

    async def stop(self) -> None:
        """Stops the server, and aborts its connections."""
        await self.aclose()
        for listener in self._server.servers:
            listener.close()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(*self._server.server_state.tasks)


@asynccontextmanager
async def serve_scripted_model(*, token_delay: float = 0) -> AsyncIterator[LocalScriptedModel]:
    """Serves the endpoint in the running event loop on a free port."""
    app = create_app(token_delay=token_delay)
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()  # not serve(), which takes over the signals and polls
    port = server.servers[0].sockets[0].getsockname()[1]
    model = LocalScriptedModel(f"http://127.0.0.1:{port}", server)
    try:
        yield model
    finally:
        await model.stop()
