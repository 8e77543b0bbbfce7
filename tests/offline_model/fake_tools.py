"""A small task list behind the five tools, and the loop that an agent would run around the rules."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from backend.conversation.hidden import block
from mcp_server.tasks import dates, repeats
from mcp_server.tasks.lists.nearest import nearest
from offline_model import rules
from offline_model.protocol import Message
from offline_model.rules.intents import ToolCall
from offline_model.rules.reading import TABLE, Table
from service.tool_server.refusals import Refusal

TOOLS = frozenset({"add_task", "list_tasks", "complete_task", "update_task", "delete_task"})
NOW = datetime(2026, 11, 23, 10, 0)  # a Monday
NOT_FOUND = "There is no task {task_id} on your list: look up the numbers with list_tasks."
Json = dict[str, Any]


class ToolError(Exception):
    pass


@dataclass
class TaskList:
    tasks: dict[int, Json] = field(default_factory=dict)
    deleted: dict[int, Json] = field(default_factory=dict)
    page: int = 100
    before: list[tuple[int, Json | None]] = field(default_factory=list)

    @classmethod
    def of(cls, *titles: str, done: Iterable[int] = (), page: int = 100) -> "TaskList":
        tasks = cls(page=page)
        for title in titles:
            tasks.add_task(title)
        for task_id in done:
            tasks.complete_task(task_id)
        return tasks

    @property
    def titles(self) -> dict[int, str]:
        return {task["id"]: task["title"] for task in self.tasks.values()}

    @property
    def done(self) -> set[int]:
        return {task["id"] for task in self.tasks.values() if task["status"] == "completed"}

    def call(self, name: str, arguments: Json) -> str:
        try:
            return json.dumps(getattr(self, name)(**arguments))
        except (ToolError, Refusal) as error:
            return str(error)

    def add_task(self, title: str, also: Sequence[str] = (), **details: Any) -> Json:
        first, *others = [self._add(one, **details) for one in (title, *also)]
        return first | {"also": others}

    def _add(self, title: str, **details: Any) -> Json:
        number = max([*self.tasks, *self.deleted], default=0) + 1
        self._keep(number)
        self.tasks[number] = {"id": number, "title": title, "description": "", "status": "pending", **details}
        if "due" in details:
            self.tasks[number]["due"] = self._day(details["due"])
        if "repeat" in details:
            self.tasks[number]["repeat"] = str(repeats.read(details["repeat"], NOW.date()))
        return self.tasks[number]

    def _day(self, due: str, current: str | None = None) -> str | None:
        """As the real tool tells it: what it cannot read fails the test."""
        day = dates.read_due(due, now=NOW, current=self._due({"due": current}))
        return dates.shown(day) if isinstance(day, dates.Due) else day

    def _due(self, task: Json) -> dates.Due | None:
        day = dates.read_due(task["due"], now=NOW) if task.get("due") else None
        assert day != "next"
        return day

    def list_tasks(self, status: str = "all", cursor: str | None = None, limit: int = 50, **filters: str) -> Json:
        start, size = int(cursor or 0), min(limit, self.page)
        tasks = self.deleted if status == "deleted" else self.tasks
        listed = [task for task in tasks.values() if status in ("all", "deleted", task["status"])]
        fitting = [task for task in listed if self._fits(task, **filters)]
        if (order := filters.get("order", "created")) != "created":
            fitting.sort(key=lambda task: (order == "priority" and _urgency(task), task.get("due", "~")[4:]))
        page = {"tasks": fitting[start : start + size], "total": len(fitting), "now": f"{NOW:%a %Y-%m-%d %H:%M}"}
        if "query" in filters and not fitting:
            titles = [(task["id"], task["title"]) for task in listed]
            near = nearest(filters["query"], titles, most=5)
            page["nearest"] = [{"id": id, "title": title} for id, title in near]
        return page | {"next_cursor": str(start + size) if len(fitting) > start + size else None}

    def _fits(self, task: Json, **filters: str) -> bool:
        texts = f"{task['title']} {task['description']}".casefold()
        words, labels = filters.get("query", "").casefold().split(), task.get("labels", [])
        done = task.get("completed_at", str(NOW))[:10]
        return (
            all(word in texts or word in labels for word in words)
            and ("due" not in filters or dates.read_range(filters["due"], now=NOW).holds(self._due(task)))
            and ("done" not in filters or dates.read_done(filters["done"], now=NOW).holds(_day_of(done)))
            and filters.get("label") in (None, *labels)
            and filters.get("priority") in (None, task.get("priority"))
        )

    def complete_task(self, task_id: int, also: Sequence[int] = ()) -> Json:
        return self._several(task_id, also, {"status": "completed"})

    def update_task(self, task_id: int, undo: bool = False, also: Sequence[int] = (), **fields: Any) -> Json:
        if undo:
            first, *others = [self._undo(id) for id in (task_id, *also)]
            return first | {"also": others}
        return self._several(task_id, also, fields)

    def _several(self, task_id: int, also: Sequence[int], fields: Json) -> Json:
        found = [id for id in (task_id, *also) if id in self.tasks] or [task_id]
        first, *others = [self._change(id, dict(fields)) for id in found]
        return first | {"also": others, "not_found": [id for id in (task_id, *also) if id not in self.tasks]}

    def _change(self, task_id: int, fields: Json) -> Json:
        task = self._task(task_id)
        self._keep(task_id)
        if "due" in fields:
            fields["due"] = self._day(fields["due"], task.get("due"))
        task.update(fields)
        return task

    def delete_task(self, task_id: int, also: Sequence[int] = ()) -> Json:
        first, *others = [self._delete(id) for id in (task_id, *also)]
        return first | {"also": others}

    def _delete(self, task_id: int) -> Json:
        title = self._task(task_id)["title"]
        self._keep(task_id)
        self.deleted = {task_id: self.tasks.pop(task_id)} | self.deleted
        return {"id": task_id, "title": title, "deleted": True}

    def _keep(self, task_id: int) -> None:
        self.before.append((task_id, dict(self.tasks[task_id]) if task_id in self.tasks else None))

    def _undo(self, task_id: int) -> Json:
        at = max(at for at, (id, _) in enumerate(self.before) if id == task_id)
        _, before = self.before.pop(at)
        self.deleted.pop(task_id, None)
        if before:
            self.tasks[task_id] = before
            return before
        return self.tasks.pop(task_id) | {"deleted": True}

    def _task(self, task_id: int) -> Json:
        if task_id not in self.tasks:
            raise ToolError(NOT_FOUND.format(task_id=task_id))
        return self.tasks[task_id]


def _urgency(task: Json) -> int:
    return ("high", "medium", "low", None).index(task.get("priority"))


def _day_of(text: str) -> dates.Due:
    return dates.Due(date.fromisoformat(text))


class Conversation:
    """Says something to the rules and runs the tools they ask for, until they answer."""

    def __init__(self, tasks: TaskList, wishes: Table = TABLE) -> None:
        self.tasks = tasks
        self.wishes = wishes
        self.messages: list[Message] = [Message(role="system", content="You keep tasks.")]
        self.calls: list[tuple[str, Json]] = []

    def say(self, text: str, *, known: str = "") -> str:
        """`known` is what else the note before the message says."""
        self.calls = []
        note = block(f"{NOW:%a %Y-%m-%d %H:%M}, Europe/Berlin{known}")
        self.messages += [Message(role="user", content=note), Message(role="user", content=text)]
        while (reply := rules.answer(self.messages, TOOLS, wishes=self.wishes)).calls:
            self._run(reply.calls)
        self.messages.append(Message(role="assistant", content=reply.text))
        return reply.text

    def _run(self, calls: tuple[ToolCall, ...]) -> None:
        numbered = [(f"call_{len(self.messages)}_{index}", call) for index, call in enumerate(calls)]
        made = [
            {"id": id, "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for id, call in numbered
        ]
        self.messages.append(Message.model_validate({"role": "assistant", "content": None, "tool_calls": made}))
        for id, call in numbered:
            self.calls.append((call.name, call.arguments))
            output = self.tasks.call(call.name, call.arguments)
            self.messages.append(Message(role="tool", content=output, tool_call_id=id))
