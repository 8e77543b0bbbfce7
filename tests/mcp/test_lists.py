# ruff: noqa: RUF001 - the letters that look alike are what is tested

"""What list_tasks shows, in which order and on which pages; on a Sunday morning in Berlin."""

import asyncio
import json
from base64 import b64decode, urlsafe_b64encode
from typing import Any

import pytest

from tests.mcp.calls import Tools
from tests.mcp.conftest import NewTools

DUES = [
    None,
    "2026-11-20",
    "2026-11-21 23:59",
    "2026-11-22",
    "2026-11-22 10:00",
    "2026-11-22 13:00",
    "2026-11-23",
    "2026-12-01 00:00",
]


SHOWN = {
    "overdue": DUES[1:3] + DUES[4:5],
    "OVERDUE": DUES[1:3] + DUES[4:5],
    "today": DUES[3:6],
    "Tomorrow": DUES[6:7],
    "Mon 2026-11-23": DUES[6:7],
    " None ": ["None"],
    "any": DUES[1:],
    "2026-11-21..2026-11-22": DUES[2:6],
    "Sat 2026-11-21 .. today": DUES[2:6],
    "..2026-11-21": DUES[1:3],
    "2026-11-23..": DUES[6:],
    "today..today": DUES[3:6],
    "today..tomorrow": DUES[3:7],
    "mon..fri": DUES[6:7],
    "friday": [],
    "Saturday..": DUES[7:],
    "2999-12-31": [],
}


async def test_due(tools: Tools) -> None:
    for each in DUES:
        await tools.add(str(each), due=each)
    for due, shown in SHOWN.items():
        page = await tools.call("list_tasks", due=due)
        assert [task["title"] for task in page["tasks"]] == shown, due
        assert page["total"] == len(shown)
        assert page["time_zone"] == "Europe/Berlin"


async def test_overdue_is_by_the_clock_of_the_user(tools: Tools) -> None:
    for due in ("2026-11-21", "2026-11-22 10:00", "2026-11-22 13:00", "2026-11-22"):
        await tools.add(due, due=due)
    overdue = {
        "Europe/Berlin": ["2026-11-21", "2026-11-22 10:00"],
        "Pacific/Midway": [],  # where it is late on Saturday
        "Pacific/Apia": ["2026-11-21", "2026-11-22 10:00", "2026-11-22 13:00"],  # where it is late on Sunday
    }
    for zone, titles in overdue.items():
        assert await tools.titles(due="overdue", meta={"todo/time_zone": zone}) == titles


async def many(tools: Tools) -> list[dict[str, Any]]:
    """120 tasks with few different dates, priorities and labels, beside some of another user."""
    groups: list[dict[str, Any]] = [
        {"due": "2026-11-21 10:00", "priority": "high", "labels": ["work"]},
        {"due": "2026-11-21"},
        {"due": "2026-11-23", "priority": "low", "labels": ["home", "work"]},
        {"priority": "high", "labels": ["work"]},
        {"due": "2026-11-21 09:00", "priority": "medium"},
        {},
    ]
    for group in groups:
        await tools.add("same", also=["same"] * 19, **group)
    await tools.complete(*range(3, 120, 3))
    return await tools.tasks()


def by_due(task: dict[str, Any]) -> tuple[Any, ...]:
    due = task["due"] or {"date": "~", "time": "~"}
    return due["date"], by_urgency(task), due["time"] or "24:00", task["id"]


def by_urgency(task: dict[str, Any]) -> int:
    return ("high", "medium", "low", None).index(task["priority"])


ORDERS: dict[str, Any] = {
    "created": lambda task: task["id"],
    "due": by_due,
    "priority": lambda task: (by_urgency(task), by_due(task)),
}


FILTERS: list[tuple[dict[str, Any], Any]] = [
    ({}, lambda task: True),
    ({"status": "pending", "label": "#Work"}, lambda task: not task["completed_at"] and "work" in task["labels"]),
    (
        {"due": "2026-11-21..2026-11-22", "priority": "high"},
        lambda task: task["due"] and task["due"]["date"] == "2026-11-21" and task["priority"] == "high",
    ),
    ({"status": "completed"}, lambda task: task["completed_at"]),
    ({"done": "today"}, lambda task: task["completed_at"]),
    ({"due": "none"}, lambda task: task["due"] is None),
    ({"priority": "none", "status": "pending"}, lambda task: not task["completed_at"] and not task["priority"]),
]


async def test_filters_orders_and_pages(tools: Tools, new_tools: NewTools) -> None:
    everything = await many(tools)
    await new_tools().add("same", also=["same"] * 5)
    for filters, holds in FILTERS:
        for order, key in ORDERS.items():
            expected = [task["id"] for task in sorted(filter(holds, everything), key=key)]
            assert len(expected) > 10
            for limit in (7, 50):
                assert await tools.ids(**filters, order=order, limit=limit) == expected, (filters, order, limit)


