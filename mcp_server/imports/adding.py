"""The tasks of a file in a user's list, each once however often the file is read."""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError

from common.clock import to_utc
from common.database import Database, Transaction, advisory_locks
from common.tool_server.errors import ArgumentsInvalid, CallError
from mcp_server import arguments as given
from mcp_server.imports.file_tasks import FileTask, Read, Unread
from mcp_server.tasks import quota, statements, zones
from mcp_server.tasks.changes import Caller
from mcp_server.tasks.fields import TaskPatch, with_fields
from mcp_server.tasks.task import Task
from mcp_server.tasks.zones import Now

ACTOR = "import"
_AT_ONCE = 500  # tasks of a transaction
_MOST_LISTED = 1_000  # of what cannot be read

_LOCK = f"SELECT {advisory_locks.IMPORT}"
_KEYS = """
SELECT idempotency_key FROM task_calls
WHERE user_id = %(user)s AND idempotency_key IS NOT NULL AND idempotency_key = ANY(%(keys)s::text[])"""
_ORIGINALS = "SELECT id, created_at, title FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])"


@dataclass
class Report:
    """What became of the tasks of a file."""

    added: int = 0
    there: int = 0
    """How many had been added before."""
    left: int = 0
    """How many are one more than the user may keep."""
    unread: list[Unread] = field(default_factory=list[Unread])
    unlisted: int = 0
    """How many more could not be read."""

    def note(self, unread: Unread) -> None:
        if len(self.unread) < _MOST_LISTED:
            self.unread.append(unread)
        else:
            self.unlisted += 1


@dataclass(frozen=True)
class _New:
    key: str
    task: Task
    file_task: FileTask


async def add_all(
    database: Database, caller: Caller, read: Callable[[Now], Read], *, progress: Callable[[Report], None]
) -> Report:
    """Add what `read` finds; an import that ends on the way is completed by the same one again."""
    async with database.transaction(caller.user_id) as tx:
        now = await zones.now(tx, caller)
    report = Report()
    tasks = _checked(read(now), now, report)
    while portion := [*islice(tasks, _AT_ONCE)]:
        async with database.transaction(caller.user_id) as tx:
            there, added = await _add(tx, caller, portion)
        report.there += there
        report.added += added
        report.left += len(portion) - there - added
        progress(report)
    return report


def _checked(read: Read, now: Now, report: Report) -> Iterator[_New]:
    seen = Counter[bytes]()
    for found in read:
        if isinstance(found, Unread):
            report.note(found)
            continue
        try:
            task = _create_task(found, now)
        except CallError as error:
            report.note(Unread(found.place, str(error)))
            continue
        yield _New(_key(found, seen), task, found)


def _key(found: FileTask, seen: Counter[bytes]) -> str:
    """The idempotency key of a task; what is one task in one file and in the next has the same."""
    digest = sha256(json.dumps(found.identity).encode()).digest()
    seen[digest] += 1
    number = 1 if found.original else seen[digest]
    return f"import {sha256(digest + str(number).encode()).hexdigest()}"


async def _add(tx: Transaction, caller: Caller, portion: Sequence[_New]) -> tuple[int, int]:
    """How many of the tasks were there, and how many were added."""
    await tx.execute(_LOCK, user=caller.user_id)
    new = await _not_there(tx, caller, {new.key: new for new in portion})
    fitting = new[: await _room(tx, caller, len(new))]
    if fitting:
        numbers = await statements.reserve_ids(tx, caller, len(fitting))
        tasks = {new.key: _numbered(new.task, id) for new, id in zip(fitting, numbers, strict=True)}
        await statements.add_each(tx, caller, tasks)
    return len(portion) - len(new), len(fitting)


async def _not_there(tx: Transaction, caller: Caller, by_key: Mapping[str, _New]) -> list[_New]:
    """What neither an import has added nor stands in the list from which it was exported."""
    ids = [new.file_task.original[0] for new in by_key.values() if new.file_task.original]
    keys = await tx.execute(_KEYS, user=caller.user_id, keys=[*by_key])
    rows = await tx.execute(_ORIGINALS, user=caller.user_id, ids=ids)
    there = {row["idempotency_key"] for row in await keys.fetchall()}
    originals = {_original(row["id"], to_utc(row["created_at"]), row["title"]) for row in await rows.fetchall()}
    return [new for key, new in by_key.items() if key not in there and not (originals and _stands(new, originals))]


def _stands(new: _New, originals: Container[object]) -> bool:
    return new.file_task.original is not None and _original(*new.file_task.original, new.task.title) in originals


def _original(id: int, created_at: datetime, title: str) -> tuple[object, ...]:
    """What no other task has: the moment at which it was made, or its title too where that is but a day."""
    return id, created_at, None if created_at.microsecond else title


async def _room(tx: Transaction, caller: Caller, wanted: int) -> int:
    """How many of so many tasks the user may still keep."""
    room = await quota.count_free(tx, caller.quota, user_id=caller.user_id)
    return wanted if room is None else min(wanted, room)


def _numbered(task: Task, id: int) -> Task:
    return task.model_copy(update={"id": id, "series": id if task.repeat else None})


class _Arguments(BaseModel):
    title: given.Title
    description: given.Description = None
    due: given.Due = None
    priority: given.NewPriority = None
    labels: given.Labels = None
    repeat: given.Repeat = None


def _create_task(found: FileTask, now: Now) -> Task:
    """The task, still without an id of its own; raises the `CallError` that `add_task` would answer with."""
    checked = _check(found)
    wanted = TaskPatch(
        description=checked.description,
        due=checked.due,
        priority=checked.priority,
        labels=checked.labels,
        repeat=checked.repeat,
    )
    task = with_fields(Task.new(checked.title, now.instant), wanted, now)
    moments: dict[str, Any] = {"created_at": to_utc(found.created_at or found.completed_at or now.instant)}
    moments["updated_at"] = to_utc(found.updated_at or now.instant)
    if found.completed:
        moments |= {"status": "completed", "completed_at": to_utc(found.completed_at or now.instant)}
    return task.model_copy(update=moments)


def _check(found: FileTask) -> _Arguments:
    try:
        return _Arguments.model_validate({name: getattr(found, name) for name in _Arguments.model_fields})
    except ValidationError as error:
        names = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors(include_input=False))
        problems = "; ".join(f"{name} must be {given.RULES[name]}" for name in names)
        raise ArgumentsInvalid(problems=problems) from None
