from common.environment import read_or_stop, read_settings
from mcp_server.settings import McpSettings


def run() -> McpSettings:
    return read_or_stop(read_settings, McpSettings)
