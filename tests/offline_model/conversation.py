"""What a chat does around the offline model: it sends messages, and makes the tool calls on the task server."""

import json
from datetime import datetime
from typing import Any

import httpx2

from tests.mcp.calls import Tools, text

NOW = datetime(2026, 11, 23, 10, 40)  # a Monday
NOTE = "Hidden context for the agent (not shown to the user):\n<HiddenContext>\n{}\n</HiddenContext>"
NAMES = ("add_task", "list_tasks", "complete_task", "update_task", "delete_task")
CODER = "do_with_coder"


def offer(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


OFFERED = offer(*NAMES)
MAX_TURNS = 12

Call = tuple[str, dict[str, Any]]


def add(title: str, *also: str, **more: Any) -> Call:
    return "add_task", {"title": title, **({"also": list(also)} if also else {}), **more}


def change(*ids: int, tool: str = "update_task", **more: Any) -> Call:
    first, *also = ids
    return tool, {"task_id": first, **more, **({"also": also} if also else {})}


def each(tool: str, *ids: int) -> list[Call]:
    return [change(*ids, tool=tool)]


def said(content: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


class Conversation:
    """With `is_shared`, others read the same tasks, so an answer ends before its first change, which is only noted."""

    def __init__(self, http: httpx2.AsyncClient, tools: Tools, *, is_shared: bool = False) -> None:
        self.http, self.tools, self.is_shared = http, tools, is_shared
        self.messages = [said("You keep tasks.", "system")]
        self.agent_answers: list[str] | None = None
        """What the coder will answer; None if no agent can be started."""
        self.calls: list[Call] = []
        """Those that answered the last message."""

    @property
    def changes(self) -> list[Call]:
        return [call for call in self.calls if call[0] != "list_tasks"]

    async def say(self, content: str, *, now: datetime = NOW, tags: str = "") -> str:
        """The answer; `tags` is what else a note before the message says."""
        self.calls = []
        if tags:
            self.messages.append(said(NOTE.format(tags)))
        self.messages += [said(NOTE.format(f"{now:%a %Y-%m-%d %H:%M}, Europe/Berlin")), said(content)]
        for _ in range(MAX_TURNS):
            reply = await self._reply()
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return reply["content"]
            for call in reply["tool_calls"]:
                await self._make(call)
            if self.is_shared and self.changes:
                return ""
        raise AssertionError(f"the model goes on calling tools: {self.calls}")

    async def _reply(self) -> dict[str, Any]:
        tools = OFFERED if self.agent_answers is None else offer(*NAMES, CODER)
        body = {"model": "any", "messages": self.messages, "tools": tools}
        response = await self.http.post("/v1/chat/completions", json=body)
        assert response.status_code == 200, response.text
        return response.json()["choices"][0]["message"]

    async def _make(self, call: dict[str, Any]) -> None:
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        self.calls.append((name, arguments))
        if self.is_shared and self.changes:
            return
        if name == CODER:
            assert self.agent_answers, "one more agent was started"
            content = self.agent_answers.pop(0)
        else:
            content = text(await self.tools.result(name, arguments))
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
