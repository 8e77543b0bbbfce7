import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import data_dir, terminal
from cli.arguments import Commands, add_command, port
from cli.data_dir import CHECKOUT
from cli.database import postgres
from cli.processes.children import Reaper
from cli.services import environment, running
from cli.services.parts import Service
from cli.services.ports import HOST, Ports, choose_ports, find_free_port
from common import child_environment

if TYPE_CHECKING:
    from cli.services.ollama import LocalOllama
    from cli.services.supervisor import Supervisor


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "up",
        run,
        "run everything on this machine until Ctrl-C",
        "Runs everything on this machine until Ctrl-C: PostgreSQL (unless DATABASE_URL is set), migrations, the "
        "offline model (if no other model is set), the MCP server, the workspace (unless AGENTS=off) and the "
        "backend. Settings are read from the environment and from .env in the checkout.",
    )
    parser.add_argument("--port", type=port, help="port of the page and /chatkit (BACKEND_PORT, else 8000)")
    parser.add_argument("--mcp-port", type=port, help="port of the MCP server (MCP_PORT, else 8001)")
    workspace = "port of the workspace (WORKSPACE_PORT, else 8003, or a free one if that is taken)"
    parser.add_argument("--workspace-port", type=port, help=workspace)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from cli.services import ollama

    variables = environment.load()
    wanted = Ports(
        arguments.port or environment.port(variables, "BACKEND_PORT", 8000),
        arguments.mcp_port or environment.port(variables, "MCP_PORT", 8001),
        arguments.workspace_port
        or (environment.port(variables, "WORKSPACE_PORT", 0) if "WORKSPACE_PORT" in variables else None),
    )
    for name in ("BACKEND_HOST", "MCP_HOST", "WORKSPACE_HOST"):
        if variables.get(name, HOST) not in environment.THIS_MACHINE:
            terminal.warn(f"{name} is ignored: ./todo up serves this machine only, at localhost.")
    directory = arguments.data_dir
    data_dir.prepare(directory)
    has_workspace = _has_workspace(variables, directory)
    variables, found = ollama.choose_model(variables)
    variables.setdefault("TIME_ZONE", environment.find_time_zone(variables) or "UTC")
    variables.setdefault("MCP_TOKEN_SECRET", data_dir.secret(directory, data_dir.TOKEN_SECRET))
    variables.setdefault("WORKSPACE_TOKEN_SECRET", data_dir.secret(directory, data_dir.WORKSPACE_SECRET))
    variables |= create_directory_settings(variables, directory)
    with running.claimed(directory) as owned, Reaper() as reaper:
        ports = choose_ports(wanted, has_workspace=has_workspace)
        asyncio.run(_supervise(variables, ports, found, reaper, directory, lock=owned.lock))
    terminal.say("Stopped.")
    return 0


async def _supervise(
    variables: dict[str, str],
    ports: Ports,
    found: "LocalOllama | None",
    reaper: Reaper,
    directory: Path,
    *,
    lock: int,
) -> None:
    from cli.services.supervisor import StopWanted, Supervisor

    status = running.StatusFile(directory, _list_addresses(variables, ports))
    supervisor = Supervisor(data_dir.logs(directory), reaper, status, lock=lock)
    with contextlib.ExitStack() as stack:
        try:
            migrates = True
            if "DATABASE_URL" not in variables:
                variables |= _start_postgres(directory, supervisor, stack)
                migrates = not postgres.is_migrated(directory)
            for service in _create_services(variables, ports, directory, migrates=migrates):
                supervisor.start(service)
            answers = await supervisor.wait_until_ready()
            if "Workspace" in answers:
                _warn_of_missing_commands(answers["Workspace"])
            with contextlib.suppress(terminal.OutputLost):  # the services continue although nobody reads it
                _print_addresses(ports, _describe_model(answers["Backend"], found), directory)
            await supervisor.watch()
        except StopWanted:
            terminal.say("\nStopping …")
        finally:
            await supervisor.stop()


def _start_postgres(directory: Path, supervisor: "Supervisor", stack: contextlib.ExitStack) -> dict[str, str]:
    terminal.starting("PostgreSQL")
    cluster = stack.enter_context(postgres.Cluster.start(directory))
    terminal.ready("PostgreSQL", f"data in {directory}")

    def start_again() -> subprocess.Popen[bytes]:
        cluster.restart()
        return cluster.process

    supervisor.adopt("PostgreSQL", cluster.process, cluster.log, start_again)
    addresses = {"DATABASE_URL": cluster.url, "MIGRATION_DATABASE_URL": cluster.owner_url}
    return addresses | postgres.create_dump_settings(directory)


def _has_workspace(variables: Mapping[str, str], directory: Path) -> bool:
    if variables.get("AGENTS") == "off":
        return False
    if os.geteuid() == 0 and not data_dir.is_traversable(directory):
        terminal.warn(
            f"The workspace is not started: it does not run as root, and nobody else can reach {directory}: choose "
            "another --data-dir, or set AGENTS=off."
        )
        return False
    return True


def create_directory_settings(variables: Mapping[str, str], directory: Path) -> dict[str, str]:
    """What lets conversations work in directories of the user who runs this, except root; with sign-in, nothing."""
    if os.geteuid() == 0 or variables.get("AUTH_MODE", "none") != "none":
        return {"OWNER_SECRET": "", "WORKSPACE_DATA_DIR": ""}
    return {"OWNER_SECRET": data_dir.secret(directory, data_dir.OWNER_SECRET), "WORKSPACE_DATA_DIR": str(directory)}


