"""The pages of the page's list, the numbers of its sections and views; on a Sunday morning in Berlin."""

from datetime import date, timedelta
from typing import Any

import pytest

from tests.mcp.calls import Tools
from tests.mcp.conftest import Limited, NewTools
from tests.support.stored import Stored

TODAY = "2026-11-22"
ACCENTED = ["łódź", "Zebra", "élan", "apple", "Éclair", "Straße", "strasse 2", "10", "apple"]


def signed(tools: Tools) -> dict[str, str]:
    return {"Authorization": f"Bearer {tools.token}"}


async def read(tools: Tools, path: str, **params: Any) -> dict[str, Any]:
    answer = await tools.http.get(path, params=params, headers=signed(tools))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def read_view(tools: Tools, view: str, **params: Any) -> tuple[list[str], dict[str, int]]:
    page = await read(tools, "/list", view=view, **params)
    sections = {section["key"]: section["count"] for section in page["sections"]}
    assert page["total"] == sum(sections.values())
    return [task["title"] for task in page["tasks"]], sections


async def add_each(tools: Tools, **fields: list[Any]) -> None:
    for title, *values in zip(*fields.values(), strict=True):
        await tools.add(title, **dict(zip([*fields][1:], values, strict=True)))


async def add_dated(tools: Tools) -> None:
    """Named by their places in the order of the page."""
    tasks: list[tuple[str, str | None, str | None]] = [
        ("12", None, None),
        ("8", TODAY, None),
        ("2", "2026-11-21", None),
        ("4", f"{TODAY} 09:00", "low"),
        ("9", "2026-11-23", "low"),
        ("6", f"{TODAY} 23:00", "low"),
        ("1", "2026-11-21 23:00", "high"),
        ("3", f"{TODAY} 10:00", "medium"),
        ("11", None, "low"),
        ("5", TODAY, "high"),
        ("10", "2026-12-24 10:00", None),
        ("7", f"{TODAY} 22:00", None),
    ]
    for title, due, priority in tasks:
        await tools.add(title, due=due, priority=priority)


async def test_views_in_the_order_of_their_sections(tools: Tools, new_tools: NewTools) -> None:
    """What is overdue today comes before the rest of the day; then by day, priority, time, and the order added."""
    await add_dated(tools)
    await new_tools().add("another user's", due=TODAY)
    everything = [str(number) for number in range(1, 13)]
    assert await read_view(tools, "all") == (everything, {"overdue": 4, "today": 4, "coming": 2, "undated": 2})
    assert await read_view(tools, "today") == (everything[:8], {"overdue": 4, "today": 4})
    assert await read_view(tools, "upcoming") == (everything[8:10], {"2026-11-23": 1, "2026-12-24": 1})
    assert await tools.titles(order="due", due="today") == ["5", "3", "4", "6", "7", "8"], "a model has no sections"


@pytest.mark.parametrize("limit", [1, 5])
async def test_pages_go_on_after_a_cursor_or_an_offset(tools: Tools, limit: int) -> None:
    await add_dated(tools)
    for view, sort in [(view, sort) for view in ("all", "done", "deleted") for sort in SORTS]:
        if view == "done":
            await tools.complete(*range(1, 13))
        elif view == "deleted" and await tools.ids():
            await tools.delete(*range(1, 13))
        whole, sections = await read_view(tools, view, sort=sort)
        assert len(whole) == 12
        by_offset, by_cursor, cursor = list[str](), list[str](), dict[str, str]()
        while len(by_cursor) < 12:
            by_offset += (await read_view(tools, view, sort=sort, limit=limit, offset=len(by_offset)))[0]
            page = await read(tools, "/list", view=view, sort=sort, limit=limit, **cursor)
            assert {section["key"]: section["count"] for section in page["sections"]} == sections
            by_cursor += [task["title"] for task in page["tasks"]]
            cursor = {"cursor": page["next_cursor"]}
        assert (by_offset, by_cursor, cursor["cursor"]) == (whole, whole, None), (view, sort)
    assert await read_view(tools, "deleted", offset=12) == ([], {TODAY: 12})


SORTS = ("date", "priority", "title", "added")


