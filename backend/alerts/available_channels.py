"""The channels that the operator has set up, opened at first use: the database may be away at the start."""

from collections.abc import Mapping
from dataclasses import dataclass

from backend.alerts.channels.channel import Channel
from backend.alerts.channels.table import create_channels
from backend.alerts.channels.vapid import load_vapid_key
from backend.settings import ChannelSettings
from common.database import Database


@dataclass(frozen=True, slots=True)
class OpenChannels:
    by_kind: Mapping[str, Channel]
    push_key: str
    """The public key that a browser needs to subscribe."""


class AvailableChannels:
    def __init__(self, database: Database, settings: ChannelSettings, opened: OpenChannels | None = None) -> None:
        self._database, self._settings, self._opened = database, settings, opened

    async def open(self) -> OpenChannels:
        """Raises `DatabaseUnavailable` while the key of push notifications cannot be read."""
        if self._opened is None:
            key = await load_vapid_key(self._database)
            self._opened = self._opened or OpenChannels(create_channels(self._settings, key), key.public)
        return self._opened
