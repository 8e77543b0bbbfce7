"""A text that is withdrawn, as readers of every protocol see it: live, late, and after a broken connection.

One run is recorded in steps. In its process and in another one, readers follow it from its beginning, and others come
back after each step. What they have read is put together as their protocol says.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from backend.api.chatkit.events import ChatKitRenderer
from backend.api.chatkit.plain_messages import PlainRenderer
from backend.api.event_renderer import EventRenderer
from backend.api.frontends.chunks import AiSdkRenderer
from backend.api.frontends.response import collect, render_answer
from backend.api.interactions.events import RenderedInteraction, RunApiRenderer
from backend.api.interactions.render import render_interaction
from backend.cards.agent_workflow import WorkflowStream
from backend.cards.service import CardService, CardStream
from backend.conversations import conversations, run_requests
from backend.conversations.errors import from_database
from backend.conversations.records import Entry, Event, Run
from backend.conversations.run_requests import NewConversation, RunRequest, StartedRun, UserMessage
from backend.conversations.timeline import load_trees
from backend.model.responses.reader import Piece
from backend.runs.live_run import LiveRun
from backend.runs.recorder import Recorder, store_growth
from backend.runs.stream import RunStream, Streams
from backend.tools.run_context import RunContext
from backend.transcript import read_log
from backend.users.limits import UserLimits
from common.changes import CORRECTION
from common.database import Database
from todo_client.connection import ConnectionLost
from todo_client.events import EventType, render_agent_events
from todo_client.reading import Reading
from todo_client.runs import Runs
from todo_client.sse import EventParser, RunEvent

USER, CHAT = "ada", "thr_1"
CLAIM, ANSWER = "I have added milk for tomorrow.", "Nothing was changed. Which list is it for?"
CHANGES = [{"task_id": 7, "title": "milk", "change": "added"}]
FACTS = {"changes": CHANGES, "named": 2}
LINE = "Added 1 · Changed: 1 of the 2 named"


class Writer:
    """Records a run in steps. `turn_first`: its first model turn is stored before the text that is withdrawn."""

    def __init__(self, database: Database, started: StartedRun, *, turn_first: bool) -> None:
        self.database, self.run, self._turn_first = database, started.run, turn_first
        run, [message] = started.run, started.timeline.entries
        self.live = LiveRun(run, RunStream(), agent_model_turns_left=0)
        self.live.stream.append(Event("entry_completed", message, message.last_seq, run=run))
        self._recorder = Recorder(database, self.live, RunContext(run, cast(Any, None)))

    async def begin_claim(self) -> None:
        self._recorder.start_model_turn()
        self._recorder.read_piece(Piece(text=CLAIM[:10]))

    async def grow_claim(self) -> None:
        self._recorder.read_piece(Piece(text=CLAIM[10:]))

    async def withdraw(self) -> None:
        turn, [entry] = self._recorder.end_model_turn()
        withdrawn = replace(entry, kind="withdrawn", text="")
        await self._recorder.store([turn, withdrawn] if self._turn_first else [withdrawn, turn])

    async def begin_answer(self) -> None:
        self._recorder.start_model_turn()
        self._recorder.read_piece(Piece(text=ANSWER[:10]))

    async def grow_answer(self) -> None:
        self._recorder.read_piece(Piece(text=ANSWER[10:]))

    async def end(self) -> None:
        turn, entries = self._recorder.end_model_turn()
        changes = Entry(self.run.id, "chg_1", "changes", details=FACTS)
        await self._recorder.store([turn, *entries, changes], "completed")
        self.run.changes = FACTS
        self.live.stream.append(Event("run_ended", number=self.run.end_seq, run=self.run))

    async def steps(self) -> AsyncIterator[bool]:
        """Carries out a step, and stores what has grown, before it yields whether the text is withdrawn."""
        first, second = (self.begin_claim, self.grow_claim), (self.begin_answer, self.grow_answer)
        for step in (*first, self.withdraw, *second, self.end):
            await step()
            await store_growth(self.database, self.live)
            yield step not in first


class Client(ABC):
    """Puts together what a protocol sends."""

    changes: list[Any] | None = None

    @property
    @abstractmethod
    def text(self) -> str:
        """The answer as its user sees it."""

    @abstractmethod
    def receive(self, frames: bytes) -> None: ...

    @abstractmethod
    def reconnect(self) -> None:
        """Prepares for what a new connection sends."""


class RunApiClient(Client):
    def __init__(self) -> None:
        self._complete, self._open = list[str](), ""

    @property
    def text(self) -> str:
        return "".join([*self._complete, self._open])

    def receive(self, frames: bytes) -> None:
        for event in EventParser().feed(frames):
            match event.name:
                case "answer_delta":
                    self._open += event.data["content"]
                case "answer":
                    self._complete, self._open = [*self._complete, event.data["content"]], ""
                case "withdrawn":
                    self._open = ""
                case "interaction_complete":
                    self.changes = event.data["changes"]
                case _:
                    pass

    def reconnect(self) -> None:
        self._open = ""


class ChatKitClient(Client):
    """Its changes are the text of the item that shows them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    @property
    def text(self) -> str:
        return "".join(self._texts.values())

    def receive(self, frames: bytes) -> None:
        for event in parse(frames):
            match event:
                case {"type": "thread.item.added" | "thread.item.done", "item": {"type": "assistant_message"} as item}:
                    self._texts[item["id"]] = "".join(part["text"] for part in item["content"])
                case {"type": "thread.item.updated", "item_id": item_id, "update": {"delta": delta}}:
                    self._texts[item_id] += delta
                case {"type": "thread.item.done", "item": {"type": "widget", "copy_text": text}}:
                    self.changes = [text]
                case {"type": "thread.item.removed", "item_id": item_id}:
                    self._texts.pop(item_id, None)
                case _:
                    pass

    def reconnect(self) -> None:
        pass


