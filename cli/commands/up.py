import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from cli import data_dir, terminal
from cli.arguments import Commands, add_command, port
from cli.data_dir import CHECKOUT
from cli.database import postgres
from cli.processes.children import Reaper
from cli.services import environment, running, running_settings
from cli.services.ports import HOST, WORKSPACE_PORT, Ports, choose_ports
from cli.services.settings_check import SettingsCheck

if TYPE_CHECKING:
    from cli.services.composition import Composition
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

    from cli.services.composition import Composition

    directory, loaded = arguments.data_dir, environment.load()
    for name in ("BACKEND_HOST", "MCP_HOST", "WORKSPACE_HOST"):
        if loaded.get(name, HOST) not in environment.THIS_MACHINE:
            terminal.warn(f"{name} is ignored: ./todo up serves this machine only, at localhost.")
    plan = Composition.choose(directory, loaded)
    wanted, problems = _read_ports(arguments, loaded)
    with _start_check(plan, wanted, problems) as check:
        if not plan.needs_postgres or not postgres.exists(directory):
            check.finish()  # before anything is created; where there is a database, while PostgreSQL starts
        cluster = postgres.Cluster(directory, durable=True) if plan.needs_postgres else None
        data_dir.prepare(directory)
        plan.warn_of_missing_workspace()
        with running.claimed(directory) as owned, Reaper() as reaper:
            ports = choose_ports(wanted, has_workspace=plan.has_workspace)
            asyncio.run(_supervise(plan, ports, cluster, check, reaper, lock=owned.lock))
    terminal.say("Stopped.")
    return 0


def _read_ports(arguments: argparse.Namespace, variables: Mapping[str, str]) -> tuple[Ports, list[str]]:
    """Returns also a sentence for each setting that is no port."""
    problems: list[str] = []

    def read(option: int | None, name: str, default: int) -> int:
        port = option or environment.find_port(variables, name, default)
        if port is None:
            problems.append(environment.NO_PORT.format(name))
        return port or default

    page = read(arguments.port, "BACKEND_PORT", 8000)
    mcp = read(arguments.mcp_port, "MCP_PORT", 8001)
    is_chosen = arguments.workspace_port or "WORKSPACE_PORT" in variables
    workspace = read(arguments.workspace_port, "WORKSPACE_PORT", WORKSPACE_PORT) if is_chosen else None
    return Ports(page, mcp, workspace), problems


def _start_check(plan: "Composition", wanted: Ports, problems: list[str]) -> SettingsCheck:
    """Secrets that `up` makes by itself are not made yet: others stand in for them."""
    ports = wanted._replace(workspace=(wanted.workspace or WORKSPACE_PORT) if plan.has_workspace else None)
    settings = plan.create_settings(ports, secret=lambda _, name: name.ljust(64, "-"))
    return SettingsCheck(plan.modules, settings, problems)


async def _supervise(
    plan: "Composition",
    ports: Ports,
    cluster: postgres.Cluster | None,
    check: SettingsCheck,
    reaper: Reaper,
    *,
    lock: int,
) -> None:
    from cli.services.supervisor import StopWanted, Supervisor

    settings = plan.create_settings(ports)
    async with running_settings.publish(plan.directory, plan.loaded, settings) as socket:
        status = running.StatusFile(plan.directory, {"page": _get_page_url(ports.page), "settings": socket})
        status.update([])
        supervisor = Supervisor(data_dir.logs(plan.directory), reaper, status, lock=lock)
        with contextlib.ExitStack() as stack:
            try:
                if cluster:
                    _start_postgres(cluster, supervisor, stack)
                check.finish()
                await _run_services(plan, ports, settings, supervisor)
            except StopWanted:
                terminal.say("\nStopping …")
            finally:
                await supervisor.stop()


def _start_postgres(cluster: postgres.Cluster, supervisor: "Supervisor", stack: contextlib.ExitStack) -> None:
    terminal.starting("PostgreSQL")
    stack.enter_context(cluster.run())
    terminal.ready("PostgreSQL", f"data in {cluster.data_dir}")

    def start_again() -> subprocess.Popen[bytes]:
        cluster.restart()
        return cluster.process

    supervisor.adopt("PostgreSQL", cluster.process, cluster.log, start_again)


async def _run_services(
    plan: "Composition", ports: Ports, settings: Mapping[str, str], supervisor: "Supervisor"
) -> NoReturn:
    import asyncio

    if plan.has_workspace:
        data_dir.workspaces(plan.directory)
    migrates = not (plan.needs_postgres and postgres.is_migrated(plan.directory))
    for service in plan.create_services(settings, ports, migrates=migrates):
        supervisor.start(service)
    answers = await supervisor.wait_until_ready()
    if "Workspace" in answers:
        _warn_of_missing_commands(answers["Workspace"])
    setup = await asyncio.to_thread(_make_setup_address, settings)
    with contextlib.suppress(terminal.OutputLost):  # the services continue although nobody reads it
        _print_addresses(ports, _describe_model(answers["Backend"], plan.ollama), plan.directory, setup)
    await supervisor.watch()


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


def _make_setup_address(settings: Mapping[str, str]) -> str:
    """Returns where the first account can be made, for an hour; nothing where there are accounts, or no sign-in.

    It is made here and not by the backend, which has logs, and may have several processes.
    """
    if settings["AUTH_MODE"] != "password":
        return ""
    command = [sys.executable, "-m", "backend", "user", "setup", "--if-first"]
    done = subprocess.run(command, cwd=CHECKOUT, env=settings, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _print_addresses(ports: Ports, model: Iterable[str], directory: Path, setup: str) -> None:
    terminal.say()
    terminal.heading("The to-do assistant is running. Ctrl-C stops all of it.")
    for number, line in enumerate(model):
        terminal.say(f"  {'' if number else 'model':<9} {line}")
    terminal.say(f"  logs      {data_dir.logs(directory)}, or ./todo logs")
    terminal.say(f"  ChatKit   http://{HOST}:{ports.page}/chatkit")
    terminal.say(f"  MCP       http://{HOST}:{ports.mcp}/mcp")
    if setup:
        terminal.say(f"  account   first open {setup} within an hour, and make an account")
        terminal.say("  tasks     those from before sign-in: ./todo user adopt local NAME, before you add others")
    terminal.say(f"  page      {_get_page_url(ports.page)}")
    terminal.say("  try       open the page and write: call the bank tomorrow at 9 and buy milk")


def _get_page_url(port: int) -> str:
    return f"http://localhost:{port}/"  # the name for which OpenAI's widget needs no key


def _describe_model(readiness: str, found: "LocalOllama | None") -> Iterator[str]:
    model = json.loads(readiness)["model"]
    if model["provider"] == environment.OFFLINE:
        yield "offline: fixed rules, no AI; set CEREBRAS_API_KEY to use a model"
        if found:
            yield f"{found.note}; docs/models.md lists some"
        return
    text = f"{model['name']} on {model['provider']}"
    yield text if model["last"] == "ok" else f"{text}, but: {model['last']}"
    if found:
        yield f"found at {found.url}, on this machine; LLM_PROVIDER=offline turns it off"
    yield from model["notes"]
    if model["provider"] == "ollama":
        yield "Ollama silently cuts text that does not fit its context: start it with OLLAMA_CONTEXT_LENGTH=16384"
