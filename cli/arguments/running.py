"""What runs on this machine: `up`, and who looks after it."""

from cli.arguments import values
from cli.arguments.command import Commands, add, add_data_dir
from service.commands import days


def add_all(commands: Commands) -> None:
    _add_up(commands)
    status = add(
        commands,
        "status",
        "show what runs",
        "Shows what ./todo up runs, where, since when and whether it is ready. Status 1 when nothing runs.",
    )
    logs = add(
        commands,
        "logs",
        "show the logs of what runs, or ran",
        "Shows the end of the logs of what ./todo up runs, or ran the last time.",
    )
    named = f"one of {', '.join(values.LOGS)}; without it all of them"
    logs.add_argument("service", nargs="?", type=values.service, help=named)
    logs.add_argument("--follow", action="store_true", help="show what is added, until Ctrl-C")
    down = add(
        commands,
        "down",
        "stop what ./todo up runs",
        "Stops the ./todo up of the data directory, and waits for its end. Status 1 when nothing runs.",
    )
    migrate = add(
        commands,
        "migrate",
        "bring the database to the newest schema",
        "Brings the database at MIGRATION_DATABASE_URL, else DATABASE_URL, else the one in the data directory, to the "
        "newest schema.",
    )
    add_data_dir(status, logs, down, migrate)
    _add_token(commands)


def _add_up(commands: Commands) -> None:
    up = add(
        commands,
        "up",
        "run everything on this machine until Ctrl-C",
        "Runs everything on this machine until Ctrl-C: PostgreSQL (unless DATABASE_URL is set), migrations, the "
        "offline model (when there is no key of another), the MCP server, the workspace (unless AGENTS=off) and the "
        "backend. Settings are read from the environment and from .env in the checkout.",
    )
    up.add_argument("--port", type=values.port, help="of the page and /chatkit (BACKEND_PORT, else 8000)")
    up.add_argument("--mcp-port", type=values.port, help="of the MCP server (MCP_PORT, else 8001)")
    up.add_argument("--workspace-port", type=values.port, help="of the workspace (WORKSPACE_PORT, else 8003)")
    add_data_dir(up)
    up.add_argument("--verbose", action="store_true", help="show the logs of all parts")


def _add_token(commands: Commands) -> None:
    token = add(
        commands,
        "token",
        "make a token for the MCP server",
        "Prints a token with which an MCP client on this machine works on one person's tasks.",
    )
    token.add_argument("--user", type=values.name, required=True, metavar="NAME", help="whose tasks")
    token.add_argument("--days", type=days, default=1, help="how long it is valid (%(default)s)")
    token.add_argument("--mcp-port", type=values.port, help="of the MCP server (MCP_PORT, else 8001)")
    add_data_dir(token)
