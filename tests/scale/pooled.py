"""All of the tests behind PgBouncer: `pytest --pooled`."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from common.database import Database
from tests import logins
from tests.scale.pooler import pooled


@contextmanager
def pooled_for_all(database_url: str) -> Iterator[str]:
    """The address by way of a pooler; what is made meanwhile without other settings has those that are needed there."""
    defaults = Database.__init__.__kwdefaults__
    assert defaults is not None
    with pooled(database_url) as pooled_url, pytest.MonkeyPatch.context() as patch:
        patch.setitem(logins.PAST, logins.place_of(pooled_url), database_url)
        patch.setitem(defaults, "prepared", False)
        patch.setenv("LISTEN_DATABASE_URL", database_url)
        patch.setenv("DATABASE_PREPARED", "off")
        yield pooled_url
