import argparse
from contextlib import ExitStack

from cli.arguments import Commands, add_command, add_data_dir
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
    parser.set_defaults(server=None, tools=[])
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, does in (
        ("list", "show the servers and their tools"),
        ("approve", "approve tools of a server"),
        ("test", "test whether a server answers"),
    ):
        action = actions.add_parser(name, help=does, description=f"{does.capitalize()}.", allow_abbrev=False)
        add_data_dir(action)
        if name != "list":
            action.add_argument(
                "server", metavar="SERVER", help="its name in mcp.json; ./todo mcp list shows the names"
            )
        if name == "approve":
            action.add_argument("tools", nargs="*", metavar="TOOL", help="default: all tools of the server")


def run(arguments: argparse.Namespace) -> int:
    """Prints what `python -m backend mcp` finds; to test a server takes no database."""
    from cli.database import local_database

    action, names = arguments.action, [*filter(None, [arguments.server]), *arguments.tools]
    variables = environment.load()
    with ExitStack() as stack:
        if action != "test":
            variables = stack.enter_context(local_database.reached(variables, arguments.data_dir))
        return service_command.run("backend", "mcp", action, *names, variables=variables)