async def test_sorted_by_what_the_user_chooses(tools: Tools) -> None:
    await add_each(
        tools,
        title=["b", "C", "a", "d"],
        due=["tomorrow", "none", "+2d", "none"],
        priority=["none", "high", "low", "high"],
    )
    expected = {"date": "baCd", "priority": "Cdab", "title": "abCd", "added": "daCb"}
    assert {sort: "".join((await read_view(tools, "all", sort=sort))[0]) for sort in SORTS} == expected
    assert await read_view(tools, "all", sort="title") == ([*"abCd"], {"all": 4})
    await tools.complete(3, 1, 2, 4)
    await tools.delete(4)
    await tools.delete(1)
    expected = {"date": "aC", "priority": "Ca", "title": "aC", "added": "aC"}
    assert {sort: "".join((await read_view(tools, "done", sort=sort))[0]) for sort in SORTS} == expected
    expected = {"date": "bd", "priority": "db", "title": "bd", "added": "db"}
    assert {sort: "".join((await read_view(tools, "deleted", sort=sort))[0]) for sort in SORTS} == expected


async def test_titles_are_sorted_without_case_and_accents(tools: Tools) -> None:
    for title in ACCENTED:
        await tools.add(title)
    titles = ["10", "apple", "apple", "Éclair", "élan", "łódź", "Straße", "strasse 2", "Zebra"]
    assert (await read_view(tools, "all", sort="title"))[0] == titles
    page = await read(tools, "/list", view="all", sort="title", limit=2)
    assert [task["id"] for task in page["tasks"]] == [8, 4], "equal titles in the order of their addition"


async def test_overdue_is_by_the_minute_of_the_user(tools: Tools) -> None:
    await add_each(tools, title=["a", "b"], due=["2026-11-22 10:00", "2026-11-22 12:30"])
    for zone, overdue in (("Europe/Berlin", 1), ("Pacific/Midway", 0), ("Pacific/Apia", 2)):
        counts = await read(tools, "/counts", time_zone=zone)
        assert (counts["overdue"], zone) == (overdue, zone)
        _, sections = await read_view(tools, "all", time_zone=zone)
        assert sections.get("overdue", 0) == overdue


async def test_pages_stay_in_order_while_time_goes_on(limited: Limited) -> None:
    """A task whose time passes between two pages would else be on neither."""
    cursors, token = dict[str, str](), ""
    for now in ("2026-11-22T09:59:00+01:00", "2026-11-22T10:01:00+01:00"):
        async with limited(now=now, time_zone="Europe/Berlin") as tools:
            if not token:
                await add_each(
                    tools, title=["a", "b", "c"], due=["today", "today 10:00", "today"], priority=["high", "low", "low"]
                )
                page = await read(tools, "/list", view="today", limit=1)
                token, cursors = tools.token, {"cursor": page["next_cursor"]}
                assert [task["title"] for task in page["tasks"]] == ["a"]
            else:
                tools.token = token
                titles, sections = await read_view(tools, "today", **cursors)
                assert (titles, sections) == (["b", "c"], {"overdue": 1, "today": 2})
                assert (await read_view(tools, "today"))[0] == ["b", "a", "c"]


async def test_days_of_completion_are_those_of_the_user(tools: Tools, stored: Stored) -> None:
    moments = ("2026-10-24T21:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z")
    await tools.add("a", also=["b", "c", "d"])
    await tools.complete(1, 2, 3, 4)
    for number, moment in enumerate(moments, start=1):
        stored.set_completion(tools.user, number, moment)
    days = {"2026-10-26": 1, "2026-10-25": 2, "2026-10-24": 1}
    titles, sections = await read_view(tools, "done", time_zone="Europe/Berlin")
    assert (titles, [*sections.items()]) == ([*"dcba"], [*days.items()])
    assert (await read_view(tools, "done", time_zone="Asia/Kathmandu"))[1] == {**{"2026-10-26": 2, "2026-10-25": 2}}
    await tools.delete(1, 2)
    assert (await read_view(tools, "deleted", time_zone="Europe/Berlin"))[1] == {TODAY: 2}


async def test_filters_count_in_sections(tools: Tools) -> None:
    await add_dated(tools)
    await tools.update(1, labels=["home"])
    assert await read_view(tools, "all", label="home") == (["12"], {"undated": 1})
    assert await read_view(tools, "all", priority="low") == (
        ["4", "6", "9", "11"],
        {**{"overdue": 1, "today": 1, "coming": 1, "undated": 1}},
    )
    assert await read_view(tools, "all", query="1", sort="added") == (["10", "11", "1", "12"], {"all": 4})


