"""Which services `./todo up` runs, and the settings with which each is started."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cli import data_dir, terminal
from cli.database import postgres
from cli.services import environment, ollama
from cli.services.ollama import LocalOllama
from cli.services.parts import Service
from cli.services.ports import HOST, Ports, find_free_port
from common import child_environment

Secrets = Callable[[Path, str], str]
"""Returns the secret of a data directory that has this name."""


@dataclass(frozen=True)
class Composition:
    directory: Path
    loaded: Mapping[str, str]
    """The variables of `.env` and the environment."""
    variables: Mapping[str, str]
    """The same, with the model that was found and the time zone of this machine, where none was set."""
    ollama: LocalOllama | None
    has_workspace: bool
    offline_port: int | None

    @classmethod
    def choose(cls, directory: Path, loaded: Mapping[str, str]) -> Self:
        variables, found = ollama.choose_model(loaded)
        variables.setdefault("TIME_ZONE", environment.find_time_zone(variables) or "UTC")
        offline_port = find_free_port() if environment.needs_offline_model(variables) else None
        is_reachable = os.geteuid() != 0 or data_dir.is_traversable(directory)
        has_workspace = variables.get("AGENTS") != "off" and is_reachable
        return cls(directory, loaded, variables, found, has_workspace, offline_port)

    @property
    def needs_postgres(self) -> bool:
        return "DATABASE_URL" not in self.variables

    @property
    def modules(self) -> list[str]:
        workspace = ["workspace"] if self.has_workspace else []
        offline = ["offline_model"] if self.offline_port else []
        migrations = [] if self.needs_postgres else ["migrations"]  # else their address is not a setting
        return ["backend", "mcp_server", *workspace, *migrations, *offline]

    def warn_of_missing_workspace(self) -> None:
        if not self.has_workspace and self.variables.get("AGENTS") != "off":
            terminal.warn(
                f"The workspace is not started: it does not run as root, and nobody else can reach {self.directory}: "
                "choose another --data-dir, or set AGENTS=off."
            )

    def create_settings(self, ports: Ports, *, secret: Secrets = data_dir.secret) -> dict[str, str]:
        """Returns the settings of all services together; only `secret` may create something."""
        settings = {"AUTH_MODE": "none", "DEVICE_HOST": "auto", **self.variables, **self._create_addresses(ports)}
        settings.setdefault("MCP_TOKEN_SECRET", secret(self.directory, data_dir.TOKEN_SECRET))
        settings.setdefault("WORKSPACE_TOKEN_SECRET", secret(self.directory, data_dir.WORKSPACE_SECRET))
        settings |= create_directory_settings(self.variables, self.directory, secret=secret)
        if self.has_workspace:
            settings["WORKSPACE_DIR"] = str(data_dir.get_workspaces_path(self.directory))
        else:
            settings["AGENTS"] = "off"
        if self.offline_port is not None:
            settings["LLM_PROVIDER"] = environment.OFFLINE
        settings["LOG_FORMAT"] = _choose_log_format(self.variables)
        settings["PYTHONUNBUFFERED"] = "1"
        return settings

    def _create_addresses(self, ports: Ports) -> dict[str, str]:
        addresses = {
            "BACKEND_HOST": HOST,
            "BACKEND_PORT": str(ports.page),
            "MCP_HOST": HOST,
            "MCP_PORT": str(ports.mcp),
            "MCP_URL": environment.get_mcp_url(self.variables, ports.mcp),
            "MCP_INTERNAL_URL": f"http://{HOST}:{ports.mcp}/mcp",
            "OFFLINE_HOST": HOST,
        }
        if self.needs_postgres:
            addresses["DATABASE_URL"] = postgres.url(self.directory)
            addresses["MIGRATION_DATABASE_URL"] = postgres.url(self.directory, postgres.OWNER)
        if ports.workspace is not None:
            url = f"http://{HOST}:{ports.workspace}/mcp"
            addresses |= {"WORKSPACE_URL": url, "WORKSPACE_HOST": HOST, "WORKSPACE_PORT": str(ports.workspace)}
        if self.offline_port is not None:
            url = f"http://{HOST}:{self.offline_port}/v1"
            addresses |= {"LLM_BASE_URL": url, "OFFLINE_PORT": str(self.offline_port)}
        return addresses

    def create_services(self, settings: Mapping[str, str], ports: Ports, *, migrates: bool) -> list[Service]:
        """In the order of starting and stopping: the backend starts slowest, and needs the others to the last."""
        servers, url = environment.list_server_variables(self.variables), f"http://{HOST}:{ports.page}"
        services = [
            _create_service("Backend", "backend", settings, ports.page, extra=servers, note=url),
            _create_service("MCP server", "mcp_server", settings, ports.mcp, note=f"http://{HOST}:{ports.mcp}/mcp"),
        ]
        if ports.workspace is not None:
            account = data_dir.find_workspace_account()
            options = [f"--account={account}"] if account else []
            services.append(
                _create_service("Workspace", "workspace", settings, ports.workspace, *options, optional=True)
            )
        if migrates:
            services.append(_create_service("Migrations", "migrations", settings, shows_output=True))
        if port := self.offline_port:
            services.append(
                _create_service("Offline model", "offline_model", settings, port, ready_path="/health", optional=True)
            )
        return services


def create_directory_settings(
    variables: Mapping[str, str], directory: Path, *, secret: Secrets = data_dir.secret
) -> dict[str, str]:
    """What lets conversations work in directories of the user who runs this, except root; with sign-in, nothing."""
    if os.geteuid() == 0 or variables.get("AUTH_MODE", "none") != "none":
        return {"OWNER_SECRET": "", "WORKSPACE_DATA_DIR": ""}
    return {"OWNER_SECRET": secret(directory, data_dir.OWNER_SECRET), "WORKSPACE_DATA_DIR": str(directory)}


def _choose_log_format(variables: Mapping[str, str]) -> str:
    """Chooses here, because the services write to files and cannot see whether somebody reads along."""
    chosen = variables.get("LOG_FORMAT", "auto")
    return ("text" if sys.stdout.isatty() else "json") if chosen == "auto" else chosen


def _create_service(
    name: str,
    module: str,
    settings: Mapping[str, str],
    port: int | None = None,
    *arguments: str,
    extra: Mapping[str, str] | None = None,
    **options: Any,
) -> Service:
    command = [sys.executable, "-m", module, *arguments]
    selected = child_environment.select_variables(module, settings)
    return Service(name, command, {**selected, **(extra or {})}, port, **options)
