"""Reads an export of `./todo export`, or the part that `python -m mcp_server export` writes."""

import json
import re
from datetime import datetime
from io import BytesIO
from typing import Annotated, Any, BinaryIO

from pydantic import AfterValidator, AwareDatetime, Field, ValidationError

from common import recurrence
from common.clock import to_utc
from common.recurrence import LAST_DAY
from common.tool_server.errors import CallError
from mcp_server.arguments import MAX_ID
from mcp_server.errors import RepeatNeedsDue
from mcp_server.imports.file_tasks import FileTask, FileTasks, FileUnread, UnreadLine, UnreadPart
from mcp_server.tasks.dates import FIRST_YEAR
from mcp_server.tasks.fields import ARGUMENTS, DUE_COLUMNS, Task, render_value

VERSIONS = (1, 2)
# The beginning of an export, and what completes its JSON after the comma that follows the tasks.
_ENDS = {b'{"version": ': b'"changes": []}}', b'{"tasks": ': b'"changes": []}'}
_OBJECT = re.compile(r'\s*\{\s*["}]')
_NO_EXPORT = "The file is JSON, but not an export. Give a file that ./todo export wrote."


def _check_year(moment: datetime) -> datetime:
    if not FIRST_YEAR < moment.year < LAST_DAY.year:
        raise ValueError("no moment of a task")
    return to_utc(moment)


_Moment = Annotated[AwareDatetime, AfterValidator(_check_year)]


_Id = Annotated[int, Field(ge=1, le=MAX_ID)]
# Fields that no argument of `add_task` sets are stored as they are, and so is the rule: a completed task may have one
# that has ended.
_ARGUMENTS = [name for name in Task.model_fields if name in ARGUMENTS and ARGUMENTS[name].add and name != "repeat"]
_RENUMBERED = {"id", "series"}
_OF_FILE_TASK = {"status", "created_at", "updated_at", "completed_at", *DUE_COLUMNS}
_STORED = Task.model_fields.keys() - _ARGUMENTS - _RENUMBERED - _OF_FILE_TASK


class _Task(Task):
    """A task of an export, which may be of a version that had fewer fields."""

    id: _Id  # pyright: ignore[reportIncompatibleVariableOverride]
    description: str = ""
    created_at: _Moment  # pyright: ignore[reportIncompatibleVariableOverride]
    updated_at: _Moment | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    completed_at: _Moment | None = None
    series: _Id | None = None


def parse(text: str) -> FileTasks:
    document = _parse_document(text)
    user = document.get("user", "")
    part: Any = document.get("todo", document)
    tasks: Any = part.get("tasks") if isinstance(part, dict) else None
    if not isinstance(tasks, list):
        raise FileUnread(_NO_EXPORT)
    return _read_tasks(tasks, user if isinstance(user, str) else "")


def read_tasks_part(file: BinaryIO, *, max_bytes: int) -> bytes:
    """Reads about `max_bytes` bytes of a file, and an export, which has a task in each line, only to its last task."""
    first = file.readline(max_bytes + 1)
    end = next((end for begin, end in _ENDS.items() if first.startswith(begin)), None)
    if end is None:
        return first + file.read(max_bytes + 1 - len(first))
    content = BytesIO()
    content.write(first)
    while (line := file.readline(max_bytes + 1)) and content.tell() <= max_bytes:
        if line.startswith(b'"changes": '):
            content.write(end)
            break
        content.write(line)
    return content.getvalue()


def is_json_object(text: str) -> bool:
    return _OBJECT.match(text) is not None


def _parse_document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise FileUnread("The file starts like JSON, but is not valid JSON. Export it again, without jsonl.") from None
    if not isinstance(document, dict):
        raise FileUnread(_NO_EXPORT)
    if document.get("version", VERSIONS[-1]) not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise FileUnread(f"This program reads exports of version {known}, and this is another one. Update it.")
    return document


def _read_tasks(tasks: list[Any], user: str) -> FileTasks:
    for number, task in enumerate(tasks, start=1):
        location = f"task {number}"
        try:
            yield _read_task(location, _Task.model_validate(task), user)
        except ValidationError as error:
            names = dict.fromkeys(str(problem["loc"][0]) if problem["loc"] else "task" for problem in error.errors())
            yield UnreadLine(location, f"{', '.join(names)}: this is not a value of ./todo export. Correct it.")
        except (UnreadPart, CallError) as error:
            yield UnreadLine(location, str(error))


def _read_task(location: str, task: _Task, user: str) -> FileTask:
    if task.due_time and not task.due_on:
        raise UnreadPart("due_time needs due_on as well.")
    clock = f" {task.due_time:%H:%M}" if task.due_time else ""
    arguments = {name: render_value(name, getattr(task, name)) for name in _ARGUMENTS}
    return FileTask(
        location,
        ("export", user, task.id, task.created_at.isoformat()),
        arguments | {"due": f"{task.due_on}{clock}" if task.due_on else None},
        completed=task.status == "completed",
        created_at=task.created_at,
        updated_at=task.updated_at,
        completed_at=task.completed_at,
        original=(task.id, task.created_at),
        series=task.series,
        stored={name: getattr(task, name) for name in _STORED} | {"repeat": _check_rule(task)},
    )


def _check_rule(task: _Task) -> str | None:
    """Completes a rule as `add_task` does; one that has ended stays as it is."""
    if task.repeat is None:
        return None
    if task.due_on is None:
        raise RepeatNeedsDue
    rule = recurrence.parse_rule(task.repeat)
    if rule.until and rule.until < task.due_on:
        return str(rule)
    return str(recurrence.read_rule(task.repeat, task.due_on, task.due_time))
