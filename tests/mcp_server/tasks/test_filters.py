"""What list_tasks shows of a person's tasks, and in which order."""

from typing import Any

import psycopg
import pytest

from tests.logins import as_admin
from tests.mcp_server.calls import Tools
from tests.mcp_server.clock import Clocked, clocked
from tests.mcp_server.conftest import Rows
from tests.mcp_server.tasks.states import forged, position_of

UNKNOWN = "cursor is none that list_tasks has returned: call list_tasks without cursor to get the first page."
DUES = [
    None,
    "2026-11-20",
    "2026-11-21 23:59",
    "2026-11-22",
    "2026-11-22 10:00",
    "2026-11-22 10:54",
    "2026-11-22 11:00",
    "2026-11-23",
    "2026-12-01 00:00",
]


@pytest.fixture
async def sunday(sunday: Clocked) -> Clocked:
    """With a task for each date; their titles are their dates."""
    for due in DUES:
        await sunday.add(str(due), due=due)
    return sunday


@pytest.mark.parametrize(
    ("due", "shown"),
    [
        ("overdue", DUES[1:3] + DUES[4:5]),
        ("today", DUES[3:7]),
        ("tomorrow", DUES[7:8]),
        ("Mon 2026-11-23", DUES[7:8]),
        ("none", ["None"]),
        ("any", DUES[1:]),
        ("2026-11-21..2026-11-22", DUES[2:7]),
        ("..2026-11-21", DUES[1:3]),
        ("2026-11-23..", DUES[7:]),
        ("today..tomorrow", DUES[3:8]),
        ("Saturday..", DUES[8:]),
        ("2999-12-31", []),
    ],
)
async def test_days_that_are_due(sunday: Clocked, due: str, shown: list[str]) -> None:
    page = await sunday.page(due=due)
    assert [task.title for task in page.tasks] == shown
    assert page.total == len(shown)
    assert (page.now, page.time_zone) == ("Sun 2026-11-22 10:54", "Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "zone", "overdue"),
    [
        ("2026-11-22T23:59:59+13:00", "Pacific/Apia", DUES[1:3] + DUES[4:7]),
        ("2026-11-23T00:01:00+13:00", "Pacific/Apia", DUES[1:7]),
        ("2026-11-22T23:59:59-10:00", "Pacific/Honolulu", DUES[1:3] + DUES[4:7]),
        ("2026-11-23T00:01:00-10:00", "Pacific/Honolulu", DUES[1:7]),
        ("2026-11-22T10:00:00-10:00", "Pacific/Honolulu", DUES[1:3]),
        ("2026-11-22T10:00:01-10:00", "Pacific/Honolulu", DUES[1:3] + DUES[4:5]),
    ],
)
async def test_overdue_is_by_the_person_s_clock(sunday: Clocked, now: str, zone: str, overdue: list[str]) -> None:
    sunday.now, sunday.zone = now, zone
    assert await sunday.titles(due="overdue") == overdue


@pytest.mark.parametrize(
    ("zone", "day", "first", "last"),
    [
        ("Europe/Berlin", "2027-03-28", "2027-03-27T23:00:00Z", "2027-03-28T21:59:59Z"),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"),
        ("Pacific/Apia", "2026-11-22", "2026-11-21T11:00:00Z", "2026-11-22T10:59:59Z"),
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "2026-04-24T20:59:59Z"),
    ],
)
async def test_done_days_are_as_long_as_they_are(database_url: str, zone: str, day: str, first: str, last: str) -> None:
    async with clocked(database_url, first, zone=zone) as tools:
        with psycopg.connect(as_admin(database_url)) as connection:
            for number, (moment, shift) in enumerate([(first, -1), (first, 0), (last, 0), (last, 1)], start=1):
                connection.execute(
                    "INSERT INTO tasks (user_id, id, title, status, completed_at) "
                    "VALUES ('alice', %s, %s, 'completed', %s::timestamptz + %s * interval '1 second')",
                    [number, str(number), moment, shift],
                )
        assert await tools.titles(done=day) == ["2", "3"]
        assert await tools.titles(done=f"..{day}", status="completed") == ["1", "2", "3"]
        assert await tools.titles(done=f"{day}..") == ["2", "3", "4"]
        assert await tools.titles(done=day, status="pending") == []


