"""Tables of the columns of a format, with a row for each field of a task."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from mcp_server.imports.file_tasks import FileTask
from mcp_server.tasks.zones import Now

RowT = TypeVar("RowT")

LOST = object()
"""A `Field` returns it for a value that no field of a task can hold."""


@dataclass(frozen=True)
class Field(Generic[RowT]):
    """Where a field of a task is in a file."""

    name: str | None
    """An argument of `add_task`, or a moment or `completed` of `FileTask`. None: `read` only says what is lost."""
    columns: tuple[str, ...]
    """Those that `read` uses; if the value is lost, the first one is named."""
    read: Callable[[RowT, Now], object]
    """May raise `UnreadPart`."""


@dataclass(frozen=True)
class FieldTable(Generic[RowT]):
    fields: tuple[Field[RowT], ...]
    ignored: frozenset[str] = frozenset()
    """Columns that say nothing about a task, such as its place in the file. All others that no field uses are lost."""

    @cached_property
    def _known(self) -> frozenset[str]:
        return self.ignored.union(*(field.columns for field in self.fields))

    def create_task(
        self,
        location: str,
        identity: tuple[object, ...],
        row: RowT,
        now: Now,
        *,
        present: Iterable[str],
    ) -> FileTask:
        """Reads a row whose columns `present` have a value."""
        values: dict[str, Any] = {}
        lost: list[str] = []
        for field in self.fields:
            value = field.read(row, now)
            if value is LOST:
                lost.append(field.columns[0])
            elif field.name is not None:
                values[field.name] = value
        lost += [column for column in present if column not in self._known]
        moments = {name: values.pop(name) for name in _OF_FILE_TASK if name in values}
        return FileTask(location, identity, values, tuple(dict.fromkeys(lost)), **moments)


_OF_FILE_TASK = ("completed", "created_at", "updated_at", "completed_at")
