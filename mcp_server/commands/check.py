from common.environment import read_or_stop
from mcp_server.settings import McpSettings, read_settings


def run() -> McpSettings:
    return read_or_stop(read_settings)