async def test_search_for_a_label(tools: Tools) -> None:
    """Unlike "home", "#home" finds neither titles nor other labels that begin with it."""
    await tools.add("clean", labels=["home"])
    await tools.add("paint", labels=["home", "büro"])
    await tools.add("read", labels=["homework"])
    await tools.add("drive home, see docs/#home and issue #12")
    found = {
        **{"#home": ["clean", "paint"], "#Home": ["clean", "paint"]},
        **{"paint #home": ["paint"], "#home clean": ["clean"]},
        **{"#home #büro": ["paint"], "#hom": [], "#nowhere": [], "#home #nowhere": []},
        **{"#12": ["drive home, see docs/#home and issue #12"], "#": ["drive home, see docs/#home and issue #12"]},
    }
    assert {query: (await read_view(tools, "all", query=query))[0] for query in found} == found
    assert (await read_view(tools, "all", query="#home", label="büro"))[0] == ["paint"]
    first = await read(tools, "/list", view="all", query="#home", limit=1)
    following = await read(tools, "/list", view="all", query="#home", limit=1, cursor=first["next_cursor"])
    assert [task["title"] for page in (first, following) for task in page["tasks"]] == ["clean", "paint"]


async def test_counts_of_views_and_labels(tools: Tools, new_tools: NewTools) -> None:
    other = new_tools()
    await other.add("his", due=TODAY, labels=["home"])
    empty = {"today": 0, "overdue": 0, "upcoming": 0, "all": 0, "done": 0, "deleted": 0}
    assert await read(tools, "/counts") == empty | {"labels": []}
    await add_dated(tools)
    await tools.update(2, 3, labels=["work"])
    await tools.update(4, 5, labels=["home", "work", "büro"])
    await tools.complete(12)
    await tools.delete(5, 6)
    expected = {"today": 6, "overdue": 4, "upcoming": 1, "all": 9, "done": 1, "deleted": 2}
    labels = [{"label": "work", "count": 3}, {"label": "büro", "count": 1}, {"label": "home", "count": 1}]
    assert await read(tools, "/counts") == expected | {"labels": labels}
    for view in ("today", "upcoming", "all", "done", "deleted"):
        assert (await read(tools, "/list", view=view))["total"] == expected[view]


REJECTED: dict[str, str] = {
    **{"": "view must be", "view=tomorrow": "view must be", "view=all&sort=due": "sort must be"},
    **{"view=all&offset=-1": "offset must be", "view=all&offset=10001": "offset must be"},
    **{"view=all&limit=0": "limit must be", "view=all&limit=x": "limit must be", "view=all&limit=101": "limit must be"},
    **{f"view=all&query={'x' * 201}": "query must be", "view=all&query=%00": "query must be"},
    **{"view=all&cursor=garbage": "cursor is not valid", "view=all&priority=urgent": "priority must be"},
    **{f"view=all&label={'x' * 41}": "label must have", "view=all&time_zone=Nowhere": "time_zone must be"},
}


async def test_what_cannot_be_listed(tools: Tools) -> None:
    await tools.add("a", also=["only of this user"])
    for query, words in REJECTED.items():
        answer = await tools.http.get(f"/list?{query}", headers=signed(tools))
        assert (answer.status_code, words in answer.json()["error"]) == (400, True), (query, answer.text)
    cursor = (await read(tools, "/list", view="all", limit=1))["next_cursor"]
    for other in ("view=all&sort=title", "view=today", "view=all&label=x"):
        answer = await tools.http.get(f"/list?{other}&cursor={cursor}", headers=signed(tools))
        assert answer.status_code == 400, other
    local = await tools.http.get("/list?view=all&query=only+of+this+user")
    assert local.json()["total"] == 0, "without a token it is the local user's"


@pytest.mark.long
async def test_the_end_of_ten_thousand_tasks(tools: Tools, stored: Stored) -> None:
    stored.add_daily_tasks(tools.user, 10_000, long_descriptions=10_000)
    first = date(2027, 1, 1)
    titles, sections = await read_view(tools, "upcoming", offset=9_990)
    assert (len(titles), titles[0]) == (10, "task 9991")
    days = [*sections]
    assert (len(days), days[0], days[-1]) == (501, (first + timedelta(days=1)).isoformat(), "later")
    assert sections["later"] == 9_500
