"""What is killed: the services and PostgreSQL as processes."""

import contextlib
import os
import random
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from cli.database.postgres import Cluster
from tests.conftest import migrate
from tests.processes import ServiceProcess

ASKED_FIRST = ("delete_task", "update_task")  # the tools whose calls wait for consent


class Killable(Protocol):
    """Parts that can be killed, and started again by the same name."""

    cluster: Cluster

    @property
    def url(self) -> str:
        """Where people are served."""
        ...

    @property
    def parts(self) -> Sequence[str]: ...

    def service(self, part: str) -> ServiceProcess | None:
        """The part, if it is a service, which tells when it is ready."""

    def kill(self, part: str, chance: random.Random, /) -> None: ...

    def start(self, part: str) -> None:
        """What was killed, or has ended since; returns when it is there, and at once for a service."""

    def stop(self) -> None: ...


class System:
    """PostgreSQL, the MCP server, the backend and perhaps a `workspace`; the model is an endpoint somewhere else."""

    def __init__(
        self,
        directory: Path,
        model_url: str,
        workers: int = 1,
        *,
        workspace: ServiceProcess | None = None,
        asked_first: Sequence[str] = ASKED_FIRST,
    ) -> None:
        self.workers = workers
        self.cluster = Cluster.start(directory / "data")
        self._keeper = ThreadPoolExecutor(1)  # PostgreSQL ends with the thread that started it
        migrate(self.cluster.url)
        self.mcp = ServiceProcess(
            "mcp_server",
            "MCP_PORT",
            directory / "mcp.log",
            DATABASE_URL=self.cluster.url,
            MCP_WORKERS=str(workers),
        )
        self.workspace = workspace
        its = workspace.environment if workspace else {}
        self.backend = ServiceProcess(
            "backend",
            "BACKEND_PORT",
            directory / "backend.log",
            DATABASE_URL=self.cluster.url,
            MCP_URL=f"{self.mcp.url}/mcp",
            LLM_PROVIDER="offline",
            LLM_BASE_URL=model_url,
            APPROVALS=",".join(asked_first),
            BACKEND_WORKERS=str(workers),
            **{name: its[name] for name in ("WORKSPACE_URL", "WORKSPACE_TOKEN_SECRET") if name in its},
        )
        self.services = [self.mcp, *([workspace] if workspace else []), self.backend]
        for service in self.services:
            service.start()
        for service in self.services:
            service.wait_until_ready()

    @property
    def url(self) -> str:
        return self.backend.url

    @property
    def parts(self) -> Sequence[str]:
        return ("backend", "mcp", "postgres", *(["workspace"] if self.workspace else []))

    def kill(self, part: str, chance: random.Random) -> None:
        """By SIGKILL; of a service with several processes one of these, now and then all."""
        if part == "postgres":
            self.cluster.process.kill()
            self.cluster.process.wait()
            return
        service = self.service(part)
        assert service is not None
        several = service.workers if self.workers > 1 else []
        if several and chance.random() < 0.8:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(several), signal.SIGKILL)
        else:
            service.end(signal.SIGKILL)

    def service(self, part: str) -> ServiceProcess | None:
        return {"backend": self.backend, "mcp": self.mcp, "workspace": self.workspace}.get(part)

    def start(self, part: str) -> None:
        service = self.service(part)
        if service is None:
            self._keeper.submit(self.cluster.restart).result()
        elif service.process is None or service.process.poll() is not None:
            service.start()

    def stop(self) -> None:
        for service in reversed(self.services):
            with contextlib.suppress(ProcessLookupError):
                service.end()
        self.cluster.stop()
        self._keeper.shutdown()


@contextlib.contextmanager
def reachable_directory() -> Iterator[Path]:
    """A temporary directory that PostgreSQL can reach when it runs as another user."""
    with tempfile.TemporaryDirectory(prefix="todo-chaos-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)
