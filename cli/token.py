import subprocess
import sys

from cli import environment
from cli.data_dir import CHECKOUT


def run(*, user: str, days: int, mcp_port: int | None) -> int:
    """The exit code of `python -m backend token`, for the MCP server on that port, else as the settings have it."""
    variables = environment.load()
    if mcp_port or "MCP_URL" not in variables:
        port = mcp_port or environment.port(variables, "MCP_PORT", 8001)
        variables["MCP_URL"] = f"http://127.0.0.1:{port}/mcp"
    command = [sys.executable, "-m", "backend", "token", f"--user={user}", f"--days={days}"]
    return subprocess.call(command, cwd=CHECKOUT, env=variables)
