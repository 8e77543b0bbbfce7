"""`python -m offline_model` as it is started by people and by `./todo up`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import ServiceProcess, run, run_service
from tests.serving import http_client

HELLO = {"stream": True, "messages": [{"role": "user", "content": "hello"}]}


@contextmanager
def started(log: Path, token_delay: str) -> Iterator[ServiceProcess]:
    process = ServiceProcess("offline_model", "OFFLINE_PORT", log, OFFLINE_TOKEN_DELAY=token_delay)
    yield from run_service(process, "/health")


async def test_sigterm_ends_it_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    with started(tmp_path / "log", "60") as process:
        async with (
            http_client(process.url) as client,
            client.stream("POST", "/v1/chat/completions", json=HELLO) as response,
        ):
            assert response.status_code == 200
            process.end()
        assert "ERROR" not in process.log_text


async def test_who_leaves_in_the_middle_of_a_stream_leaves_no_error(tmp_path: Path) -> None:
    with started(tmp_path / "log", "0.01") as process:
        written = process.log_text
        async with http_client(process.url) as client:
            async with client.stream("POST", "/v1/chat/completions", json=HELLO) as response:
                async for _ in response.aiter_raw():
                    break
            again = await client.post("/v1/chat/completions", json=HELLO)
            assert again.text.endswith("data: [DONE]\n\n")
        process.end()
        assert process.log_text == written


@pytest.mark.parametrize(
    ("name", "value"), [("OFFLINE_PORT", "many"), ("OFFLINE_TOKEN_DELAY", "-1"), ("LIMIT_HEADERS", "few")]
)
def test_settings_that_cannot_work(name: str, value: str) -> None:
    ended = run("offline_model", **{name: value})
    assert ended.stderr.startswith(name)
    assert ended.stderr.count("\n") == 1
    assert ended.returncode == os.EX_CONFIG
