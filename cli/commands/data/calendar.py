from pathlib import Path

from cli.database import local_database
from cli.services import environment, service_command


def run(*, user: str, revoke: bool, port: int | None, directory: Path) -> int:
    """Prints the address that `python -m backend calendar` makes, of the page that `./todo up` serves on that port."""
    variables = environment.load()
    variables["BACKEND_PORT"] = str(port or environment.port(variables, "BACKEND_PORT", 8000))
    arguments = ["calendar", f"--user={user}", *(["--revoke"] if revoke else [])]
    with local_database.reached(variables, directory) as reaching:
        return service_command.run("backend", *arguments, variables=reaching)
