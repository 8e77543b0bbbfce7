from pathlib import Path

from cli import data_dir
from cli.services import environment, running, service_command


def run(*, user: str, days: int, mcp_port: int | None, directory: Path) -> int:
    """Prints a token for the MCP server of the `./todo up` that runs there, else of the one that would be started."""
    variables = environment.load()
    state = running.read(directory) or {}
    if mcp_port is None and "mcp_url" in state:
        variables["MCP_URL"] = state["mcp_url"]
    else:
        port = mcp_port or environment.port(variables, "MCP_PORT", 8001)
        variables["MCP_URL"] = environment.mcp_url(variables, port)
    if secret := data_dir.known_token_secret(directory):
        variables.setdefault("MCP_TOKEN_SECRET", secret)
    return service_command.run("backend", "token", f"--user={user}", f"--days={days}", variables=variables)
