"""What the commands on a user's files share: they work whether a workspace runs or not."""

import os
import sys
from collections.abc import Sequence

from common import commands
from common.environment import SettingsInvalid, read_settings
from workspace import account
from workspace.files.folder import Store
from workspace.files.quota import Quota
from workspace.settings import StoreSettings

_ANY = 2**63


def open_store(arguments: Sequence[str], *, name: str, description: str) -> tuple[Store, str]:
    """Returns the store and the user of the command; root becomes the store's owner."""
    user = commands.parse_user(arguments, name=name, description=description)
    try:
        root = read_settings(StoreSettings).workspace_dir
    except SettingsInvalid as error:
        sys.exit(str(error))
    if not root.is_dir():
        commands.exit_nothing_stored(user)
    if os.geteuid() == 0 and (owner := root.stat().st_uid):
        account.become(owner)
    return Store(root, Quota(bytes=_ANY, files=_ANY)), user
