"""What runs on this machine: `up`, and who looks after it."""

from cli.arguments import values
from cli.arguments.command import Commands, add, add_data_dir
from common.commands import parse_days


def add_all(commands: Commands) -> None:
    _add_up(commands)
    status = add(
        commands,
        "status",
        "show what is running",
        "Shows what is running, where, since when, and whether it is ready. Exit status 1: nothing is running.",
    )
    logs = add(
        commands,
        "logs",
        "show the logs",
        "Shows the last lines of the logs of the running, or the last, ./todo up.",
    )
    named = f"one of {', '.join(values.LOGS)}; default: all of them"
    logs.add_argument("service", nargs="?", type=values.service, help=named)
    logs.add_argument("--follow", action="store_true", help="keep showing new lines, until Ctrl-C")
    down = add(
        commands,
        "down",
        "stop ./todo up",
        "Stops the ./todo up of the data directory and waits until it has stopped. Exit status 1: nothing is running.",
    )
    migrate = add(
        commands,
        "migrate",
        "update the database schema",
        "Updates the schema of the database at MIGRATION_DATABASE_URL, else DATABASE_URL, else of the one in the data "
        "directory.",
    )
    add_data_dir(status, logs, down, migrate)
    _add_token(commands)


def _add_up(commands: Commands) -> None:
    up = add(
        commands,
        "up",
        "run everything on this machine until Ctrl-C",
        "Runs everything on this machine until Ctrl-C: PostgreSQL (unless DATABASE_URL is set), migrations, the "
        "offline model (if no other model is set), the MCP server, the workspace (unless AGENTS=off) and the "
        "backend. Settings are read from the environment and from .env in the checkout.",
    )
    up.add_argument("--port", type=values.port, help="port of the page and /chatkit (BACKEND_PORT, else 8000)")
    up.add_argument("--mcp-port", type=values.port, help="port of the MCP server (MCP_PORT, else 8001)")
    up.add_argument(
        "--workspace-port",
        type=values.port,
        help="port of the workspace (WORKSPACE_PORT, else 8003, or a free one if that is taken)",
    )
    add_data_dir(up)
    up.add_argument("--verbose", action="store_true", help="show the logs of all services")


def _add_token(commands: Commands) -> None:
    token = add(
        commands,
        "token",
        "make a token for the MCP server",
        "Prints a token with which an MCP client on this machine can work on a user's tasks.",
    )
    token.add_argument("--user", type=values.name, required=True, metavar="NAME", help="whose tasks")
    token.add_argument("--days", type=parse_days, default=1, help="how long it is valid (%(default)s)")
    running = "port of the MCP server (that of the running ./todo up, else MCP_PORT, else 8001)"
    token.add_argument("--mcp-port", type=values.port, help=running)
    add_data_dir(token)
