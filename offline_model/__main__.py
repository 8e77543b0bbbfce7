import sys

from common.environment import read_or_stop, read_settings
from common.server.limits import ClientLimits
from offline_model.settings import OfflineSettings


def main() -> None:
    settings = read_or_stop(read_settings, OfflineSettings)
    limits = read_or_stop(read_settings, ClientLimits)
    if sys.argv[1:] != ["check"]:
        from offline_model.process import serve_model

        serve_model(settings, limits)


if __name__ == "__main__":
    main()
