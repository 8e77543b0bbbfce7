"""How many requests of one user a tool server works on at the same time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastmcp.server.dependencies import get_access_token

from common.fair_shares import FairQueue, QueueTimeout, ShareExceeded
from common.tokens import is_from_backend
from common.tool_server.errors import TooManyAtOnce

_MAX_WAITING = 60
_WAIT_SECONDS = 5.0


class SimultaneousCalls:
    """Works on at most `most` requests of each user at the same time, in this process; None: any number.

    More requests wait for a while. Those of the backend are counted apart from those of a user's own MCP clients, which
    so cannot make the user's answers fail.
    """

    def __init__(self, most: int | None) -> None:
        self._of_clients = self._create_queue(most)
        self._of_backend = self._create_queue(most)

    @staticmethod
    def _create_queue(most: int | None) -> FairQueue:
        return FairQueue(None, most, most_waiting=_MAX_WAITING, timeout_seconds=_WAIT_SECONDS)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Waits until the request of the current user may be worked on. Raises `TooManyAtOnce`."""
        token = get_access_token()
        queue = self._of_backend if token and is_from_backend(token.claims) else self._of_clients
        try:
            release = await queue.take((token and token.subject) or "")
        except (ShareExceeded, QueueTimeout):
            raise TooManyAtOnce from None
        try:
            yield
        finally:
            release()
