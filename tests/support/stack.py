"""Runs the services as processes, with a scripted HTTP endpoint as the model."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.clock import set_clock
from tests.processes import ServiceProcess
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET
from tests.workspace_service import WORKSPACE_TOKEN_SECRET, create_workspace_service

AUDIENCE = "todo-tests"
NOW = "2026-11-25T09:00:00+01:00"
"""The time at which the tests start, a Wednesday; the clock that all services share advances from there."""
SIGN_IN = {
    "AUTH_MODE": "jwt",
    "AUTH_JWT_SECRET": IDP_SECRET,
    "AUTH_ISSUER": ISSUER,
    "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET,
}
CLOCK = {**set_clock(NOW), "TIME_ZONE": "Europe/Berlin"}


@dataclass(frozen=True)
class StackSettings:
    backends: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


STACKS: dict[str, StackSettings] = {
    "main": StackSettings(backends=2, environment={"APPROVALS": "bulk,commit"}),
    "approvals": StackSettings(
        backends=2, environment={"APPROVALS": "delete_task,agents,run_command", "LLM_MODELS": "large"}
    ),
    "page": StackSettings(
        environment={
            "APPROVALS": "bulk,agents,commit",
            "LIMIT_FILE_BYTES": "50000",
            "LLM_TOOL_CALLS": "streamed",  # or two claims without a call would change how all later tests call tools
        }
    ),
    "no_sign_in": StackSettings(
        environment={
            "AUTH_MODE": "none",
            "LLM_PROVIDER": "custom",
            "LLM_MODEL": "an-organisation/a-model-with-quite-a-long-name-2026-11-23",
            "HISTORY_TOKENS": "1000",
        }
    ),
    "passwords": StackSettings(environment={"AUTH_MODE": "password"}),
    "text_calls": StackSettings(environment={"LLM_TOOL_CALLS": "text"}),
    "small_window": StackSettings(
        environment={
            "LLM_PROVIDER": "cerebras",
            "LLM_API_KEY": "key",
            "LLM_MODELS": "gpt-oss-120b,large",
            "HISTORY_TOKENS": "1000",
        }
    ),
    "limits": StackSettings(
        environment={
            "LIMIT_RUNNING_RUNS": "1",
            "LIMIT_RUNS_PER_MINUTE": "5",
            "LIMIT_RUNS_PER_DAY": "8",
            "LIMIT_CONVERSATIONS": "3",
            "LIMIT_MESSAGE_CHARS": "200",
            "ALLOWED_HOSTS": "todo.example",
            "ALLOWED_ORIGINS": "https://app.example",
        }
    ),
}
"""Each stack costs seconds in every process that runs tests, so there are few."""


@dataclass(frozen=True)
class Services:
    """The database, MCP server, workspace and scripted model, which all stacks share."""

    database_url: str
    mcp: ServiceProcess
    workspace: ServiceProcess
    model: ServiceProcess

    def backend_environment(self) -> dict[str, str]:
        return {
            **SIGN_IN,
            **CLOCK,
            "AUTH_AUDIENCE": AUDIENCE,
            "DATABASE_URL": self.database_url,
            "MCP_URL": f"{self.mcp.url}/mcp",
            "WORKSPACE_URL": f"{self.workspace.url}/mcp",
            "WORKSPACE_TOKEN_SECRET": WORKSPACE_TOKEN_SECRET,
            "AGENTS": "on",
            "APPROVALS": "bulk",
            "LLM_PROVIDER": "offline",
            "LLM_BASE_URL": f"{self.model.url}/v1",
            "MCP_RESEND_SECONDS": "240",  # a busy machine takes long to restart the MCP server
            # Tests send more requests than users do.
            "LIMIT_RUNS_PER_MINUTE": "10000",
            "LIMIT_RUNS_PER_DAY": "100000",
            "LIMIT_REQUESTS_PER_MINUTE": "100000",
            "LIMIT_RUNNING_RUNS": "50",
        }


@dataclass(frozen=True)
class Stack:
    """Backends with the same settings and shared services; `url` is that of the first."""

    services: Services
    backends: list[ServiceProcess]

    @property
    def url(self) -> str:
        return self.backends[0].url

    @property
    def database_url(self) -> str:
        return self.services.database_url

    def ensure_running(self) -> None:
        """Starts each service that a test has killed."""
        stopped = [service for service in self.backends if not service.is_running]
        for service in stopped:
            service.start()
        for service in stopped:
            service.wait_until_ready()


@contextmanager
def run_services(database_url: str, directory: Path) -> Iterator[Services]:
    mcp = ServiceProcess("mcp_server", "MCP_PORT", directory / "mcp.log", DATABASE_URL=database_url, **SIGN_IN, **CLOCK)
    mcp.environment["MCP_URL"] = f"{mcp.url}/mcp"
    workspace, _ = create_workspace_service(directory)
    model = ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", directory / "model.log")
    with ExitStack() as cleanup:
        for service in (mcp, workspace, model):
            service.start()
            cleanup.callback(_end, service)
        for service, path in ((mcp, "/ready"), (workspace, "/ready"), (model, "/health")):
            service.wait_until_ready(path=path)
        yield Services(database_url, mcp, workspace, model)


@contextmanager
def run_stack(services: Services, settings: StackSettings, directory: Path) -> Iterator[Stack]:
    environment = {**services.backend_environment(), **settings.environment}
    backends = [
        ServiceProcess("backend", "BACKEND_PORT", directory / f"backend-{number}.log", **environment)
        for number in range(settings.backends)
    ]
    stack = Stack(services, backends)
    with ExitStack() as cleanup:
        for backend in backends:
            cleanup.callback(_end, backend)
        stack.ensure_running()
        yield stack


def _end(service: ServiceProcess) -> None:
    if service.is_running:
        service.end()
