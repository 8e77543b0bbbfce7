"""One workspace process for all tests, with small limits, and users whom no other test knows."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.processes import ServiceProcess
from tests.workspace.running import SECRET, Person, acting, directory, service

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def root() -> Iterator[Path]:
    with directory() as root:
        yield root


@pytest.fixture(scope="session")
def workspace(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    limits = {"LIMIT_FOLDER_BYTES": "400000000", "LIMIT_FILE_BYTES": "150000000", "LIMIT_FOLDER_FILES": "100"}
    limits["LIMIT_PERSON_FILES"] = "120"
    process = service(root, tmp_path_factory.mktemp("workspace") / "log", **limits)
    process.start()
    process.wait_until_ready()
    yield process
    assert process.end() == 0
    for word in ("Traceback", " ERROR ", "eyJ", SECRET, "the secret plan"):
        assert word not in process.log_text, process.log_text


@pytest.fixture
async def alice(workspace: ServiceProcess) -> AsyncIterator[Person]:
    """A user who has no files yet."""
    async with acting(workspace.url, f"alice-{next(_numbers)}") as person:
        yield person
