from common.environment import or_stop
from mcp_server.settings import Settings, read_settings


def run() -> Settings:
    """What the environment asks for; where that cannot work, the process ends with a sentence, as its start would."""
    return or_stop(read_settings)
