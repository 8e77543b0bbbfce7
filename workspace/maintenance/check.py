from common.environment import read_or_stop
from workspace.settings import Settings, read_settings


def run() -> Settings:
    """What the environment asks for; where that cannot work, the process ends with a sentence, as its start would."""
    return read_or_stop(read_settings)
