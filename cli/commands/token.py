from pathlib import Path

from cli import data_dir
from cli.services import environment, service_command


def run(*, user: str, days: int, mcp_port: int | None, directory: Path) -> int:
    """Prints what `python -m backend token` makes, for the MCP server that `./todo up` starts there, on that port."""
    variables = environment.load()
    port = mcp_port or environment.port(variables, "MCP_PORT", 8001)
    variables["MCP_URL"] = environment.mcp_url(variables, port)
    if secret := data_dir.known_token_secret(directory):
        variables.setdefault("MCP_TOKEN_SECRET", secret)
    return service_command.run("backend", "token", f"--user={user}", f"--days={days}", variables=variables)
