"""The services and PostgreSQL as processes that can be killed and started again."""

import contextlib
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from cli.database.postgres import Cluster
from tests.conftest import migrate
from tests.processes import ServiceProcess

APPROVAL_TOOLS = ("delete_task", "update_task")  # tools whose calls wait for approval


class KillableSystem(Protocol):
    """A system whose parts can be killed and started again by name."""

    cluster: Cluster

    @property
    def url(self) -> str:
        """The base URL for users."""
        ...

    @property
    def parts(self) -> Sequence[str]: ...

    def service(self, part: str) -> ServiceProcess | None:
        """Returns the process of a part that answers `/ready`; None for other parts."""

    def kill(self, part: str) -> None: ...

    def start(self, part: str) -> None:
        """Starts a part unless it runs; does not wait until a service is ready."""

    def stop(self) -> None: ...


class System:
    """PostgreSQL, the MCP server, the backend and, if one is given, a `workspace`."""

    def __init__(
        self,
        directory: Path,
        model_url: str,
        *,
        workspace: ServiceProcess | None = None,
        approval_tools: Sequence[str] = APPROVAL_TOOLS,
    ) -> None:
        self.cluster = Cluster.start(directory / "data")
        self._postgres_thread = ThreadPoolExecutor(1)  # PostgreSQL is killed when the thread that started it ends
        migrate(self.cluster.url)
        self.mcp = ServiceProcess("mcp_server", "MCP_PORT", directory / "mcp.log", DATABASE_URL=self.cluster.url)
        self.workspace = workspace
        workspace_settings = (
            {name: workspace.environment[name] for name in ("WORKSPACE_URL", "WORKSPACE_TOKEN_SECRET")}
            if workspace
            else {}
        )
        self.backend = ServiceProcess(
            "backend",
            "BACKEND_PORT",
            directory / "backend.log",
            DATABASE_URL=self.cluster.url,
            MCP_URL=f"{self.mcp.url}/mcp",
            LLM_PROVIDER="offline",
            LLM_BASE_URL=model_url,
            APPROVALS=",".join(approval_tools),
            **workspace_settings,
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

    def kill(self, part: str) -> None:
        """Sends SIGKILL."""
        if (service := self.service(part)) is not None:
            service.end(signal.SIGKILL)
        else:
            self.cluster.process.kill()
            self.cluster.process.wait()

    def service(self, part: str) -> ServiceProcess | None:
        return {"backend": self.backend, "mcp": self.mcp, "workspace": self.workspace}.get(part)

    def start(self, part: str) -> None:
        service = self.service(part)
        if service is None:
            self._postgres_thread.submit(self.cluster.restart).result()
        elif not service.is_running:
            service.start()

    def stop(self) -> None:
        for service in reversed(self.services):
            with contextlib.suppress(ProcessLookupError):
                service.end()
        self.cluster.stop()
        self._postgres_thread.shutdown()


@contextlib.contextmanager
def reachable_directory() -> Iterator[Path]:
    """Creates a temporary directory that PostgreSQL can enter if it runs as another account."""
    with tempfile.TemporaryDirectory(prefix="todo-chaos-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)
