import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime

import pytest

from common.database import Database
from tests.alerts.rows import AlertRows

_numbers = itertools.count(1)


class MovableClock:
    """A clock that tests set."""

    def __init__(self, now: str) -> None:
        self.now = datetime.fromisoformat(now)

    def __call__(self) -> datetime:
        return self.now


def new_name() -> str:
    return f"alerts-user-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def rows(database_url: str) -> Iterator[AlertRows]:
    with AlertRows(database_url) as rows:
        yield rows


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database


NewName = Callable[[], str]