class AiSdkClient(Client):
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    @property
    def text(self) -> str:
        return "".join(self._texts.values())

    def receive(self, frames: bytes) -> None:
        for chunk in parse(frames):
            match chunk:
                case {"type": "text-delta", "id": part, "delta": delta}:
                    self._texts[part] = self._texts.get(part, "") + delta
                case {"type": "data-withdrawn", "data": {"id": part}}:
                    del self._texts[part]
                case {"type": "data-changes", "data": data}:
                    self.changes = data["changes"]
                    assert data == {"text": LINE, **FACTS}
                case _:
                    pass

    def reconnect(self) -> None:
        self._texts = {}


def parse(frames: bytes) -> list[Any]:
    data = [line.removeprefix("data: ") for line in frames.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(one) for one in data]


CLIENTS: dict[str, Callable[[], Client]] = {
    "run_api": RunApiClient,
    "chatkit": ChatKitClient,
    "ai_sdk": AiSdkClient,
}


class Server:
    """The readers of a run in one process."""

    def __init__(self, database: Database, run: Run) -> None:
        self.database, self.run, self.streams = database, run, Streams(database)

    def follow(self, group: asyncio.TaskGroup, protocol: str, read: Sequence[bytes] = ()) -> list[bytes]:
        """Returns the list that gets what a reader is sent who has `read` something.

        Only readers of the run API go on after a number.
        """
        known = EventParser().feed(b"".join(read)) if protocol == "run_api" else ()
        after, frames = max([event.number or 0 for event in known], default=0), list[bytes]()
        events = self.streams.follow(USER, self.run.id, after=after)
        group.create_task(self._read(self._render(protocol).encode_stream(events), frames))
        return frames

    async def _read(self, stream: Any, frames: list[bytes]) -> None:
        async with aclosing(stream):
            async for one in stream:
                frames += [one]

    def _render(self, protocol: str) -> EventRenderer[Any]:
        match protocol:
            case "run_api":
                return RunApiRenderer(RenderedInteraction(self.run.id, CHAT))
            case "chatkit":
                service = CardService(self.database, cast(Any, None), lambda: datetime.now(UTC), "UTC")
                return ChatKitRenderer(CHAT, CardStream(service, USER, CHAT), WorkflowStream())
            case "ai_sdk":
                return AiSdkRenderer(self.run.id)
            case _:
                return PlainRenderer({})


def check(protocol: str, *connections: Sequence[bytes]) -> None:
    """Puts together what a reader got over several connections; never are both texts shown together."""
    client = CLIENTS[protocol]()
    for frames in connections:
        client.reconnect()
        for one in frames:
            client.receive(one)
            assert CLAIM[:10] not in client.text or ANSWER[:10] not in client.text
    assert client.text == ANSWER, protocol
    assert client.changes == ([LINE] if protocol == "chatkit" else CHANGES)


@asynccontextmanager
async def recording(database_url: str, *, turn_first: bool) -> AsyncIterator[Writer]:
    async with Database(database_url, translate_error=from_database) as database:
        request = RunRequest(CHAT, UserMessage("msg_1", "add milk"), NewConversation())
        started = await run_requests.start(database, USER, request, process_id=1, limits=UserLimits())
        yield Writer(database, started, turn_first=turn_first)


