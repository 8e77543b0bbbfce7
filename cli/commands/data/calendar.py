from pathlib import Path

from cli.database import local_database
from cli.services import environment, running, service_command


def run(*, user: str, revoke: bool, port: int | None, directory: Path) -> int:
    """Prints a calendar's address at the `./todo up` that runs there, else at the one that would be started."""
    variables = environment.load()
    state = running.read(directory) or {}
    variables.setdefault("AUTH_MODE", state.get("auth_mode", "none"))
    variables["BACKEND_PORT"] = str(port or environment.port(variables, "BACKEND_PORT", 8000))
    if port is None and "backend_url" in state:
        variables["BACKEND_URL"] = state["backend_url"]
    arguments = ["calendar", f"--user={user}", *(["--revoke"] if revoke else [])]
    with local_database.reached(variables, directory) as reaching:
        return service_command.run("backend", *arguments, variables=reaching)
