import argparse
from contextlib import ExitStack

from cli.arguments import Commands, UsageError, add_command
from cli.services import environment, service_command


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "mcp",
        run,
        "show other MCP servers, and approve their tools for the agents",
        "Shows the MCP servers of mcp.json and the descriptions of their tools, approves tools, or tests whether a "
        "server answers. Agents can use an approved tool until its description changes.",
    )
    parser.add_argument("action", choices=("list", "approve", "test"))
    parser.add_argument("server", nargs="?", metavar="SERVER", help="the server to approve or test")
    parser.add_argument(
        "tools", nargs="*", default=[], metavar="TOOL", help="the tools to approve; default: all tools of the server"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints what `python -m backend mcp` finds; to test a server takes no database."""
    from cli.database import local_database

    action, server, tools = arguments.action, arguments.server, arguments.tools
    _check(action, server, tools)
    variables = environment.load()
    with ExitStack() as stack:
        if action != "test":
            variables = stack.enter_context(local_database.reached(variables, arguments.data_dir))
        return service_command.run("backend", "mcp", action, *([server] if server else []), *tools, variables=variables)


def _check(action: str, server: str | None, tools: list[str]) -> None:
    if action == "list" and server:
        raise UsageError("mcp list takes no further arguments")
    if action != "list" and server is None:
        raise UsageError(f"mcp {action} needs the name of a server; ./todo mcp list shows the names")
    if action == "test" and tools:
        raise UsageError("mcp test takes one server and no further arguments")
