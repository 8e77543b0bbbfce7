"""What one user's calls at the same time mean for that user, and for others."""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence

import httpx2
import pytest

from mcp_server.read_routes import PATHS
from tests.mcp.calls import Tools
from tests.mcp.conftest import Limited, new_user
from tests.mcp.servers import own
from tests.mcp.wire import LEGACY, call, cancelled, request, send
from tests.processes import ServiceProcess
from tests.support.stored import Stored
from tests.waiting import WAIT_SECONDS, until

SENTENCE = "Too many of your calls are being carried out at the same time"
# Words of which all but the last occur in all descriptions of `add_long_tasks`, so that each is looked for.
WORDS = [*"0123456789abcdef", "ta", "as", "sk", "xyz"]
OTHERS = 8


async def test_further_calls_of_a_user_wait(limited: Limited, stored: Stored) -> None:
    async with limited(limit_requests_at_once=2) as tools:
        with stored.lock_table("tasks"):
            adding = [asyncio.create_task(tools.add(f"task {n}")) for n in range(10)]
            await until(lambda: stored.has_waiting_statements(count=2))
            # Calls of other users, and those of the same user's own client, do not wait.
            for token in (Tools(tools.http, new_user()).token, own(sub=tools.user)):
                assert (await send(tools.http, request("tools/list", token=token))).status_code == 200
            assert not stored.has_waiting_statements(count=3)
        await asyncio.gather(*adding)
        assert len(await tools.tasks()) == 10


@pytest.mark.long(seconds=8)
async def test_no_request_is_worked_on_beside_as_many_as_are_allowed(limited: Limited, stored: Stored) -> None:
    async with limited(limit_requests_at_once=1) as tools:
        headers = {"Authorization": f"Bearer {tools.token}"}
        with stored.lock_table("tasks"):
            first = asyncio.create_task(
                send(tools.http, call("add_task", {"title": "x"}, version=LEGACY, token=tools.token))
            )
            await until(stored.has_waiting_statements)
            methods = ("tools/list", "server/discover")
            listed = [send(tools.http, request(method, token=tools.token)) for method in methods]
            read = [tools.http.get(path, headers=headers) for path in PATHS]
            for response in await asyncio.gather(*listed, *read):
                assert response.status_code == 429, response.text
                assert response.headers["retry-after"] == "1"
                assert SENTENCE in response.text
            assert (await send(tools.http, cancelled(1, token=tools.token))).status_code in (202, 429)
            assert (await first).json()["result"]["isError"], "a cancellation waits for no turn"
        assert (await tools.add("milk"))["id"] == 1


async def test_a_list_that_takes_too_long_is_ended(limited: Limited, stored: Stored) -> None:
    async with limited() as tools:
        with stored.lock_table("tasks"):
            sentence = await tools.error("list_tasks", query="milk")
        assert sentence.startswith("Reading this list takes too long")
        assert await tools.tasks() == []


class Latencies:
    """The seconds of each call of other users, and how many failed."""

    def __init__(self) -> None:
        self.seconds = list[float]()
        self.failures = 0

    async def measure(self, http: httpx2.AsyncClient, user: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            started = time.monotonic()
            response = await send(http, call("list_tasks", {}, token=own(sub=user)))
            self.seconds.append(time.monotonic() - started)
            self.failures += response.status_code != 200 or response.json()["result"]["isError"]
            await asyncio.sleep(0.05)

    def __str__(self) -> str:
        median, worst = statistics.median(self.seconds), max(self.seconds)
        return f"{len(self.seconds)} calls, median {median:.3f} s, worst {worst:.3f} s, {self.failures} failed"


async def measure(guarded: ServiceProcess, users: Sequence[str], seconds: float) -> Latencies:
    latencies = Latencies()
    async with create_client(guarded) as http:
        await asyncio.gather(*(latencies.measure(http, user, seconds) for user in users))
    return latencies


def create_client(server: ServiceProcess) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=200)
    return httpx2.AsyncClient(base_url=server.url, verify=False, trust_env=False, timeout=WAIT_SECONDS, limits=limits)


@pytest.mark.long(seconds=40)
async def test_one_users_worst_lists_do_not_make_others_wait(
    guarded: ServiceProcess, stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    eve, others = new_user(), [new_user() for _ in range(OTHERS)]
    stored.add_long_tasks(eve, 5_000)
    pace = asyncio.Lock()
    quiet = await measure(guarded, others, 3)

    async def attack(http: httpx2.AsyncClient) -> None:
        while True:
            await send(http, call("list_tasks", {"query": " ".join(WORDS)}, token=own(sub=eve)))
            async with pace:
                await asyncio.sleep(0.1)  # all together stay below 600 calls a minute

    async with create_client(guarded) as http:
        attacks = [asyncio.create_task(attack(http)) for _ in range(120)]
        await asyncio.sleep(1)
        attacked = await measure(guarded, others, 10)
        for task in attacks:
            task.cancel()
        await asyncio.gather(*attacks, return_exceptions=True)
    with capsys.disabled():
        sys.stdout.write(f"\nquiet: {quiet}; attacked: {attacked}\n")
    assert attacked.failures == 0
    # Five times what is expected of a quiet machine; a busy one shows in the figures before the attack.
    assert statistics.median(attacked.seconds) <= max(1.5, 10 * statistics.median(quiet.seconds))
    assert max(attacked.seconds) <= max(10, 10 * max(quiet.seconds))
