"""A small task list behind the five tools, and the loop that an agent would run around the rules."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mcp_server.tasks import dates, repeats
from offline_model import rules
from offline_model.protocol import Message
from offline_model.rules.lookup import ToolCall
from offline_model.rules.reading import TABLE, Table

TOOLS = frozenset({"add_task", "list_tasks", "complete_task", "update_task", "delete_task"})
NOW = datetime(2026, 11, 23, 10, 0)  # a Monday
NOT_FOUND = "There is no task {task_id} on your list: look up the numbers with list_tasks."
Json = dict[str, Any]


class ToolError(Exception):
    pass


@dataclass
class TaskList:
    tasks: dict[int, Json] = field(default_factory=dict)
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
        except ToolError as error:
            return str(error)

    def add_task(self, title: str, description: str = "", **more: str) -> Json:
        number = max(self.tasks, default=0) + 1
        self._keep(number)
        self.tasks[number] = {"id": number, "title": title, "description": description, "status": "pending"}
        if "due" in more:
            self.tasks[number]["due"] = self._day(more["due"])
        if "repeat" in more:
            self.tasks[number]["repeat"] = str(repeats.read(more["repeat"], NOW.date()))
        return self.tasks[number]

    def _day(self, due: str, current: str | None = None) -> str | None:
        """As the real tool tells it: what it cannot read fails the test."""
        day = dates.read_due(due, now=NOW, current=self._due({"due": current}))
        return dates.shown(day) if isinstance(day, dates.Due) else day

    def _due(self, task: Json) -> dates.Due | None:
        day = dates.read_due(task["due"], now=NOW) if task.get("due") else None
        assert day != "next"
        return day

    def list_tasks(self, status: str = "all", cursor: str | None = None, limit: int = 50, **more: str) -> Json:
        start, size = int(cursor or 0), min(limit, self.page)
        fitting = [task for task in self.tasks.values() if status in ("all", task["status"])]
        if "due" in more:
            days = dates.read_range(more["due"], now=NOW)
            fitting = [task for task in fitting if days.holds(self._due(task))]
        rest = str(start + size) if len(fitting) > start + size else None
        return {"tasks": fitting[start : start + size], "next_cursor": rest}

    def complete_task(self, task_id: int) -> Json:
        self._keep(task_id)
        self._task(task_id)["status"] = "completed"
        return self.tasks[task_id]

    def update_task(self, task_id: int, undo: bool = False, also: Sequence[int] = (), **fields: Any) -> Json:
        if undo:
            first, *others = [self._undo(id) for id in (task_id, *also)]
            return first | {"also": others}
        self._keep(task_id)
        task = self._task(task_id)
        if "due" in fields:
            fields["due"] = self._day(fields["due"], task.get("due"))
        task.update(fields)
        return task

    def delete_task(self, task_id: int, also: Sequence[int] = ()) -> Json:
        first, *others = [self._delete(id) for id in (task_id, *also)]
        return first | {"also": others}

    def _delete(self, task_id: int) -> Json:
        self._keep(task_id)
        title = self._task(task_id)["title"]
        del self.tasks[task_id]
        return {"id": task_id, "title": title, "deleted": True}

    def _keep(self, task_id: int) -> None:
        self.before.append((task_id, dict(self.tasks[task_id]) if task_id in self.tasks else None))

    def _undo(self, task_id: int) -> Json:
        at = max(at for at, (id, _) in enumerate(self.before) if id == task_id)
        _, before = self.before.pop(at)
        if before:
            self.tasks[task_id] = before
            return before
        return self.tasks.pop(task_id) | {"deleted": True}

    def _task(self, task_id: int) -> Json:
        if task_id not in self.tasks:
            raise ToolError(NOT_FOUND.format(task_id=task_id))
        return self.tasks[task_id]


class Conversation:
    """Says something to the rules and runs the tools they ask for, until they answer."""

    def __init__(self, tasks: TaskList, wishes: Table = TABLE) -> None:
        self.tasks = tasks
        self.wishes = wishes
        self.messages: list[Message] = [Message(role="system", content="You keep tasks.")]
        self.calls: list[tuple[str, Json]] = []

    def say(self, text: str) -> str:
        self.calls = []
        self.messages.append(Message(role="user", content=text))
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
