"""What the tools do at a moment of the test's own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy.ext.asyncio import AsyncEngine

from mcp_server.tasks import batches, edits
from mcp_server.tasks import undo as taking_back
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.fields import Wanted
from mcp_server.tasks.lists import pages
from mcp_server.tasks.lists.wishes import Wish
from mcp_server.tasks.task import ChangedTask, DeletedTask, TaskPage
from service.database import create_engine, stepwise

SUNDAY = "2026-11-22T10:54:00+01:00"


class Clocked:
    """The work of the five tools for one person, on a clock that stands still until it is set."""

    def __init__(self, engine: AsyncEngine, now: str, zone: str) -> None:
        self._engine = engine
        self.now, self.zone = now, zone
        self.batch: str | None = None
        self.key: str | None = None

    @property
    def _caller(self) -> Caller:
        return Caller(
            "alice",
            idempotency_key=self.key,
            batch=self.batch,
            zone=ZoneInfo(self.zone),
            clock=lambda: datetime.fromisoformat(self.now),
        )

    async def add(self, title: str, *, also: Sequence[str] = (), **wanted: Any) -> ChangedTask:
        async with stepwise(self._engine, "alice") as session:
            return await edits.add(session, self._caller, title=title, wanted=Wanted(**wanted), also=also)

    async def complete(self, *ids: int) -> ChangedTask:
        async with stepwise(self._engine, "alice") as session:
            return await edits.complete(session, self._caller, ids)

    async def update(self, *ids: int, **wanted: Any) -> ChangedTask:
        async with stepwise(self._engine, "alice") as session:
            return await edits.update(session, self._caller, ids, Wanted(**wanted))

    async def delete(self, *ids: int) -> DeletedTask:
        async with stepwise(self._engine, "alice") as session:
            return await edits.delete(session, self._caller, ids)

    async def undo(self, *ids: int) -> ChangedTask:
        async with stepwise(self._engine, "alice") as session:
            return await taking_back.undo(session, self._caller, ids)

    async def undo_batch(self, batch: str) -> ChangedTask:
        async with stepwise(self._engine, "alice") as session:
            return await batches.undo(session, self._caller, batch)

    async def page(self, *, cursor: str | None = None, limit: int = 50, **wish: Any) -> TaskPage:
        async with stepwise(self._engine, "alice") as session:
            return await pages.list_page(session, self._caller, Wish(**wish), cursor=cursor, limit=limit)

    async def titles(self, **wish: Any) -> list[str]:
        return [task.title for task in (await self.page(**wish)).tasks]


@asynccontextmanager
async def clocked(database_url: str, now: str, *, zone: str = "UTC") -> AsyncIterator[Clocked]:
    engine = create_engine(database_url)
    try:
        yield Clocked(engine, now, zone)
    finally:
        await engine.dispose()
