import os
from collections.abc import Sequence

from backend.model.providers import ModelEndpoint, resolve
from backend.settings import BackendSettings
from backend.tools.approval_policy import Policy
from backend.tools.connectors import configuration
from backend.tools.connectors.configuration import Connector
from common.environment import read_or_stop, read_settings


def run() -> tuple[BackendSettings, ModelEndpoint, Sequence[Connector]]:
    """Reads and checks the whole configuration; ends the process with a sentence and status 78 if it cannot work.

    The servers are those that are enabled.
    """
    settings: BackendSettings = read_or_stop(read_settings, BackendSettings)
    read_or_stop(Policy, settings.approvals)
    servers = read_or_stop(configuration.read_servers, settings.mcp_servers_file, os.environ)
    return settings, read_or_stop(resolve, settings), configuration.list_enabled(servers)
