"""Edits, retries and versions: what is shown and what the model reads is one path through the tree of runs."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.acting import Acting
from backend.conversation.errors import Busy, NotFound
from backend.conversation.items import Hidden, Item, Message, Said
from backend.conversation.model_input import history
from backend.conversation.rows import VISIBLE, VersionedMessage
from backend.conversation.runs import branches
from backend.conversation.runs.limits import Limits
from backend.conversation.store_adapter import PostgresStore
from backend.turn import versions
from backend.turn.turn import Turn
from backend.turn.turns import Turns
from service.database import new_id, utc_now
from tests.backend.conftest import Rows

ALICE = Acting("alice")
_LATE = 2**62


@pytest.fixture
async def turns(engine: AsyncEngine) -> AsyncIterator[Turns]:
    async with Turns(engine, Limits(), heartbeat_seconds=0.5, lease_seconds=10) as turns:
        yield turns


def said(text: str) -> Said:
    return Said(text=text, body={"content": [{"type": "input_text", "text": text}], "inference_options": {}})


def spoken(text: str) -> Message:
    return Message(id=new_id("msg"), parts=[text])


def made(title: str) -> list[Hidden]:
    call_id = new_id("call")
    call = {"type": "function_call", "call_id": call_id, "name": "add_task", "arguments": f'{{"title": "{title}"}}'}
    output = {"type": "function_call_output", "call_id": call_id, "output": f"added {title}"}
    return [
        Hidden(content={"kind": "tool_calls", "calls": [call], "reasoning": []}),
        Hidden(content={"kind": "tool_output", "output": output}),
    ]


@dataclass
class Row:
    id: str
    seq: int
    kind: str
    run: str | None


@dataclass
class Node:
    """A run, as the tree is meant to be."""

    id: str
    parent: str | None
    beside: str | None = None
    kept: int | None = 0
    rows: list[Row] = field(default_factory=list[Row])


class Conversation:
    """One that is changed through the product, and told to a model of it that knows paths only."""

    def __init__(self, engine: AsyncEngine, turns: Turns, rows: Rows, chance: random.Random) -> None:
        self.engine, self.turns, self.query, self.chance = engine, turns, rows, chance
        self.store = PostgresStore(engine)
        self.id = ""
        self.nodes: dict[str, Node] = {}
        self.leaf: str | None = None
        self.chosen: dict[str | None, str] = {}
        self.ticks: list[Row] = []
        self.removed: set[str] = set()
        self.elsewhere: list[Row] = []
        self.titles: list[str] = []
        self.last = 0

    # What is done

    async def say(self, *, instead_of: Row | None = None, again: bool = False) -> None:
        parent = self.leaf
        beside: Node | None = None
        kept = 0
        if instead_of is not None:
            beside = self._node_of(instead_of)
            parent = beside.parent
            kept = instead_of.seq if again else self._note_of(instead_of).seq - 1
            self.elsewhere = [row for row in self.elsewhere if row.seq <= kept]
        turn = await self.turns.start(
            self._work,
            user_id="alice",
            conversation_id=self.id or None,
            said=None if again else said("say"),
            instead_of=instead_of.id if instead_of else None,
        )
        assert turn.task is not None
        await turn.task
        self.id = turn.run.conversation_id
        run = turn.run.id
        self.nodes[run] = Node(run, parent, beside.id if beside else None, kept)
        self.leaf = self.chosen[parent] = run
        self._take_in()

    async def _work(self, turn: Turn) -> None:
        title = f"task {len(self.titles)}"
        self.titles.append(title)
        items: list[Item] = [spoken("so"), *made(title)]
        if self.chance.random() < 0.3:  # a message that came meanwhile
            items += [history.now_note(utc_now(), "UTC"), said("and"), spoken("well")]
        await self.store.write(turn.run.conversation_id, items, turn.run.acting)

    async def show(self, run: str | None, *, to_its_end: bool) -> None:
        end = run
        while to_its_end and end in self.chosen:
            end = self.chosen[end]
        assert await versions.show(self.engine, self.id, run, user_id="alice", to_its_end=to_its_end) == end
        if end != self.leaf:
            before = {node.id for node in self.path}
            self.leaf = end
            changed = before ^ {node.id for node in self.path}
            first = min(
                row.seq for run in changed for row in self._rows(self.nodes[run]) if row.id == self._message(run)
            )
            self.elsewhere = [row for row in self.elsewhere if row.seq < first]
            for node in self.path:
                self.chosen[node.parent] = node.id
            self.chosen.pop(end, None)
        self._take_in()

    async def tick(self) -> None:
        await self.store.write(self.id, [history.change_by_hand("The person ticked a task.")], ALICE)
        self._take_in()

    async def summarise(self) -> None:
        rows = self.expected()
        first = next(index for index, row in enumerate(rows) if row.run is not None)
        covered = self.chance.choice(rows[first:])
        ended = Acting("alice", self.leaf)
        await self.store.add_summary(self.id, "so far", covers=covered.seq, context=ended)
        self._take_in()

    async def remove(self) -> None:
        row = self.chance.choice([row for row in self.expected() if row.kind == "assistant_message"] or [None])
        if row is not None:
            self.removed.add(row.id)
            await self.store.delete_thread_item(self.id, row.id, ALICE)

    def _take_in(self) -> None:
        found = self.query("SELECT id, seq, kind, run_id, item FROM messages WHERE seq > %s ORDER BY seq", self.last)
        for one in found:
            self.last = one["seq"]
            row = Row(one["id"], one["seq"], one["kind"], one["run_id"])
            if row.kind == "change":
                self.ticks.append(row)
            elif row.run is None and row.kind == "note":
                assert "elsewhere" in one["item"]["content"]
                self.elsewhere.append(row)
            elif row.run is not None:
                self.nodes[row.run].rows.append(row)

    async def at_once(self, count: int) -> None:
        """Do so many things at the same time; each is done whole, or refused."""
        messages = [row.id for row in self.messages()]
        done = await asyncio.gather(*(self._try(messages) for _ in range(count)), return_exceptions=True)
        assert [one for one in done if isinstance(one, BaseException) and not isinstance(one, Busy | NotFound)] == []
        assert not all(isinstance(one, BaseException) for one in done), "one of them was the first"
        self._read_back()

    async def _try(self, messages: list[str]) -> None:
        match self.chance.choice(["say", "edit", "again", "show", "show"]):
            case "show":
                run = self.chance.choice([None, *self.nodes])
                await versions.show(self.engine, self.id, run, user_id="alice", to_its_end=self.chance.random() < 0.5)
            case what:
                beside = self.chance.choice(messages) if messages and what != "say" else None
                text = None if beside and what == "again" else said("say")
                turn = await self.turns.start(
                    self._work, user_id="alice", conversation_id=self.id, said=text, instead_of=beside
                )
                assert turn.task is not None
                await turn.task

    def _read_back(self) -> None:
        """Take the tree as it is, and forget what was expected of it."""
        [self.leaf] = [row["leaf_run_id"] for row in self.query("SELECT leaf_run_id FROM conversations")]
        for row in self.query("SELECT id, parent_run_id, edits_run_id, kept_seq FROM runs"):
            known = self.nodes.get(row["id"])
            rows = known.rows if known else []
            self.nodes[row["id"]] = Node(row["id"], row["parent_run_id"], row["edits_run_id"], row["kept_seq"], rows)
        self._take_in()
        elsewhere = self.query("SELECT id, seq, kind FROM messages WHERE run_id IS NULL AND superseded_by IS NULL")
        self.elsewhere = [Row(**row, run=None) for row in elsewhere]

    # What is meant to be

    @property
    def path(self) -> list[Node]:
        path: list[Node] = []
        run = self.leaf
        while run is not None:
            path.insert(0, self.nodes[run])
            run = path[0].parent
        return path

    def _node_of(self, row: Row) -> Node:
        assert row.run is not None
        [node] = [node for node in self.path if node.parent == self.nodes[row.run].parent]
        return node

    def _note_of(self, message: Row) -> Row:
        assert message.run is not None
        rows = self.nodes[message.run].rows
        note = rows[rows.index(message) - 1]
        assert note.kind == "note"
        return note

    def _rows(self, node: Node, up_to: int = _LATE) -> list[Row]:
        kept = self._rows(self.nodes[node.beside], min(up_to, node.kept or 0)) if node.beside else []
        return [*kept, *(row for row in node.rows if row.seq <= up_to)]

    def expected(self) -> list[Row]:
        """What still counts, in its order."""
        rows = [row for node in self.path for row in self._rows(node)] + self.ticks
        rows += self.elsewhere
        return sorted((row for row in rows if row.id not in self.removed), key=lambda row: row.seq)

    def messages(self) -> list[Row]:
        return [row for row in self.expected() if row.kind == "user_message"]

    async def check(self) -> None:
        expected = self.expected()
        live = self.query("SELECT id, kind FROM messages WHERE superseded_by IS NULL ORDER BY seq")
        assert [row["id"] for row in live] == [row.id for row in expected]
        tree = self.query("SELECT id, parent_run_id, edits_run_id FROM runs ORDER BY id")
        assert {(one["id"], one["parent_run_id"], one["edits_run_id"]) for one in tree} == {
            (node.id, node.parent, node.beside) for node in self.nodes.values()
        }
        assert self.query("SELECT leaf_run_id FROM conversations") == [{"leaf_run_id": self.leaf}]
        await self._check_what_is_shown(expected)
        await self._check_what_is_read(expected)
        self._check_that_the_model_knows_all_that_was_done()

    async def _check_what_is_shown(self, expected: list[Row]) -> None:
        items = (await self.store.load_thread_items(self.id, None, 100, "desc", ALICE)).data
        assert [item.id for item in items] == [row.id for row in expected if row.kind in VISIBLE][::-1][:100]
        told = {item.id: item.versions for item in items if isinstance(item, VersionedMessage)}
        begun = [row["id"] for row in self.query("SELECT id FROM runs ORDER BY started_at, id")]
        for node in self.path:
            runs = [run for run in begun if self.nodes[run].parent == node.parent]
            message = next(row.id for row in self._rows(node)[::-1] if row.id == self._message(node.id))
            if len(runs) == 1 or message not in [item.id for item in items]:
                assert message not in told
                continue
            number = runs.index(node.id)
            version = told.pop(message)
            assert (version.number, version.count) == (number + 1, len(runs))
            assert version.previous == (runs[number - 1] if number else None)
            assert version.next == (runs[number + 1] if number + 1 < len(runs) else None)
        assert told == {}

    def _message(self, run: str) -> str:
        [row] = self.query("SELECT message_id FROM runs WHERE id = %s", run)
        return row["message_id"]

    async def _check_what_is_read(self, expected: list[Row]) -> None:
        covers = self.query(
            "SELECT max((item->'content'->>'covers')::bigint) AS seq FROM messages"
            " WHERE kind = 'summary' AND id = ANY(%s)",
            [row.id for row in expected],
        )[0]["seq"]
        recent = await self.store.history(self.id, ALICE)
        read = [row.id for row in expected if row.kind not in ("summary", "task") and row.seq > (covers or 0)]
        assert [row.id for row in recent.rows] == read
        assert (recent.summary is None) == (covers is None)

    def _check_that_the_model_knows_all_that_was_done(self) -> None:
        live = self.query("SELECT item FROM messages WHERE superseded_by IS NULL AND kind IN ('note', 'tool_calls')")
        known = str([row["item"] for row in live]).replace("\\", "")
        assert [title for title in self.titles if f'"{title}"' not in known] == []


async def step(conversation: Conversation) -> None:
    """Something that a person, or a job beside the turns, may do."""
    chance = conversation.chance
    messages = conversation.messages()
    match chance.choice(["say", "edit", "again", "version", "version", "branch", "tick", "summarise", "remove"]):
        case "edit" if messages:
            await conversation.say(instead_of=chance.choice(messages))
        case "again" if messages:
            await conversation.say(instead_of=chance.choice(messages), again=True)
        case "version" if conversation.nodes:
            await conversation.show(chance.choice(list(conversation.nodes)), to_its_end=True)
        case "branch" if conversation.nodes:
            await conversation.show(chance.choice([None, *conversation.nodes]), to_its_end=False)
        case "tick" if conversation.id:
            await conversation.tick()
        case "summarise" if messages:
            await conversation.summarise()
        case "remove" if conversation.expected():
            await conversation.remove()
        case _:
            await conversation.say()


async def _grow(engine: AsyncEngine, turns: Turns, rows: Rows, *, seed: int, steps: int) -> None:
    conversation = Conversation(engine, turns, rows, random.Random(seed))
    for _ in range(steps):
        await step(conversation)
        await conversation.check()


@pytest.mark.parametrize("seed", range(4))
async def test_after_each_step_one_path_is_shown_and_read(
    engine: AsyncEngine, turns: Turns, rows: Rows, seed: int
) -> None:
    await _grow(engine, turns, rows, seed=seed, steps=40)


async def test_paths_may_part_further_up_than_is_looked_at_first(
    engine: AsyncEngine, turns: Turns, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "_NEAR", 2)
    await _grow(engine, turns, rows, seed=4, steps=40)


@pytest.mark.parametrize("seed", range(2))
async def test_what_happens_at_once_happens_one_after_the_other(
    engine: AsyncEngine, turns: Turns, rows: Rows, seed: int
) -> None:
    conversation = Conversation(engine, turns, rows, random.Random(seed))
    await conversation.say()
    for _ in range(20):
        await conversation.at_once(3)
        await conversation.check()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 124))
async def test_after_each_of_many_steps_one_path_is_shown_and_read(
    engine: AsyncEngine, turns: Turns, rows: Rows, seed: int
) -> None:
    await _grow(engine, turns, rows, seed=seed, steps=48)
