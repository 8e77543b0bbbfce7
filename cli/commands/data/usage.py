from pathlib import Path

from cli.database import local_database
from cli.services import environment, service_command


def run(*, days: int, user: str | None, as_json: bool, directory: Path) -> int:
    """Prints what `python -m backend usage` finds."""
    arguments = ["usage", f"--days={days}"]
    if user is not None:
        arguments.append(f"--user={user}")
    if as_json:
        arguments.append("--json")
    with local_database.reached(environment.load(), directory) as variables:
        return service_command.run("backend", *arguments, variables=variables)
