"""What a tool of another MCP server is called: `mcp_web__fetch` by models, `mcp.web.fetch` to people and in the log."""

import hashlib
import re

_NAMED = re.compile(r"mcp_([a-z0-9-]{1,20})__(.+)")
_MAX_CHARS = 64  # of a function's name, at model providers


def get_model_name(server: str, tool: str) -> str:
    """Returns the name by which models call a tool; no two have one: it ends with a hash if it is irregular."""
    name = f"mcp_{server}__{tool}"
    if len(name) <= _MAX_CHARS and re.fullmatch(r"[A-Za-z0-9_-]+", tool):
        return name
    written = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return f"{written[: _MAX_CHARS - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def get_display_name(name: str) -> str:
    """Returns the name that people read, `mcp.SERVER.TOOL`; the name itself for a tool of ours."""
    found = _NAMED.fullmatch(name)
    return f"mcp.{found[1]}.{found[2]}" if found else name


def server_of(name: str) -> str | None:
    found = _NAMED.fullmatch(name)
    return found[1] if found else None
