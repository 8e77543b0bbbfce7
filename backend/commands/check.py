import os
from collections.abc import Callable, Iterator, Sequence

from backend.model.providers import ModelEndpoint, resolve
from backend.settings import ApprovalSettings, BackendSettings, ModelSettings, ServersSettings
from backend.tools.approval_policy import Policy
from backend.tools.connectors import configuration
from backend.tools.connectors.configuration import Connector
from common.environment import SettingsInvalid, read_settings, stop_misconfigured


def run() -> tuple[BackendSettings, ModelEndpoint, Sequence[Connector]]:
    """Reads and checks the whole configuration; ends the process with what is wrong and status 78 if it cannot work.

    The servers are those that are enabled.
    """
    if problems := [*dict.fromkeys(_list_problems())]:
        stop_misconfigured("\n".join(problems))
    settings = read_settings(BackendSettings)
    servers = configuration.read_servers(settings.mcp_servers_file, os.environ)
    return settings, resolve(settings), configuration.list_enabled(servers)


def _list_problems() -> Iterator[str]:
    """Yields a sentence for each mistake; each part is read by itself, so that a mistake elsewhere hides none in it."""
    parts: tuple[Callable[[], object], ...] = (
        lambda: read_settings(BackendSettings),
        lambda: Policy(read_settings(ApprovalSettings).approvals),
        lambda: configuration.read_servers(read_settings(ServersSettings).mcp_servers_file, os.environ),
        lambda: resolve(read_settings(ModelSettings)),
    )
    for check in parts:
        try:
            check()
        except SettingsInvalid as error:
            yield from str(error).splitlines()
