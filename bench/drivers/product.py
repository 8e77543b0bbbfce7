"""What the product is asked over HTTP."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bench.drivers.client import Answer, Client
from bench.drivers.load import Call, Timing
from client.chatkit import request, user_input

PROTOCOL = "2026-07-28"
_META = {"io.modelcontextprotocol/protocolVersion": PROTOCOL, "io.modelcontextprotocol/clientCapabilities": {}}


class Interaction(NamedTuple):
    """An answer, as the run API names it."""

    chat: str
    run: str

    @property
    def path(self) -> str:
        return f"/chats/{self.chat}/interactions/{self.run}"


class Chat:
    """The backend, asked by one person."""

    def __init__(self, port: int) -> None:
        self.http = Client(port)

    async def create(self, text: str) -> tuple[Timing, str]:
        """A turn in a new conversation, and the conversation's id."""
        timing, body = await self._stream(request("threads.create", input=user_input(text)))
        return timing, body.partition(b'"id":"')[2].partition(b'"')[0].decode()

    async def say(self, thread_id: str, text: str) -> Timing:
        """A turn in a conversation that is there."""
        return (await self._stream(message(thread_id, text)))[0]

    async def open_thread(self, thread_id: str) -> Timing:
        timing, _ = await self.http.post("/chatkit", request("threads.get_by_id", thread_id=thread_id))
        return timing

    async def has_run_api(self) -> bool:
        try:
            await self.http.get("/chats/openapi.json")
        except Answer:
            return False
        return True

    async def interact(self, chat: str, text: str, *, to_its_end: bool = True) -> Interaction:
        """A turn begun at the run API, which goes on without a reader."""
        path, body = f"/chats/{chat}/interactions", {"user_message": text}
        _, told = await (self.http.post(path, body) if to_its_end else self.http.glance("POST", path, body))
        return Interaction(chat, _named(told, b"interaction_id"))

    async def ask(self, thread_id: str, text: str) -> Timing:
        """A turn that is answered whole, in one JSON."""
        body = {"messages": [{"role": "user", "content": text}], "threadId": thread_id}
        timing, told = await self.http.post("/chat", body)
        if b'"status":"completed"' not in told:
            raise Answer(told[:2000].decode(errors="replace"))
        return timing

    async def stream(self, thread_id: str, text: str) -> Timing:
        """The same, as a UI message stream."""
        body = {"messages": [{"role": "user", "content": text}], "threadId": thread_id}
        timing, told = await self.http.post("/chat/stream", body)
        if b"data: [DONE]" not in told or b'"finishReason": "stop"' not in told:
            raise Answer(told[-2000:].decode(errors="replace"))
        return timing

    async def answering(self, thread_id: str) -> Interaction:
        """The turn that answers in a conversation now."""
        _, body = await self.http.get(f"/chats/{thread_id}?limit=1")
        return Interaction(thread_id, _named(body, b"leaf"))

    async def follow(self, interaction: Interaction, after: int = 0) -> Timing:
        """To the first of what comes after that event; its reader leaves then."""
        timing, _ = await self.http.glance("GET", f"{interaction.path}/events", headers=_last(after))
        return timing

    async def read_on(self, interaction: Interaction, after: int) -> Timing:
        """To the end of an answer that has ended."""
        timing, body = await self.http.get(f"{interaction.path}/events", _last(after))
        if b"event: interaction_complete" not in body:
            raise Answer(body[-2000:].decode(errors="replace"))
        return timing

    async def stored(self, interaction: Interaction) -> Timing:
        """What is stored of an answer."""
        return (await self.http.get(interaction.path))[0]

    def turns(self, thread_ids: Iterator[str], text: str) -> Call:
        """A turn in the next of these conversations, each time."""
        return lambda: self.say(next(thread_ids), text)

    async def _stream(self, asked: dict[str, Any]) -> tuple[Timing, bytes]:
        timing, body = await self.http.post("/chatkit", asked)
        if b'"type":"error"' in body or b'"assistant_message"' not in body:
            raise Answer(body[:2000].decode(errors="replace"))
        return timing, body


class Tools:
    """The MCP server, asked as the backend asks it."""

    def __init__(self, port: int, tokens: Mapping[str, str] | None = None) -> None:
        self._http = Client(port)
        self._tokens = tokens or {}

    def adding(self, people: Iterator[str]) -> Call:
        """A new task of the next of these people, each time."""
        return lambda: self._call("add_task", {"user_id": next(people), "title": "Buy milk"})

    async def first_page(self, person: str, **wish: str) -> Timing:
        return await self._call("list_tasks", {"user_id": person, "limit": 20, **wish})

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Timing:
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": PROTOCOL,
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        if token := self._tokens.get(arguments["user_id"]):
            headers["authorization"] = f"Bearer {token}"
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        timing, answer = await self._http.post("/mcp", body, headers)
        if b'"structuredContent"' not in answer or json.loads(answer)["result"].get("isError"):
            raise Answer(answer[:2000].decode(errors="replace"))
        return timing


def _last(after: int) -> dict[str, str]:
    return {"last-event-id": str(after)}


def _named(body: bytes, name: bytes) -> str:
    """The first value of this name in a body of JSON."""
    found = re.search(rb'"%s": *"([^"]+)"' % name, body)
    if not found:
        raise Answer(body[:2000].decode(errors="replace"))
    return found[1].decode()


def message(thread_id: str, text: str) -> dict[str, Any]:
    return request("threads.add_user_message", thread_id=thread_id, input=user_input(text))
