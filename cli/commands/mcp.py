from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from cli.database import local_database
from cli.services import environment, service_command


def run(action: str, *, server: str | None, tools: Sequence[str], directory: Path) -> int:
    """Prints what `python -m backend mcp` finds; to look at one server takes no database."""
    variables = environment.load()
    with ExitStack() as stack:
        if action != "test":
            variables = stack.enter_context(local_database.reached(variables, directory))
        return service_command.run("backend", "mcp", action, *([server] if server else []), *tools, variables=variables)