async def test_order_by_completion(tools: Tools) -> None:
    await tools.add("a", also=["b", "c", "d"])
    for number in (3, 1, 2):
        await tools.complete(number)
    assert await tools.ids(status="completed", order="completed", limit=2) == [2, 1, 3]
    assert await tools.ids(order="completed") == [2, 1, 3, 4]


async def test_sizes_of_pages(tools: Tools) -> None:
    await many(tools)
    wanted: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [50, 50, 20]),
        ({"limit": 100}, [100, 20]),
        ({"status": "completed", "limit": 38}, [38, 1]),
    ]
    for arguments, sizes in wanted:
        cursor, seen = None, []
        while cursor or not seen:
            page = await tools.call("list_tasks", cursor=cursor, **arguments)
            cursor = page["next_cursor"]
            seen.append(len(page["tasks"]))
        assert seen == sizes


@pytest.mark.parametrize("letter", ["x", "\U0001f95b"])
async def test_a_page_of_long_tasks_is_shorter(tools: Tools, letter: str) -> None:
    await tools.add("full", also=["full"] * 50, description=letter * 4000)
    await tools.add("full", also=["full"] * 48, description=letter * 4000)
    page = await tools.call("list_tasks", limit=100)
    assert len(page["tasks"]) < 100
    assert len(json.dumps(page, ensure_ascii=False).encode()) < 100_000
    assert await tools.ids() == [*range(1, 101)]


async def test_changes_between_pages_move_no_other_task(tools: Tools) -> None:
    await tools.add("same", also=["same"] * 50)
    first = await tools.call("list_tasks", limit=20)
    await tools.delete(1, 20, 21, 51)
    await tools.add("new")
    rest = await tools.call("list_tasks", limit=100, cursor=first["next_cursor"])
    assert [task["id"] for task in rest["tasks"]] == [*range(22, 51), 52]


FILTERED: dict[str, Any] = {"status": "pending", "due": "any", "label": "work", "order": "due"}


OTHERS = ({"order": "priority"}, {"status": "all"}, {"due": "today"}, {"label": "home"}, {"done": "today"})


async def test_a_cursor_belongs_to_its_list(tools: Tools) -> None:
    await many(tools)
    cursor = (await tools.call("list_tasks", **FILTERED, limit=3))["next_cursor"]
    for other in OTHERS:
        filters: dict[str, Any] = FILTERED | other
        sentence = await tools.error("list_tasks", **filters, cursor=cursor)
        assert "status pending, due any, label work, order due" in sentence, other
    spelled: dict[str, Any] = FILTERED | {"label": " @WORK ", "due": "ANY"}
    assert (await tools.call("list_tasks", **spelled, limit=3, cursor=cursor))["tasks"]


async def test_a_cursor_shows_nothing_of_its_owner(tools: Tools, new_tools: NewTools) -> None:
    await tools.add("a", also=["b", "c"])
    cursor = (await tools.call("list_tasks", limit=1))["next_cursor"]
    other, nobody = new_tools(), new_tools()
    await other.add("his", also=["too"])
    assert [task["title"] for task in (await other.call("list_tasks", cursor=cursor))["tasks"]] == ["too"]
    page = await nobody.call("list_tasks", cursor=cursor)
    assert (page["tasks"], page["next_cursor"], page["total"]) == ([], None, 0)


FORGED: list[dict[str, Any]] = [
    *[{"urgency": odd} for odd in (10**30, 99_999, -1, "1")],
    *[{"day": odd} for odd in ("2026-W01-1", "20261122", "infinity", "", "٢٠٢٦-11-22")],
    *[{"time": odd} for odd in ("T10:00", "10", "10:00:00+05:00", "24:00", "10:00:00.123456")],
    *[{"after": odd} for odd in (2**63, 0, None)],
    *[{"title": odd} for odd in (5, "x" * 201)],
    *[{"clock": odd} for odd in ("now", 5, "2026-11-22T10:00Z")],
    *[{"v": 3}, {"more": 1}, {"wish": None}, {"wish": {}, "day": 5}, {"wish": {"order": "due", "owner": "bob"}}],
    {"wish": {"label": "a\n\u2028\x1b[31m"}},
]


