from common.environment import read_or_stop
from workspace.settings import Settings, read_settings


def run() -> Settings:
    return read_or_stop(read_settings)
