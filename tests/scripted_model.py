"""A client of the scripted endpoint, which sets its responses and reads its requests."""

from collections.abc import Callable
from typing import Any, Self

from tests.serving import http_client
from tests.waiting import until


class ScriptedModel:
    """Steps have the fields of `tests.scripted_endpoint.script.Step`.

    A block begins without those of an earlier test, and ends responses that are held.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url.rstrip("/")
        self._client = http_client(self.base_url)

    async def __aenter__(self) -> Self:
        await self.reset()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.reset()
        await self.aclose()

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
        async def is_met() -> bool:
            nonlocal requests
            requests = await self.requests()
            return condition(requests)

        requests = list[dict[str, Any]]()
        try:
            await until(is_met)
        except AssertionError as error:
            error.add_note(f"outcomes of the requests: {[one['outcome'] for one in requests]}")
            raise
        return requests

    async def reset(self) -> None:
        """Removes all steps and requests."""
        (await self._client.delete("/script")).raise_for_status()

    async def aclose(self) -> None:
        await self._client.aclose()
