from typing import Any

import httpx2
import pytest

from service.workers.leaving import Leaving


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def app(_: Any, __: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


async def ask(leaving: Leaving, path: str) -> tuple[int, str]:
    transport = httpx2.ASGITransport(app=leaving)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as http:
        answer = await http.get(path)
    return answer.status_code, answer.text


async def test_it_says_that_it_leaves_and_serves_all_the_same() -> None:
    leaving = Leaving(app, 30)
    assert (await ask(leaving, "/ready"))[0] == 200
    assert leaving.begin()
    status, text = await ask(leaving, "/ready")
    assert status == 503
    assert "asked to end" in text
    assert await ask(leaving, "/chatkit") == (200, "served")


async def test_without_seconds_it_does_not_leave() -> None:
    leaving = Leaving(app, 0)
    assert not leaving.begin()
    assert not leaving.is_over(busy=True)
    assert (await ask(leaving, "/ready"))[0] == 200


@pytest.mark.parametrize(
    ("seconds", "busy", "over_after"),
    [(30.0, False, 3.0), (30.0, True, 30.0), (1.0, False, 1.0), (1.0, True, 1.0)],
)
def test_it_ends_when_others_have_noticed_and_it_is_done(seconds: float, busy: bool, over_after: float) -> None:
    time = Time()
    leaving = Leaving(app, seconds, clock=time)
    leaving.begin()
    time.now += over_after - 0.1
    leaving.begin()  # asked again, it goes on as it was
    assert not leaving.is_over(busy=busy)
    time.now += 0.2
    assert leaving.is_over(busy=busy)