@pytest.mark.parametrize("turn_first", [True, False], ids=["after_its_turn", "before_its_turn"])
async def test_readers_never_have_both_texts(database_url: str, *, turn_first: bool) -> None:
    async with recording(database_url, turn_first=turn_first) as writer:
        own, other = (Server(writer.database, writer.run) for _ in range(2))
        own.streams.live[writer.run.id] = writer.live.stream
        returned: list[tuple[str, list[bytes], list[bytes]]] = []
        late: list[list[bytes]] = []
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            live = {protocol: own.follow(group, protocol) for protocol in (*CLIENTS, "plain")}
            elsewhere = {protocol: other.follow(group, protocol) for protocol in CLIENTS}
            async for is_withdrawn in writer.steps():
                if writer.run.status == "completed":
                    del own.streams.live[writer.run.id]
                other.streams.wake(writer.run.id)
                await asyncio.sleep(0.03)
                for protocol in CLIENTS:
                    read = [*live[protocol]]
                    again = [server.follow(group, protocol, read) for server in (own, other)]
                    returned += [(protocol, read, frames) for frames in again]
                    late += again if is_withdrawn else []
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for protocol in CLIENTS:
                cuts = [live[protocol][:cut] for cut in range(len(live[protocol]))]
                returned += [(protocol, read, own.follow(group, protocol, read)) for read in cuts]
        returned += [(protocol, [], frames) for protocol, frames in (*live.items(), *elsewhere.items())]

        for protocol, read, rest in returned:
            if protocol in CLIENTS:
                check(protocol, read, rest)
        assert not any(CLAIM[:10] in frames.decode() for frames in map(b"".join, late))
        await check_python_client([(read, rest) for protocol, read, rest in returned if protocol == "run_api"])
        plain = parse(b"".join(live["plain"]))
        assert "".join(one.get("content", "") for one in plain) == f"{CLAIM}\n\n{CORRECTION}\n\n{ANSWER}"
        assert plain[-1] == {"type": "message_complete", "status": "completed", **FACTS}
        await check_stored(writer, own)


async def check_stored(writer: Writer, server: Server) -> None:
    """Checks what is read as a whole once the run has ended: the answer, its interaction and the log."""
    database, run = writer.database, writer.run
    answer = await render_answer(run, await collect(server.streams.follow(USER, run.id)), None)
    assert (answer.answer, [one.action for one in answer.events], answer.named) == (ANSWER, ["final"], 2)
    assert [one.model_dump() for one in answer.changes] == CHANGES
    trees = await load_trees(database, USER, [run.id])
    interaction = render_interaction(run, trees, siblings=[], messages=None, brief=False).model_dump()
    assert [one["content"] for one in interaction["agent_events"]] == [ANSWER]
    assert (interaction["changes"], interaction["named"], interaction["unread"]) == (CHANGES, 2, False)
    log = [line async for line in read_log(database, USER, await conversations.find(database, USER, CHAT))]
    assert [(line["event"], line["level"]) for line in log[2:]] == [
        *(("assistant_message", "WARNING"), ("assistant_message", "INFO"), ("changes", "WARNING"))
    ]
    assert (log[2]["output"], log[3]["output"], json.loads(log[4]["output"])) == (None, ANSWER, FACTS)


async def check_python_client(connections: Sequence[tuple[Sequence[bytes], Sequence[bytes]]]) -> None:
    async def read(*connections: Sequence[bytes]) -> str:
        runs = BrokenRuns([[*EventParser().feed(b"".join(frames))] for frames in connections])
        text, names = "", list[str]()
        async for event in Reading(CHAT, "run").events(cast(Runs, runs), reconnect_seconds=30):
            for kind, data in render_agent_events(event.name, event.data):
                names.append(kind)
                text = "" if kind is EventType.WITHDRAWN else text
                text += data["text"] if kind is EventType.TEXT_DELTA else ""
        assert names.count(EventType.TURN_START) == names.count(EventType.TURN_END) == 2
        return text

    assert {*await asyncio.gather(*(read(*both) for both in connections))} == {ANSWER}


class BrokenRuns:
    """Each connection sends its events and breaks."""

    def __init__(self, connections: list[list[RunEvent]]) -> None:
        self._connections = iter(connections)

    @asynccontextmanager
    async def events(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[RunEvent]]:
        async def send() -> AsyncIterator[RunEvent]:
            for event in next(self._connections):
                yield event
            raise ConnectionLost

        yield send()