def _create_services(variables: dict[str, str], ports: Ports, directory: Path, *, migrates: bool) -> list[Service]:
    """In the order of starting and stopping: the backend is the slowest to start and needs the others to the last."""
    offline_port = find_free_port() if environment.needs_offline_model(variables) else None
    shared = _settings(variables, ports, directory, offline_port)
    servers, url = environment.list_server_variables(variables), f"http://{HOST}:{ports.page}"
    services = [
        _create_service("Backend", "backend", shared, ports.page, extra=servers, note=url),
        _create_service("MCP server", "mcp_server", shared, ports.mcp, note=f"http://{HOST}:{ports.mcp}/mcp"),
    ]
    if ports.workspace is not None:
        account = data_dir.find_workspace_account()
        options = [f"--account={account}"] if account else []
        services.append(_create_service("Workspace", "workspace", shared, ports.workspace, *options, optional=True))
    if migrates:
        services.append(_create_service("Migrations", "migrations", shared, shows_output=True))
    if offline_port is not None:
        offline = _create_service(
            "Offline model", "offline_model", shared, offline_port, ready_path="/health", optional=True
        )
        services.append(offline)
    return services


def _settings(variables: dict[str, str], ports: Ports, directory: Path, offline_port: int | None) -> dict[str, str]:
    log_format = variables.get("LOG_FORMAT", "auto")
    if log_format == "auto":  # the services write to files: whether somebody reads along is seen here
        log_format = "text" if sys.stdout.isatty() else "json"
    settings = variables | {
        "AUTH_MODE": variables.get("AUTH_MODE", "none"),
        "BACKEND_HOST": HOST,
        "BACKEND_PORT": str(ports.page),
        "MCP_HOST": HOST,
        "MCP_PORT": str(ports.mcp),
        "MCP_URL": environment.get_mcp_url(variables, ports.mcp),
        "MCP_INTERNAL_URL": f"http://{HOST}:{ports.mcp}/mcp",
        "OFFLINE_HOST": HOST,
        "PYTHONUNBUFFERED": "1",
        "LOG_FORMAT": log_format,
    }
    if ports.workspace is None:
        settings["AGENTS"] = "off"
    else:
        url = f"http://{HOST}:{ports.workspace}/mcp"
        settings |= {"WORKSPACE_URL": url, "WORKSPACE_HOST": HOST, "WORKSPACE_PORT": str(ports.workspace)}
        settings["WORKSPACE_DIR"] = str(data_dir.workspaces(directory))
    if offline_port is not None:
        settings |= {"LLM_PROVIDER": environment.OFFLINE, "LLM_BASE_URL": f"http://{HOST}:{offline_port}/v1"}
        settings["OFFLINE_PORT"] = str(offline_port)
    return settings


def _create_service(
    name: str,
    module: str,
    variables: dict[str, str],
    port: int | None = None,
    *arguments: str,
    extra: Mapping[str, str] | None = None,
    **options: Any,
) -> Service:
    command = [sys.executable, "-m", module, *arguments]
    selected = child_environment.select_variables(module, variables)
    return Service(name, command, {**selected, **(extra or {})}, port, **options)


def _list_addresses(variables: Mapping[str, str], ports: Ports) -> dict[str, str]:
    return {
        "page": _get_page_url(ports.page),
        "mcp_url": environment.get_mcp_url(variables, ports.mcp),
        "backend_url": variables.get("BACKEND_URL") or f"http://localhost:{ports.page}",
        "auth_mode": variables.get("AUTH_MODE", "none"),
    }


def _warn_of_missing_commands(readiness: str) -> None:
    if json.loads(readiness).get("confinement"):
        return
    if os.geteuid() == 0 and not data_dir.is_traversable(CHECKOUT):  # the workspace runs as an account of its own
        terminal.warn(
            f"Agents cannot run commands: their account may not enter {CHECKOUT}. Move the checkout to a folder that "
            "everybody may enter, such as /opt, and start again."
        )
    else:
        terminal.warn(
            "Agents cannot run commands: nothing on this machine can confine them. Install bubblewrap and start again; "
            "./todo logs says what was tried."
        )


def _print_addresses(ports: Ports, model: Iterable[str], directory: Path) -> None:
    terminal.say()
    terminal.heading("The to-do assistant is running. Ctrl-C stops all of it.")
    for number, line in enumerate(model):
        terminal.say(f"  {'' if number else 'model':<9} {line}")
    terminal.say(f"  logs      {data_dir.logs(directory)}, or ./todo logs")
    terminal.say(f"  ChatKit   http://{HOST}:{ports.page}/chatkit")
    terminal.say(f"  MCP       http://{HOST}:{ports.mcp}/mcp")
    terminal.say(f"  page      {_get_page_url(ports.page)}")


def _get_page_url(port: int) -> str:
    return f"http://localhost:{port}/"  # the name for which OpenAI's widget needs no key


def _describe_model(readiness: str, found: "LocalOllama | None") -> Iterator[str]:
    model = json.loads(readiness)["model"]
    if model["provider"] == environment.OFFLINE:
        yield "offline: fixed rules, no language model; set CEREBRAS_API_KEY to use one"
        if found:
            yield f"{found.note}; docs/models.md lists some"
        return
    text = f"{model['name']} on {model['provider']}"
    yield text if model["last"] == "ok" else f"{text}, but: {model['last']}"
    if found:
        yield f"found at {found.url}, on this machine; LLM_PROVIDER=offline turns it off"
    if model["provider"] == "ollama":
        yield "Ollama silently cuts text that does not fit its context: start it with OLLAMA_CONTEXT_LENGTH=16384"
