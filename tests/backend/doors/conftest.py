"""A backend as it is started, for the tests of its doors that need nothing special of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ServiceProcess


@pytest.fixture(scope="module")
def url_of_process(session_database_url: str, mcp_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory: Path = tmp_path_factory.mktemp("doors")
    model = ServiceProcess("offline_model", "OFFLINE_PORT", directory / "model.log")
    backend = ServiceProcess(
        "backend",
        "BACKEND_PORT",
        directory / "backend.log",
        DATABASE_URL=session_database_url,
        MCP_URL=mcp_url,
        LLM_PROVIDER="offline",
        LLM_BASE_URL=f"{model.url}/v1",
    )
    for service in (model, backend):
        service.start()
    backend.wait_until_ready()
    yield backend.url
    for service in (model, backend):
        service.end()
