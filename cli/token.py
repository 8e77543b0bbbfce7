import subprocess
import sys

from cli import environment
from cli.data_dir import CHECKOUT


def run(*, user: str, days: int, mcp_port: int) -> int:
    """The exit code of `python -m backend token`, for the MCP server as `up` starts it unless MCP_URL is set."""
    variables = environment.load()
    variables.setdefault("MCP_URL", f"http://127.0.0.1:{mcp_port}/mcp")
    command = [sys.executable, "-m", "backend", "token", "--user", user, "--days", str(days)]
    return subprocess.call(command, cwd=CHECKOUT, env=variables)
