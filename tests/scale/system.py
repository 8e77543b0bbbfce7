"""Three backends and two MCP servers as processes of their own behind HAProxy, PostgreSQL behind PgBouncer."""

import contextlib
import os
import random
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cli.database.postgres import Cluster
from tests.chaos.system import ASKED_FIRST
from tests.conftest import migrate
from tests.processes import ServiceProcess
from tests.scale.pooler import Pooler
from tests.scale.proxy import Proxy

BACKENDS, MCP_SERVERS = 3, 2
DRAIN_SECONDS = 10.0


class Scaled:
    """All on this machine; the model is an endpoint somewhere else. People are at `url`."""

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
        self._keeper = ThreadPoolExecutor(1)  # PostgreSQL ends with the thread that started it
        migrate(self.cluster.url)
        self.pooler = Pooler(self.cluster.url, directory)
        self._directory = directory
        self._services: dict[str, ServiceProcess] = {}
        for n in range(1, mcp_servers + 1):
            self._services[f"mcp-{n}"] = self._service(f"mcp-{n}", "mcp_server", "MCP_PORT")
        for n in range(1, backends + 1):
            self._services[f"backend-{n}"] = self._service(f"backend-{n}", "backend", "BACKEND_PORT")
        self.proxy = Proxy(self._places(), directory)
        for name, service in self._services.items():
            if name.startswith("backend"):
                service.environment |= self._of_backends(model_url)
            else:
                service.environment["MCP_URL"] = f"{self.proxy.tools_url}/mcp"
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
        )

    def _places(self) -> dict[str, int]:
        """The ports, by the addresses that HAProxy's file has for them; of a service that is not there, nobody's."""
        return {
            **{f"10.0.0.{10 + n}:8000": self._port(f"backend-{n}") for n in range(1, BACKENDS + 1)},
            **{f"10.0.0.{20 + n}:8001": self._port(f"mcp-{n}") for n in range(1, MCP_SERVERS + 1)},
        }

    def _port(self, name: str) -> int:
        return self._services[name].port if name in self._services else 9

    def _of_backends(self, model_url: str) -> dict[str, str]:
        return {
            "MCP_URL": f"{self.proxy.tools_url}/mcp",
            "LLM_PROVIDER": "offline",
            "LLM_BASE_URL": model_url,
            "APPROVALS": ",".join(ASKED_FIRST),
        }

    @property
    def parts(self) -> Sequence[str]:
        return (*self._services, "haproxy", "pgbouncer", "postgres")

    @property
    def services(self) -> dict[str, ServiceProcess]:
        return self._services

    def service(self, part: str) -> ServiceProcess | None:
        return self._services.get(part)

    def kill(self, part: str, _: random.Random) -> None:
        """By SIGKILL."""
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
        """What was killed, or has ended since; returns at once for a service."""
        match part:
            case "postgres":
                self._keeper.submit(self.cluster.restart).result()
            case "haproxy":
                self.proxy.start()
            case "pgbouncer":
                self.pooler.start()
            case _:
                service = self._services[part]
                if service.process is None or service.process.poll() is not None:
                    service.start()

    def stop(self) -> None:
        del os.environ["SSL_CERT_FILE"]
        for service in reversed(self._services.values()):
            if service.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    service.end(signal.SIGINT, timeout=30)
        self.proxy.end()
        self.pooler.end()
        self.cluster.stop()
        self._keeper.shutdown()
