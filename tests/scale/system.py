"""Starts several backends and MCP servers behind HAProxy, and PostgreSQL behind PgBouncer."""

import contextlib
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cli.database.postgres import Cluster
from tests.chaos.system import APPROVAL_TOOLS
from tests.conftest import migrate
from tests.processes import ServiceProcess
from tests.scale.pooler import PgBouncer
from tests.scale.proxy import HaProxy

BACKENDS, MCP_SERVERS = 3, 2
DRAIN_SECONDS = 10.0
_UNUSED_PORT = 9  # nothing listens there, so HAProxy considers the server down


class ScaledSystem:
    """All processes run on this machine; `url` is HAProxy's address for users."""

    def __init__(
        self,
        directory: Path,
        model_url: str,
        *,
        backends: int = BACKENDS,
        mcp_servers: int = MCP_SERVERS,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._drain_seconds = drain_seconds
        self.cluster = Cluster.start(directory / "data")
        self._postgres_thread = ThreadPoolExecutor(1)  # PostgreSQL is killed when the thread that started it ends
        migrate(self.cluster.url)
        self.pooler = PgBouncer(self.cluster.url, directory)
        self._directory = directory
        self._services: dict[str, ServiceProcess] = {}
        for n in range(1, mcp_servers + 1):
            self._services[f"mcp-{n}"] = self._service(f"mcp-{n}", "mcp_server", "MCP_PORT")
        for n in range(1, backends + 1):
            self._services[f"backend-{n}"] = self._service(f"backend-{n}", "backend", "BACKEND_PORT")
        self.proxy = HaProxy(self._ports_by_address(), directory)
        for name, service in self._services.items():
            service.environment["MCP_URL"] = f"{self.proxy.tools_url}/mcp"
            if name.startswith("backend"):
                service.environment |= {
                    "LLM_PROVIDER": "offline",
                    "LLM_BASE_URL": model_url,
                    "APPROVALS": ",".join(APPROVAL_TOOLS),
                }
        self.url = self.proxy.url
        os.environ["SSL_CERT_FILE"] = str(self.proxy.certificate)  # what clients in this process trust
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        self.pooler.start()
        self.proxy.start()
        for service in self._services.values():
            service.start()
        for service in self._services.values():
            service.wait_until_ready()
        self.proxy.wait_until_ready()

    def _service(self, name: str, module: str, port_variable: str) -> ServiceProcess:
        return ServiceProcess(
            module,
            port_variable,
            self._directory / f"{name}.log",
            DATABASE_URL=self.pooler.url,
            LISTEN_DATABASE_URL=self.cluster.url,
            DATABASE_PREPARED="off",
            DRAIN_SECONDS=str(self._drain_seconds),
            AUTH_NONE_BEYOND_LOOPBACK="true",  # HAProxy names itself, as proxies do
        )

    def _ports_by_address(self) -> dict[str, int]:
        """Returns the local port for each address of a service in `deploy/haproxy.cfg`."""
        addresses = {
            **{f"10.0.0.{10 + n}:8000": f"backend-{n}" for n in range(1, BACKENDS + 1)},
            **{f"10.0.0.{20 + n}:8001": f"mcp-{n}" for n in range(1, MCP_SERVERS + 1)},
        }
        return {
            address: self._services[name].port if name in self._services else _UNUSED_PORT
            for address, name in addresses.items()
        }

    @property
    def parts(self) -> Sequence[str]:
        return (*self._services, "haproxy", "pgbouncer", "postgres")

    @property
    def services(self) -> dict[str, ServiceProcess]:
        return self._services

    def service(self, part: str) -> ServiceProcess | None:
        return self._services.get(part)

    def kill(self, part: str) -> None:
        """Sends SIGKILL."""
        match part:
            case "postgres":
                self.cluster.process.kill()
                self.cluster.process.wait()
            case "haproxy":
                self.proxy.end(signal.SIGKILL)
            case "pgbouncer":
                self.pooler.end(signal.SIGKILL)
            case _:
                self._services[part].end(signal.SIGKILL)

    def start(self, part: str) -> None:
        """Starts a part unless it runs; does not wait until a service is ready."""
        match part:
            case "postgres":
                self._postgres_thread.submit(self.cluster.restart).result()
            case "haproxy":
                self.proxy.start()
            case "pgbouncer":
                self.pooler.start()
            case _:
                if not self._services[part].is_running:
                    self._services[part].start()

    def stop(self) -> None:
        del os.environ["SSL_CERT_FILE"]
        for service in reversed(self._services.values()):
            with contextlib.suppress(ProcessLookupError):
                service.end(signal.SIGINT, timeout=30)
        self.proxy.end()
        self.pooler.end()
        self.cluster.stop()
        self._postgres_thread.shutdown()