async def test_a_forged_cursor(tools: Tools) -> None:
    """Odd values of the fields that a cursor has today; whatever fields it has, a changed one opens nothing."""
    await tools.add("a", also=["b", "c"], due="today")
    cursor = (await tools.call("list_tasks", order="due", limit=1))["next_cursor"]
    position = json.loads(b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_"))
    for change in FORGED:
        forged = urlsafe_b64encode(json.dumps(position | change).encode()).rstrip(b"=").decode()
        assert "cursor" in await tools.error("list_tasks", order="due", cursor=forged), change


TASKS: list[dict[str, Any]] = [
    {"title": "Call Frau Müller", "labels": ["Büro", "home office"]},
    {"title": "call the dentist", "description": "the tooth\nat the back"},
    {"title": "50% off_shoes \\o/"},
    {"title": "ПРИВЕТ Straße", "priority": "high"},
    {"title": "İstanbul \uff12\uff10\uff12\uff16 ﬁlm"},
    {"title": "milk", "due": "2026-11-20", "labels": ["shopping"]},
    {"title": "milk", "due": "2026-12-20", "labels": ["x" * 40, *(f"l{n}" for n in range(9))]},
]
WORDS = {
    **{"muller": [1], "MÜLLER call": [1], "Mu\u0308ller": [1], "call": [1, 2], "call dentist": [2]},
    **{"dentist  call\tdentist": [2], "BACK tooth": [2], "call milk": [], "buro": [1], "office": [1]},
    **{"büro müller": [1], "home office": [1], "привет": [4], "straße": [4], "istanbul 2026 film": [5]},
    **{"il": [5, 6, 7], "l8 milk": [7], "x" * 40: [7], "milk " * 20: [6, 7]},
}
SIGNS = {
    **{"%": [3], "_": [3], "\\": [3], "50%": [3], "5_%": [], "f_s": [3], "\\o/": [3], "\uff05": [3], "\uff3f": [3]},
    **{sign: [] for sign in ("'", '"', "' OR true --", "(.*)", "{}", "$1", ":owner", "%(owner)s", "[]")},
}
NEAR = {
    **{"mlik": ["milk", "milk"], "dentsit": ["call the dentist"], "call the dentits": ["call the dentist"]},
    **{"mueller": ["Call Frau Müller"], "MULER": ["Call Frau Müller"], "приветт": ["ПРИВЕТ Straße"]},
    **{"xyzzy": [], "insurance": []},
}


@pytest.fixture
async def searched(tools: Tools) -> Tools:
    for task in TASKS:
        await tools.add(**task)
    return tools


async def test_search(searched: Tools) -> None:
    expected = WORDS | SIGNS
    assert {query: await searched.ids(query=query) for query in expected} == expected
    assert "nearest" not in await searched.text("list_tasks", query="milk")


async def test_what_is_near_where_nothing_is_found(searched: Tools, new_tools: NewTools) -> None:
    await new_tools().add("mlikshake")
    for query, titles in NEAR.items():
        page = await searched.call("list_tasks", query=query)
        assert (page["tasks"], page["total"], page["next_cursor"]) == ([], 0, None)
        assert [task["title"] for task in page["nearest"]] == titles


async def test_near_are_five_of_the_same_status(tools: Tools) -> None:
    async def near(**filters: Any) -> list[int]:
        return [task["id"] for task in (await tools.call("list_tasks", **filters))["nearest"]]

    await tools.add("milk 1", also=[f"milk {n}" for n in range(2, 8)])
    assert await near(query="milkk") == [1, 2, 3, 4, 5]
    assert await near(query="milkk", status="completed") == []
    await tools.complete(6)
    await tools.delete(7)
    assert await near(query="milkk", status="completed") == [6]
    assert await near(query="milkk", status="deleted") == [7]
    assert await near(query="milk", label="nowhere") == [1, 2, 3, 4, 5]
    assert await near(query="milk") == await near(label="nowhere") == []


async def test_search_with_other_filters(searched: Tools) -> None:
    assert await searched.ids(query="milk", due="overdue") == [6]
    assert await searched.ids(query="milk", label="shopping", order="due") == [6]
    assert await searched.ids(query="straße", priority="high", status="pending") == [4]
    assert await searched.ids(query="l", limit=2, order="priority") == [6, 7, 1, 2, 5]


async def test_search_finds_a_task_as_it_is_now(searched: Tools) -> None:
    await searched.update(2, title="ring the Zahnärztin", add_labels=["ärzte"])
    assert (await searched.ids(query="dentist"), await searched.ids(query="arzte zahnarztin")) == ([], [2])
    await searched.undo(2)
    assert await searched.ids(query="dentist") == [2]


async def test_deleted_tasks_as_they_were_the_last_first(tools: Tools) -> None:
    details = {"description": "all", "priority": "high", "due": "2026-11-28 09:00", "labels": ["home"]}
    water = await tools.add("water", **details, repeat="FREQ=DAILY")
    await tools.add("milk", also=["bread", "eggs"])
    await tools.complete(4)
    for number in (2, 1, 4):
        await tools.delete(number)
    deleted = await tools.tasks(status="deleted")
    assert [(task["id"], task["status"], task["deleted"]) for task in deleted] == [
        (4, "completed", True),
        (1, "pending", True),
        (2, "pending", True),
    ]
    gone = {"deleted": True, "deleted_at": deleted[1]["deleted_at"]}
    assert deleted[1] == {name: value for name, value in water.items() if name in deleted[1]} | gone
    assert await tools.ids() == [3]


async def test_restored_tasks_are_not_deleted_ones(tools: Tools) -> None:
    await tools.add("a", also=["b", "c", "d"])
    await tools.delete(1, 2)
    await tools.undo(1)
    assert await tools.ids(status="deleted") == [2]
    await tools.delete(1)
    await tools.delete(3, meta={"todo/batch": "run"})
    await tools.undo_batch("run")
    await tools.undo(4)  # its adding
    assert await tools.ids(status="deleted") == [1, 2]


async def test_filters_of_deleted_tasks(tools: Tools) -> None:
    await tools.add("Müllers dentist", due="2026-11-20", labels=["health", "büro"], priority="low")
    await tools.add("dentist", due="2026-11-29")
    await tools.add("milk")
    await tools.complete(3)
    await tools.delete(1)
    await tools.delete(2, 3)
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({"query": "muller DENTIST"}, [1]),
        ({"query": "buro"}, [1]),
        ({"query": "dentist"}, [2, 1]),
        ({"due": "overdue"}, [1]),
        ({"due": "none"}, [3]),
        ({"label": "Büro"}, [1]),
        ({"priority": "low"}, [1]),
        ({"priority": "none", "order": "due"}, [2, 3]),
        ({"done": "today"}, [3]),
        ({"order": "due", "limit": 1}, [1, 2, 3]),
        ({"order": "priority", "limit": 2}, [1, 2, 3]),
        ({"limit": 1}, [3, 2, 1]),
    ]
    assert [(filters, await tools.ids(status="deleted", **filters)) for filters, _ in expected] == expected


