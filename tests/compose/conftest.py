"""Images and containers for a module's tests, who must be root."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose import compose_file, docker_file, namespaces
from tests.compose.containers import Stack
from tests.compose.docker_file import Image
from tests.compose.namespaces import Network

IMAGE_BYTES = 2 * 1024**3
WHAT_PIP_NEEDS = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """In memory where an image fits in and programs may be run from."""
    memory = os.statvfs("/dev/shm")
    fit = memory.f_bavail * memory.f_frsize > IMAGE_BYTES and not memory.f_flag & os.ST_NOEXEC
    with tempfile.TemporaryDirectory(prefix="todo-compose-", dir="/dev/shm" if fit else None) as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture(scope="module")
def stages(place: Path) -> dict[str, Image]:
    """The Dockerfile's, by name; the last one's is empty."""
    variables = {name: value for name, value in os.environ.items() if name.upper().startswith(WHAT_PIP_NEEDS)}
    bases = {
        "${PYTHON_IMAGE}": namespaces.python_image(place),
        "${POSTGRES_IMAGE}": namespaces.postgres_image(place),
        "${CADDY_IMAGE}": namespaces.BaseImage([]),
    }
    return docker_file.build(place / "stages", bases, {**variables, "HOME": str(Path.home())})


@pytest.fixture(scope="module")
def image(stages: dict[str, Image]) -> Image:
    return stages[""]


@pytest.fixture(scope="module")
def network(place: Path) -> Iterator[Network]:
    network = Network(place, list(compose_file.services()))
    yield network
    network.close()


@pytest.fixture(scope="module")
def stack(place: Path, stages: dict[str, Image], network: Network) -> Iterator[Stack]:
    stack = Stack(place, stages, network, OFFLINE_TOKEN_DELAY="0.05")
    try:
        stack.up()
        yield stack
    finally:
        stack.down()


@pytest.fixture
def other(stages: dict[str, Image]) -> Iterator[Stack]:
    """With volumes and a network of its own; nothing of it is started yet."""
    with tempfile.TemporaryDirectory(prefix="todo-compose-") as directory:
        os.chmod(directory, 0o755)
        network = Network(Path(directory), list(compose_file.services()))
        stack = Stack(Path(directory), stages, network)
        yield stack
        stack.down()
        network.close()
