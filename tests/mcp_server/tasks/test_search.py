"""What a query finds, and what is near it where it finds nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import same_examples
from tests.logins import as_admin
from tests.mcp_server.calls import Tools, text
from tests.mcp_server.clock import SUNDAY, Clocked, clocked
from tests.mcp_server.conftest import Rows

TASKS: list[dict[str, Any]] = [
    {"title": "Call Frau Müller", "labels": ["Büro", "home office"]},
    {"title": "call the dentist", "description": "the tooth\nat the back"},
    {"title": "50% off_shoes \\o/"},
    {"title": "ПРИВЕТ Straße", "priority": "high"},
    {"title": "İstanbul \uff12\uff10\uff12\uff16 ﬁlm"},
    {"title": "milk", "due": "2026-11-20", "labels": ["shopping"]},
    {"title": "milk", "due": "2026-12-20", "labels": ["x" * 40, *(f"l{n}" for n in range(9))]},
]


@pytest.fixture
async def sunday(sunday: Clocked) -> Clocked:
    for task in TASKS:
        await sunday.add(**task)
    return sunday


async def found(sunday: Clocked, **wish: Any) -> list[int]:
    page = await sunday.page(**wish)
    assert page.total == len(page.tasks)
    return [task.id for task in page.tasks]


async def test_words_are_found_without_case_and_accents(sunday: Clocked) -> None:
    expected = {
        "muller": [1],
        "MÜLLER call": [1],
        "Mu\u0308ller": [1],
        "call": [1, 2],
        "call dentist": [2],
        "dentist  call\tdentist": [2],
        "BACK tooth": [2],
        "call milk": [],
        "buro": [1],
        "office": [1],
        "büro müller": [1],
        "home office": [1],
        "привет": [4],
        "straße": [4],
        "istanbul 2026 film": [5],
        "il": [5, 6, 7],
        "l8 milk": [7],
        "x" * 40: [7],
    }
    assert {query: await found(sunday, query=query) for query in expected} == expected


async def test_signs_are_taken_literally(sunday: Clocked) -> None:
    expected = {
        "%": [3],
        "_": [3],
        "\\": [3],
        "50%": [3],
        "5_%": [],
        "f_s": [3],
        "\\o/": [3],
        "\uff05": [3],
        "\uff3f": [3],
    }
    expected |= {"'": [], '"': [], "' OR true --": [], "(.*)": [], "{}": [], "$1": [], ":owner": [], "%(owner)s": []}
    assert {query: await found(sunday, query=query) for query in expected} == expected


async def test_with_other_filters_and_over_pages(sunday: Clocked) -> None:
    assert await found(sunday, query="milk", due="overdue") == [6]
    assert await found(sunday, query="milk", label="shopping", order="due") == [6]
    assert await found(sunday, query="straße", priority="high", status="pending") == [4]
    first = await sunday.page(query="l", limit=2, order="priority")
    assert [task.id for task in first.tasks] == [6, 7]
    assert first.total == 5
    second = await sunday.page(query=" l ", limit=9, order="priority", cursor=first.next_cursor)
    assert [task.id for task in second.tasks] == [1, 2, 5]
    with pytest.raises(Exception, match="cursor belongs to a list with status all, query l, order priority"):
        await sunday.page(query="m", order="priority", cursor=first.next_cursor)


async def test_what_is_changed_is_found_as_it_is_now(sunday: Clocked) -> None:
    await sunday.update(2, title="ring the Zahnärztin", add_labels=["ärzte"])
    assert await found(sunday, query="dentist") == []
    assert await found(sunday, query="arzte zahnarztin") == [2]
    await sunday.undo(2)
    assert await found(sunday, query="dentist") == [2]


@pytest.mark.parametrize(
    ("query", "near"),
    [
        ("mlik", ["milk", "milk"]),
        ("dentsit", ["call the dentist"]),
        ("call the dentits", ["call the dentist"]),
        ("mueller", ["Call Frau Müller"]),
        ("MULER", ["Call Frau Müller"]),
        ("приветт", ["ПРИВЕТ Straße"]),
        ("xyzzy", []),
        ("insurance", []),
    ],
)
async def test_what_is_near_where_nothing_is_found(sunday: Clocked, query: str, near: list[str]) -> None:
    page = await sunday.page(query=query)
    assert (page.tasks, page.total, page.next_cursor) == ((), 0, None)
    assert [task.title for task in page.nearest] == near


async def test_near_are_five_at_most_of_the_same_status(sunday: Clocked) -> None:
    await sunday.add("milk 1", also=[f"milk {n}" for n in range(2, 8)])
    assert [task.id for task in (await sunday.page(query="milkk")).nearest] == [6, 7, 8, 9, 10]
    assert (await sunday.page(query="milkk", status="completed")).nearest == ()
    await sunday.complete(6)
    assert [task.id for task in (await sunday.page(query="milkk", status="completed")).nearest] == [6]
    await sunday.delete(7)
    assert [task.id for task in (await sunday.page(query="milkk", status="deleted")).nearest] == [7]
    assert 6 not in [task.id for task in (await sunday.page(query="milkk")).nearest]
    assert (await sunday.page(query="milk", label="nowhere")).nearest[0].id == 8, (
        "which has the word, but not the label"
    )
    assert (await sunday.page(query="milk")).nearest == ()
    assert (await sunday.page(label="nowhere")).nearest == ()


async def test_over_the_wire(tools: Tools, rows: Rows) -> None:
    await tools.call("add_task", title="milk")
    await tools.call("add_task", user_id="bob", title="mlikshake")
    page = await tools.call("list_tasks", query="mlik")
    assert (page["tasks"], page["total"], page["nearest"]) == ([], 0, [{"id": 1, "title": "milk"}])
    said = await tools.client.call_tool_mcp("list_tasks", {"query": "milk"})
    assert "nearest" not in text(said)
    for odd in (" ", "x" * 201, "a " * 21, "a\0b", 5, ["milk"]):
        refused = await tools.refusal("list_tasks", query=odd)
        assert refused == "query must be text to look for, of at most 200 characters and 20 words."
    assert await tools.titles(query="milk " * 20) == ["milk"]


WORST = ["\ufdfa" * 200, "ệ" * 200, "\u0300" * 199 + "a", " ".join("abcdefgh"[n % 8] * 2 for n in range(66)), "x" * 200]


@pytest.mark.long
@pytest.mark.parametrize("query", ["ab " * 19, "q" * 200, "\ufdfa" * 200, "\u0300" * 200])
async def test_nobody_waits_for_anothers_query(database_url: str, query: str) -> None:
    """Whatever the titles are, the event loop of the server goes on."""
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute(
            "INSERT INTO tasks (user_id, id, title) SELECT 'alice', n, (%s::text[])[1 + n %% 5] || '' "
            "FROM generate_series(1, 1000) n",
            [WORST],
        )
    async with clocked(database_url, SUNDAY) as tools:
        await tools.page(query="nothing")
        longest, ended = 0.0, asyncio.Event()

        async def tick() -> None:
            nonlocal longest
            while not ended.is_set():
                before = time.thread_time()  # its own work: other processes may take longer
                await asyncio.sleep(0)
                longest = max(longest, time.thread_time() - before)

        ticking = asyncio.create_task(tick())
        await tools.page(query=query)
        ended.set()
        await ticking
    assert longest < 0.05


FOLDED = st.text(st.sampled_from("aAäÄéß İıΣσςﬁ\uff05%_\\'\"\u0301\u0308яЯё日本\U0001d4b3"), min_size=1, max_size=12)


@pytest.fixture
async def empty(database_url: str) -> AsyncIterator[Clocked]:
    async with clocked(database_url, SUNDAY) as tools:
        yield tools


@same_examples(40)
@given(title=FOLDED, data=st.data())
async def test_each_part_of_a_title_finds_it(
    empty: Clocked, database_url: str, title: str, data: st.DataObject
) -> None:
    if not title.strip():
        return
    first = data.draw(st.integers(0, len(title) - 1))
    part = title[first : data.draw(st.integers(first + 1, len(title)))]
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute("DELETE FROM tasks")
        connection.execute("INSERT INTO tasks (user_id, id, title) VALUES ('alice', 1, %s)", [title])
    for query in {part, part.upper() if part.isascii() else part}:
        if query.split():
            assert [task.id for task in (await empty.page(query=query)).tasks] == [1]
