"""A process of llama.cpp's server with SmolLM2-135M."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from cli import packages
from tests.conftest import ROOT, find_free_port

_LOADS_WITHIN_SECONDS = 60


@dataclass(frozen=True)
class RealServer:
    process: subprocess.Popen[bytes]
    port: int

    @property
    def settings(self) -> dict[str, str]:
        return {"LLM_PROVIDER": "llamacpp", "LLM_BASE_URL": f"http://127.0.0.1:{self.port}/v1"}

    def is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as response:
                return response.status == 200
        except (URLError, OSError):  # it does not listen yet, or responds with 503
            return False

    def wait_until_ready(self) -> None:
        until = time.monotonic() + _LOADS_WITHIN_SECONDS
        while not self.is_ready():
            assert self.process.poll() is None, "llama.cpp's server has ended"
            assert time.monotonic() < until, "llama.cpp's server does not become ready"
            time.sleep(0.1)

    def read_processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def start_server(*, context: int, template: Path | None = None, log: Path | None = None) -> Iterator[RealServer]:
    """Starts the server, which loads the model for a second or two; `template` is a chat template in Jinja.

    Installs its packages the first time, and raises `CliError` where they cannot be installed.
    """
    packages.ensure(packages.REAL_MODEL)
    port = find_free_port()
    command = [str(packages.REAL_MODEL.python), "-m", "tests.real_model.llama_server", str(port), str(context)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with open(log or os.devnull, "wb") as output:
        process = subprocess.Popen(
            [*command, *([str(template)] if template else [])], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
        server = RealServer(process, port)
        try:
            yield server
        finally:
            server.kill()