@pytest.fixture
def many(database_url: str) -> None:
    """300 tasks of local with few different dates, priorities and labels, beside as many of bob."""
    with psycopg.connect(as_admin(database_url)) as connection:
        connection.execute(
            "INSERT INTO tasks (user_id, id, title, status, completed_at, due_on, due_time, priority, labels)"
            " SELECT owner, n, 'same', (ARRAY['pending', 'completed'])[1 + n % 2],"
            " CASE WHEN n % 4 = 1 THEN timestamptz '2026-11-22 10:00:00.123456Z' - n % 7 * interval '1 hour' END,"
            " CASE WHEN n % 5 > 0 THEN date '2026-11-20' + n % 5 END,"
            " CASE WHEN n % 5 > 0 AND n % 3 > 0 THEN time '09:00' + n % 3 * interval '1 hour' END,"
            " nullif(n % 4, 0), (ARRAY['{}', '{work}', '{home,work}'])[1 + n % 3]::text[]"
            " FROM generate_series(1, 300) AS n, (VALUES ('local'), ('bob')) AS people (owner)"
        )


DUE_ORDER = "coalesce(due_on, 'infinity'), coalesce(due_time, '24:00'), id"
ORDERS = {
    "created": "id",
    "due": DUE_ORDER,
    "priority": f"coalesce(priority, 4), {DUE_ORDER}",
    "completed": "coalesce(completed_at, '-infinity') DESC, id DESC",
}


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("wish", "condition"),
    [
        ({}, "true"),
        ({"status": "pending", "label": "#Work"}, "status = 'pending' AND labels @> '{work}'"),
        ({"due": "2026-11-21..2026-11-23", "priority": "high"}, "due_on < '2026-11-24' AND priority = 1"),
        ({"status": "completed"}, "status = 'completed'"),
        ({"due": "none"}, "due_on IS NULL"),
        ({"priority": "none", "status": "pending"}, "priority IS NULL AND status = 'pending'"),
    ],
)
async def test_all_pages_together_are_the_list(
    tools: Tools, rows: Rows, order: str, wish: dict[str, Any], condition: str
) -> None:
    statement = f"SELECT id FROM tasks WHERE user_id = 'local' AND {condition} ORDER BY {ORDERS[order]}"
    whole = [row["id"] for row in rows(statement)]
    assert len(whole) > 20
    seen: list[int] = []
    cursor = None
    while cursor or not seen:
        page = await tools.call("list_tasks", **wish, order=order, limit=37, cursor=cursor)
        assert page["total"] == len(whole)
        seen += [task["id"] for task in page["tasks"]]
        cursor = page["next_cursor"]
    assert seen == whole


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "other", [{}, {"order": "priority"}, {"status": "all"}, {"due": "today"}, {"label": "home"}, {"done": "today"}]
)
async def test_a_cursor_of_another_list(tools: Tools, other: dict[str, Any]) -> None:
    wish: dict[str, Any] = {"status": "pending", "due": "any", "label": "work", "order": "due"}
    cursor = (await tools.call("list_tasks", **wish, limit=3))["next_cursor"]
    assert await tools.refusal("list_tasks", **(wish | other if other else {}), cursor=cursor) == (
        "cursor belongs to a list with status pending, due any, label work, order due: "
        "call list_tasks with that and nothing else, or without cursor."
    )
    same: dict[str, Any] = wish | {"label": " @WORK ", "due": "ANY"}
    assert len((await tools.call("list_tasks", **same, cursor=cursor))["tasks"]) == 50


