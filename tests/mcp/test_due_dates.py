"""Due dates, priorities and labels as the tools take and show them, on a Sunday in Berlin."""

from datetime import date, timedelta
from typing import Any

import pytest

from tests.mcp.calls import Tools
from tests.mcp.conftest import NewTools


@pytest.mark.parametrize("due", ["Thu 2026-11-27", "next", "x" * 301, "\0"])
async def test_a_date_that_cannot_be_read(tools: Tools, due: str) -> None:
    """All others are in tests/unit/test_dates.py, as are those that can be read."""
    await tools.add("milk", due="2998-12-31")
    before = await tools.state()
    await tools.error("update_task", task_id=1, title="bread", due=due)
    await tools.error("add_task", title="bread", due=due)
    assert await tools.state() == before


@pytest.mark.parametrize(
    ("before", "due", "shown"),
    [
        (None, "Fri 2026-11-27", "Fri 2026-11-27"),
        (None, "2026-11-27T15:00:00Z", "Fri 2026-11-27 16:00"),
        (None, "tomorrow 15:00", "Mon 2026-11-23 15:00"),
        (None, "09:00", "Mon 2026-11-23 09:00"),
        (None, "2026-11-22T23:30Z", "Mon 2026-11-23 00:30"),
        (None, "none", None),
        (None, "", None),
        (None, None, None),
        ("2026-11-27 15:00", "2026-11-30", "Mon 2026-11-30 15:00"),
        ("2026-11-27 15:00", "2026-11-30 all day", "Mon 2026-11-30"),
        ("2026-11-10 08:00", "+1w", "Sun 2026-11-29 08:00"),
        ("2026-11-27 15:00", "none", None),
        ("2026-11-27 15:00", "", "Fri 2026-11-27 15:00"),
    ],
)
async def test_a_date_is_read(tools: Tools, before: str | None, due: str | None, shown: str | None) -> None:
    if before is None:
        assert (await tools.add("milk", due=due))["due"] == shown
    else:
        await tools.add("milk", due=before)
        assert (await tools.update(1, due=due, title="oat milk"))["due"] == shown
    assert [task["due"] for task in await tools.tasks()] == [shown]


async def test_the_zone_of_a_call_is_kept_for_calls_without_one(tools: Tools, new_tools: NewTools) -> None:
    kiritimati, instant = {"todo/time_zone": "Pacific/Kiritimati"}, "2026-11-27T12:00:00Z"
    assert (await tools.add("milk", due=instant))["due"] == "Fri 2026-11-27 13:00"
    assert (await tools.add("bread", due=instant, meta=kiritimati))["due"] == "Sat 2026-11-28 02:00"
    for unknown in ({}, {"todo/time_zone": "Mars/Olympus"}, {"todo/time_zone": "../../etc/passwd"}):
        assert (await tools.call("list_tasks", meta=unknown))["time_zone"] == "Pacific/Kiritimati"
        assert (await tools.add("eggs", due=instant, meta=unknown))["due"] == "Sat 2026-11-28 02:00"
    assert (await new_tools().call("list_tasks"))["time_zone"] == "Europe/Berlin"


@pytest.mark.parametrize("zone", ["Pacific/Apia", "Pacific/Midway"])
async def test_today_is_the_user_s_own(tools: Tools, zone: str) -> None:
    today = (await tools.call("list_tasks", meta={"todo/time_zone": zone}))["now"].split()[1]
    assert today == {"Pacific/Apia": "2026-11-22", "Pacific/Midway": "2026-11-21"}[zone]
    assert (await tools.add("milk", due="today"))["due"].split()[1] == today
    tomorrow = (await tools.add("bread", due="tomorrow"))["due"].split()[1]
    assert date.fromisoformat(tomorrow) == date.fromisoformat(today) + timedelta(days=1)


async def test_priority(tools: Tools) -> None:
    assert (await tools.add("milk", priority="high"))["priority"] == "high"
    for wanted, shown in (("low", "low"), (None, "low"), ("", "low"), ("none", None), ("medium", "medium")):
        assert (await tools.update(1, title="milk", priority=wanted))["priority"] == shown


LABELS: list[tuple[dict[str, Any], list[str]]] = [
    # one after the other
    ({"add_labels": ["Home", "work"], "remove_labels": ["CAFÉ", "no such"]}, ["deep work", "home", "work"]),
    ({"labels": ["x"], "add_labels": ["y"]}, ["x", "y"]),
    ({"labels": '["z"]'}, ["z"]),
    ({"remove_labels": ["z"]}, []),
    ({"add_labels": ["a", "b"]}, ["a", "b"]),
    ({"labels": [], "title": "x"}, ["a", "b"]),
    ({"remove_labels": ["*"], "add_labels": ["c"]}, ["c"]),
    ({"remove_labels": ["*"]}, []),
    ({"labels": ["#" + "x" * 40]}, ["x" * 40]),
]


async def test_labels(tools: Tools) -> None:
    spelled = ["#Work", "@work", " WORK ", "wo\u200brk", "# work", "cafe\u0301", "deep   work"]
    assert (await tools.add("milk", labels=spelled))["labels"] == ["café", "deep work", "work"]
    for change, labels in LABELS:
        assert (await tools.update(1, **change))["labels"] == labels
