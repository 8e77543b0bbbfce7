"""Adds the tasks of a file to a user's list, each once however often the file is imported."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any

from pydantic import ValidationError, create_model

from common.clock import to_utc
from common.database import Database, Transaction
from common.tool_server.errors import ArgumentsInvalid, CallError
from mcp_server.arguments import list_arguments
from mcp_server.imports.file_tasks import FileTask, FileTasks, NoTask, UnreadLine
from mcp_server.tasks import changes, undo, zones
from mcp_server.tasks.changes import LOCK, Caller, LoggedChange
from mcp_server.tasks.fields import ARGUMENTS, Task, TaskPatch
from mcp_server.tasks.patches import apply_patch
from mcp_server.tasks.zones import Now

ACTOR = "import"
_BATCH_SIZE = 500  # tasks of a transaction
_MAX_LISTED = 1_000  # lines that cannot be read

_KEYS = """
SELECT k.idempotency_key, t.series
FROM task_calls k LEFT JOIN tasks t ON t.user_id = %(user)s AND t.id = (k.arguments->>'task_id')::bigint
WHERE k.user_id = %(user)s AND k.idempotency_key IS NOT NULL AND k.idempotency_key = ANY(%(keys)s::text[])"""
# The arguments of these calls contain no text, because their rows outlive the log of changes.
_CLAIM_EACH = """
INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key, batch, created_at)
SELECT %(user)s, 'add', jsonb_build_object('task_id', id), %(actor)s, key, %(batch)s, %(now)s
FROM unnest(%(ids)s::bigint[], %(keys)s::text[]) AS task (id, key) ORDER BY id
RETURNING id, idempotency_key"""
_ORIGINALS = "SELECT id, created_at, title, series FROM tasks WHERE user_id = %(user)s AND id = ANY(%(ids)s::bigint[])"

_OPEN_SERIES = """
SELECT series FROM tasks WHERE user_id = %(user)s AND status = 'pending' AND series = ANY(%(series)s::bigint[])"""
_LAST_BATCH = """
SELECT batch, count(*) AS tasks FROM task_calls
WHERE user_id = %(user)s AND actor = %(actor)s AND batch IS NOT NULL AND idempotency_key IS NOT NULL
GROUP BY batch ORDER BY max(id) DESC LIMIT 1"""


@dataclass
class Report:
    """The numbers of tasks of a file by what happened to them."""

    added: int = 0
    existing: int = 0
    """Those that had been added before."""
    over_limit: int = 0
    """Those beyond the limit of the user."""
    unread: list[UnreadLine] = field(default_factory=list[UnreadLine])
    unlisted: int = 0
    """Those that could not be read, beyond the listed ones."""
    lost: Counter[str] = field(default_factory=Counter[str])
    """How often the file has a value that no field of a task can hold, by its column."""

    def add_unread(self, unread: UnreadLine) -> None:
        if len(self.unread) < _MAX_LISTED:
            self.unread.append(unread)
        else:
            self.unlisted += 1


@dataclass(frozen=True)
class _New:
    key: str
    task: Task
    original: tuple[object, ...] | None
    """Identifies the exported task of which this is a copy."""
    series: int | None
    """The number of its series in the file."""


async def import_tasks(
    database: Database, caller: Caller, read_file: Callable[[Now], FileTasks], *, progress: Callable[[Report], None]
) -> Report:
    """Adds the tasks that `read_file` returns. An import that was interrupted can be repeated."""
    async with database.transaction(caller.user_id) as tx:
        now = await zones.get_now(tx, caller)
    report = Report()
    tasks = _check_tasks(read_file(now), now, report)
    series = dict[int, int]()
    while portion := [*islice(tasks, _BATCH_SIZE)]:
        async with database.transaction(caller.user_id) as tx:
            existing, added = await _add(tx, caller, portion, series)
        report.existing += existing
        report.added += added
        report.over_limit += len(portion) - existing - added
        progress(report)
    return report


async def undo_last(database: Database, caller: Caller) -> int:
    """Removes what the last import added, and returns how many tasks; their file can be imported again.

    Raises an error of `undo_batch`, such as `ChangedSince`.
    """
    async with database.transaction(caller.user_id) as tx:
        await tx.execute(LOCK)
        last = await (await tx.execute(_LAST_BATCH, actor=ACTOR)).fetchone()
        if last is None:
            return 0
        await undo.undo_batch(tx, caller, last["batch"])
        return last["tasks"]


def _check_tasks(file_tasks: FileTasks, now: Now, report: Report) -> Iterator[_New]:
    counts = Counter[bytes]()
    for file_task in file_tasks:
        if isinstance(file_task, UnreadLine):
            report.add_unread(file_task)
            continue
        if isinstance(file_task, NoTask):
            report.lost[file_task.name] += 1
            continue
        try:
            task = _create_task(file_task, now)
        except CallError as error:
            report.add_unread(UnreadLine(file_task.location, str(error)))
            continue
        original = _identify(*file_task.original, task.title) if file_task.original else None
        report.lost.update(file_task.lost)
        yield _New(_create_key(file_task, counts), task, original, file_task.series)


def _create_key(file_task: FileTask, counts: Counter[bytes]) -> str:
    """Returns the idempotency key of a task, which is the same in the next version of the file."""
    digest = sha256(json.dumps(file_task.identity).encode()).digest()
    counts[digest] += 1
    number = 1 if file_task.original else counts[digest]
    return f"import {sha256(digest + str(number).encode()).hexdigest()}"


async def _add(tx: Transaction, caller: Caller, portion: Sequence[_New], series: dict[int, int]) -> tuple[int, int]:
    """Returns how many tasks existed, and how many were added; `series` maps the file's numbers to the list's."""
    await tx.execute(LOCK)
    by_key = {new.key: new for new in portion}
    existing = await _find_existing(tx, by_key)
    series |= {new.series: number for key, number in existing.items() if number and (new := by_key[key]).series}
    new = [task for key, task in by_key.items() if key not in existing]
    fitting = new[: await caller.quota.count_free(tx)]
    if fitting:
        numbered = await changes.number_tasks(tx, [new.task for new in fitting])
        tasks = await _join_series(tx, [*zip(numbered, (new.series for new in fitting), strict=True)], series)
        calls = await _claim_calls(tx, caller, [new.key for new in fitting], [task.id for task in tasks])
        await changes.write_changes(tx, caller, calls, [LoggedChange(None, task) for task in tasks])
    return len(portion) - len(new), len(fitting)


async def _join_series(tx: Transaction, tasks: Sequence[tuple[Task, int | None]], series: dict[int, int]) -> list[Task]:
    """Gives tasks the numbers of their series; an open task of one that has an open task begins another."""
    rows = await tx.execute(_OPEN_SERIES, series=[series[number] for _, number in tasks if number in series])
    with_open = {row["series"] for row in await rows.fetchall()}
    joined: list[Task] = []
    for task, number_in_file in tasks:
        if number_in_file is not None:
            number = series.setdefault(number_in_file, task.id)
            if task.status == "pending":
                number = task.id if number in with_open else number
                with_open.add(number)
            task = task.model_copy(update={"series": number})
        joined.append(task)
    return joined


async def _claim_calls(tx: Transaction, caller: Caller, keys: Sequence[str], ids: Sequence[int]) -> list[int]:
    """Stores a call with each of these keys, which must be new, and returns the ids of the calls."""
    values = {"actor": caller.actor, "batch": caller.batch, "now": caller.clock()}
    rows = await tx.execute(_CLAIM_EACH, keys=[*keys], ids=[*ids], **values)
    by_key = {row["idempotency_key"]: row["id"] for row in await rows.fetchall()}
    return [by_key[key] for key in keys]


async def _find_existing(tx: Transaction, by_key: Mapping[str, _New]) -> dict[str, int | None]:
    """Returns the keys of tasks that an import has added or that are in the list from which they were exported.

    Their values are the numbers of the tasks' series in the list.
    """
    ids = [new.original[0] for new in by_key.values() if new.original]
    keys = await tx.execute(_KEYS, keys=[*by_key])
    rows = await tx.execute(_ORIGINALS, ids=ids)
    added = {row["idempotency_key"]: row["series"] for row in await keys.fetchall()}
    originals = {
        _identify(row["id"], to_utc(row["created_at"]), row["title"]): row["series"] for row in await rows.fetchall()
    }
    return {key: originals[new.original] for key, new in by_key.items() if new.original in originals} | added


def _identify(id: int, created_at: datetime, title: str) -> tuple[object, ...]:
    """Identifies a task by its creation time, and also by its title if that time is only a day."""
    return id, created_at, None if created_at.microsecond else title


_TYPES = {name: argument.add for name, argument in ARGUMENTS.items() if argument.add}
_RULES = list_arguments(_TYPES)
_OPTIONAL: dict[str, Any] = {name: (type, None) for name, type in _TYPES.items()}
_Arguments = create_model("_Arguments", **_OPTIONAL)


def _create_task(file_task: FileTask, now: Now) -> Task:
    """Returns a task without an id; raises the same `CallError` as `add_task`."""
    patch = TaskPatch(**_check_arguments(file_task.arguments))
    task = apply_patch(Task.new(patch["title"], now.instant), patch, now)
    moments: dict[str, Any] = {"created_at": to_utc(file_task.created_at or file_task.completed_at or now.instant)}
    moments["updated_at"] = to_utc(file_task.updated_at or now.instant)
    if file_task.completed:
        moments |= {"status": "completed", "completed_at": to_utc(file_task.completed_at or now.instant)}
    return task.model_copy(update={**moments, **file_task.stored})


def _check_arguments(arguments: Mapping[str, object]) -> dict[str, Any]:
    try:
        return _Arguments.model_validate(arguments).model_dump()
    except ValidationError as error:
        names = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors(include_input=False))
        problems = "; ".join(f"{name} must be {_RULES[name].rule}" for name in names)
        raise ArgumentsInvalid(problems=problems) from None
