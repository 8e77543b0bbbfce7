from common.environment import read_or_stop
from mcp_server.settings import McpSettings, read_settings


def run() -> McpSettings:
    """`python -m mcp_server check`: reads the settings, or exits as the service would."""
    return read_or_stop(read_settings)
