import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class SingleFlight(Generic[P, T]):
    """Calls `work` unless it is running; callers at the same time share its result or error."""

    def __init__(self, work: Callable[P, Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._running: asyncio.Task[T] | None = None

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._running is None:
            self._running = asyncio.create_task(self._work(*args, **kwargs))
            self._running.add_done_callback(self._forget)
        return await asyncio.shield(self._running)

    def _forget(self, _: object) -> None:
        self._running = None
