import argparse

from cli import data_dir
from cli.arguments import Commands, add_command, port, user
from cli.services import environment, running, service_command
from common.commands import parse_days


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "token",
        run,
        "make a token for the MCP server",
        "Prints a token with which an MCP client on this machine can work on a user's tasks.",
    )
    parser.add_argument("--user", type=user, required=True, metavar="NAME", help="whose tasks")
    parser.add_argument("--days", type=parse_days, default=1, help="how long it is valid (%(default)s)")
    default = "port of the MCP server (that of the running ./todo up, else MCP_PORT, else 8001)"
    parser.add_argument("--mcp-port", type=port, help=default)


def run(arguments: argparse.Namespace) -> int:
    """Prints a token for the MCP server of the `./todo up` that runs there, else of the one that would be started."""
    directory, mcp_port = arguments.data_dir, arguments.mcp_port
    variables = environment.load()
    state = running.read_state(directory) or {}
    if mcp_port is None and "mcp_url" in state:
        variables["MCP_URL"] = state["mcp_url"]
    else:
        mcp_port = mcp_port or environment.port(variables, "MCP_PORT", 8001)
        variables["MCP_URL"] = environment.mcp_url(variables, mcp_port)
    if secret := data_dir.known_token_secret(directory):
        variables.setdefault("MCP_TOKEN_SECRET", secret)
    options = [f"--user={arguments.user}", f"--days={arguments.days}"]
    return service_command.run("backend", "token", *options, variables=variables)