@pytest.mark.usefixtures("many")
async def test_the_longest_wish_has_pages(tools: Tools, rows: Rows) -> None:
    label = "\U0001f95b" * 40
    rows("UPDATE tasks SET labels = %s, status = 'completed', completed_at = now() RETURNING id", [label])
    rows("UPDATE tasks SET title = repeat(%s, 200) RETURNING id", label[0])
    wish: dict[str, Any] = {"status": "completed", "label": label, "due": "2026-11-21" + " " * 70 + "..2026-11-29"}
    wish |= {"done": "Thu 1970-01-01..Tue 2999-12-31", "order": "priority", "priority": "high"}
    wish["query"] = label[0] * 200
    page = await tools.call("list_tasks", **wish, limit=2)
    second = await tools.call("list_tasks", **wish, limit=2, cursor=page["next_cursor"])
    assert len(second["tasks"]) == 2


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "odd",
    [
        {"urgency": 10**30},
        {"urgency": 99_999},
        {"urgency": -1},
        {"urgency": "1"},
        {"day": "2026-W01-1"},
        {"day": "20261122"},
        {"day": "infinity"},
        {"day": ""},
        {"day": "٢٠٢٦-11-22"},
        {"time": "T10:00"},
        {"time": "10"},
        {"time": "10:00:00+05:00"},
        {"time": "24:00"},
        {"time": "10:00:00.123456"},
        {"after": 2**63},
        {"after": 0},
        {"after": None},
        {"v": 1},
        {"more": 1},
        {"wish": {}, "day": 5},
        {"wish": {"order": "due", "owner": "bob"}},
        {"wish": None},
        {"wish": {"order": "due"}, "moment": "2026-11-22T10:00:00"},
    ],
)
async def test_a_forged_cursor(tools: Tools, odd: dict[str, Any]) -> None:
    cursor = (await tools.call("list_tasks", order="due", limit=3))["next_cursor"]
    assert await tools.refusal("list_tasks", order="due", cursor=forged(position_of(cursor) | odd)) == UNKNOWN


@pytest.mark.usefixtures("many")
async def test_a_forged_wish_is_quoted_on_one_line(tools: Tools) -> None:
    sentence = await tools.refusal("list_tasks", cursor=forged({"wish": {"label": "a\n\u2028\x1b[31m"}, "after": 1}))
    assert sentence == UNKNOWN or sentence.isprintable()


@pytest.mark.parametrize("cursor", ["[[[[" * 100, forged([]), forged("x"), "e30", "e30=", "\u00e9", "%00"])
async def test_what_is_no_cursor(tools: Tools, cursor: str) -> None:
    assert await tools.refusal("list_tasks", cursor=cursor) == UNKNOWN


RANGE = "is not understood: write overdue, none, any, a day (Fri 2026-11-27, today, tomorrow, Friday), or two days"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"due": "soon"}, f'due "soon" {RANGE}'),
        ({"due": ".."}, f'due ".." {RANGE}'),
        ({"due": "+1w"}, f'due "+1w" {RANGE}'),
        ({"due": "2026-11-29..2026-11-23"}, "ends before it begins: write the earlier day first."),
        ({"due": "Mon 2026-11-22"}, "2026-11-22 is no Monday: write Sun 2026-11-22 or Mon 2026-11-23"),
        ({"done": "any"}, 'done "any" is not understood: write a day'),
        ({"done": "2026-02-30"}, "2026-02-30 is no day of the calendar"),
        ({"label": "x" * 41}, "A label must have 1 to 40 characters"),
        ({"label": "#"}, "A label must have 1 to 40 characters"),
        ({"label": ["work"]}, "label must be one label."),
        ({"priority": "urgent"}, "priority must be high, medium, low or none."),
        ({"order": "title"}, "order must be created, due, priority or completed."),
        ({"due": 5}, "due must be overdue, today, none, any, a day, or a range"),
    ],
)
async def test_filters_that_are_none(tools: Tools, arguments: dict[str, Any], sentence: str) -> None:
    assert sentence in await tools.refusal("list_tasks", **arguments)


async def test_filters_that_are_nothing(tools: Tools) -> None:
    await tools.call("add_task", title="bread")
    for nothing in (None, "", "null"):
        wish = dict.fromkeys(
            ("status", "query", "due", "done", "label", "priority", "order", "cursor", "limit"), nothing
        )
        assert await tools.titles(**wish) == ["bread"]