async def test_lists_at_the_same_time(tools: Tools) -> None:
    await tools.add("a", also=["b", "c"])
    lists = await asyncio.gather(*(tools.tasks() for _ in range(20)))
    assert all(tasks == lists[0] for tasks in lists)


ALIKE = [
    *[("Mum’s cake", "mum's"), ("Mum's cake", "mum’s"), ("Łódź trip", "lodz"), ("lodz", "ŁÓDŹ")],
    *[("Straße fegen", "strasse"), ("STRASSE", "straße"), ("GROẞ", "gross"), ("Đakovo", "dakovo"), ("Ærø", "aero")],
    *[("Smørrebrød", "smorrebrod"), ("Þór", "thor"), ("œuvre", "oeuvre"), ("Iğdır", "igdir"), ("Zürich", "zurich")],
    *[("ΟΔΟΣ", "οδος"), ("οδός", "ΟΔΟΣ"), ("σεισμός", "σεισμοσ"), ("ｶﾀｶﾅ", "カタカナ"), ("Ёлка", "елка")],
    *[("كِتَابٌ", "كتاب"), ("كتاب", "كِتَاب"), ("كـــتاب", "كتاب"), ("أحمد", "احمد")],
    *[("שָׁלוֹם", "שלום"), ("שלום", "שָׁלוֹם"), ("בן־גוריון", "בן-גוריון")],
    *[("e‑mail", "e-mail"), ("e-mail", "e–mail"), ("Jean—Luc", "jean-luc"), ("O’Brien", "o'brien")],
    *[("e-mail", "email"), ("email", "e-mail"), ("O'Brien", "obrien"), ("don’t", "dont"), ("co‑op", "coop")],
    *[("a - b", "-"), ("it's", "'"), ("e-mail - now", "email -")],
]
APART = [("für", "fuer"), ("a b", "-"), ("don", "don't"), ("हिन्दी", "हन्द"), ("ŋ", "n")]


async def test_search_takes_equivalent_letters_for_the_same(tools: Tools) -> None:
    pairs = [*ALIKE, *APART]
    for start in range(0, len(pairs), 20):
        first, *also = [title for title, _ in pairs[start : start + 20]]
        await tools.add(first, also=also)
    found = [(title, query) for nth, (title, query) in enumerate(pairs, 1) if nth in await tools.ids(query=query)]
    assert found == ALIKE
    for number in range(1, len(pairs) + 1):
        await tools.delete(number)
    deleted = {task["title"] for task in (await tools.call("list_tasks", status="deleted", query="lodz"))["tasks"]}
    assert deleted == {"Łódź trip", "lodz"}
