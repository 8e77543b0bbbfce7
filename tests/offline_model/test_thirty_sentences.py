"""Thirty sentences of a day, said to the real services with the offline model, and the rows that PostgreSQL then has.

It is Sunday, 2026-11-22, 10:54 in Berlin. Each sentence is said by a person of its own, who has the tasks of SEED.
"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.backend.consent import cards, decide
from tests.chatkit_client import Answer, ChatKit
from tests.logins import as_admin
from tests.processes import ServiceProcess
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET, minted

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]

NOW = "2026-11-22T10:54:00+01:00"
AUDIENCE = "https://todo.example"
HIGH, MEDIUM = 1, 2


class Row(NamedTuple):
    title: str
    due_on: date | None = None
    due_time: time | None = None
    status: str = "pending"
    priority: int | None = None
    labels: tuple[str, ...] = ()
    repeat: str | None = None


def task(title: str, due: str = "", **more: Any) -> Row:
    """One that is due on a day of November, or at a time of it, as in "23 14:00"."""
    day, _, clock = due.partition(" ")
    return Row(title, date(2026, 11, int(day)) if day else None, time.fromisoformat(clock) if clock else None, **more)


def done(title: str) -> Row:
    return Row(title, status="completed")


MONDAYS = "FREQ=WEEKLY;BYDAY=MO"
SEED = {
    1: task("gym", "24 18:00"),
    2: task("dentist", "25 09:30"),
    3: task("plumber", "23 14:00"),
    4: task("tax return", "20"),
    5: task("water the plants", "23 09:00", repeat=MONDAYS),
    6: task("pay the car insurance", "22"),
    7: task("bake a cake", "22 08:00"),
    8: task("quarterly report", labels=("work",), priority=MEDIUM),
    9: task("bread", labels=("shopping",)),
    10: task("eggs", labels=("shopping",)),
    11: task("call mum about the party"),
    12: task("call mum about the tickets"),
    13: done("buy milk"),
    14: done("renew passport"),
    15: done("clean the oven"),
    16: done("send invoice"),
    **{17 + at: done(f"old job {at}") for at in range(8)},
}
COMPLETED_AT = {  # in Berlin the week before began on the 9th and ended with the 15th
    14: "2026-11-09T00:10:00+01:00",
    15: "2026-11-15T23:50:00+01:00",
    16: "2026-11-16T00:10:00+01:00",
}
NEW = max(SEED) + 1
DONE = [number for number, row in SEED.items() if row.status == "completed"]
RINGS = "Nothing rings"
Rows = Mapping[int, Row | None]


class Case(NamedTuple):
    """What is said, the last of it being what is judged; the rows that it changes, by number, and what it answers.

    A row that is gone is None. `lists` are the titles in the list that is shown, where one is.
    """

    said: tuple[str, ...]
    rows: Rows
    answer: tuple[str, ...]
    lists: tuple[str, ...] | None = None


def says(sentence: str, rows: Rows, *answer: str, after: tuple[str, ...] = ()) -> Case:
    return Case((*after, sentence), rows, answer)


def lists(sentence: str, titles: tuple[str, ...], *answer: str) -> Case:
    return Case((sentence,), {}, answer, titles)


FILTER = task("change the filter", "22", repeat="FREQ=MONTHLY;INTERVAL=3;FROM=DONE")
COMPLETED = {number: SEED[number]._replace(status="completed") for number in (1, 3, 9, 10)}
FIRST = ("quarterly report", "tax return", "bake a cake", "pay the car insurance", "water the plants")
CASES = [
    says("add dentist tomorrow at 3pm", {NEW: task("dentist", "23 15:00")}, "Mon 2026-11-23 15:00"),
    says("remind me to call mum on Friday", {NEW: task("call mum", "27")}, "Fri 2026-11-27", RINGS),
    says(
        "every Monday at 9 water the plants",
        {NEW: task("water the plants", "23 09:00", repeat=MONDAYS)},
        "Mon 2026-11-23 09:00",
        "repeats",
    ),
    says("change the filter three months after I last did", {NEW: FILTER}, "Sun 2026-11-22", "repeats"),
    says(
        "add milk, eggs and bread to shopping",
        {NEW + at: task(title, labels=("shopping",)) for at, title in enumerate(("milk", "eggs", "bread"))},
        "shopping",
    ),
    lists("what's on today", ("tax return", "bake a cake", "pay the car insurance"), "2 overdue"),
    lists("what's overdue", ("tax return", "bake a cake"), "2 tasks are overdue"),
    lists("what's due this weekend", ("bake a cake", "pay the car insurance"), "Sun 2026-11-22"),
    lists("what should I do first", FIRST, '"quarterly report"'),
    lists("what did I do last week", ("renew passport", "clean the oven"), "Mon 2026-11-09", "Sun 2026-11-15"),
    says(
        "move everything due today to tomorrow",
        {6: task("pay the car insurance", "23"), 7: task("bake a cake", "23 08:00")},
        "Mon 2026-11-23",
    ),
    says(
        "push all overdue things to Monday",
        {4: task("tax return", "23"), 7: task("bake a cake", "23 08:00")},
        "Mon 2026-11-23",
    ),
    says("snooze the dentist by a week", {2: Row("dentist", date(2026, 12, 2), time(9, 30))}, "Wed 2026-12-02 09:30"),
    says("the plumber is at 14:30, not 14:00", {3: task("plumber", "23 14:30")}, "Mon 2026-11-23 14:30"),
    says("clear the date of gym", {1: task("gym")}, "gym"),
    says(
        "skip the plants this week", {5: task("water the plants", "30 09:00", repeat=MONDAYS)}, "Mon 2026-11-30 09:00"
    ),
    says("stop repeating the plants", {5: task("water the plants", "23 09:00")}, "water the plants"),
    says("make the tax return high priority", {4: task("tax return", "20", priority=HIGH)}, "tax return", "high"),
    says("tag gym with health", {1: task("gym", "24 18:00", labels=("health",))}, "gym", "health"),
    lists("show my work tasks", ("quarterly report",), "1 open task", "work"),
    lists("find anything about insurance", ("pay the car insurance",), "pay the car insurance"),
    Case(("how many open tasks do I have",), {}, ("12 open tasks",)),
    says("I finished all the shopping", {9: COMPLETED[9], 10: COMPLETED[10]}, "bread", "eggs"),
    lists("I called mum", ("call mum about the party", "call mum about the tickets"), "Which task", "**11**", "**12**"),
    says("complete 1 and 3", {1: COMPLETED[1], 3: COMPLETED[3]}, "gym", "plumber"),
    says("the milk is not done yet", {13: task("buy milk")}, "buy milk"),
    says("rename gym to swimming", {1: task("swimming", "24 18:00")}, "swimming"),
    says("delete all done tasks", {}, "12 done tasks", "yes"),
    says("yes", dict.fromkeys(DONE), "Deleted 12 tasks", after=("delete all done tasks",)),
    says("undo", {}, "gym", after=("delete gym",)),
    says("undo", {}, "eggs", "bread", after=("complete eggs and bread",)),
    says("bring back what I just deleted", {10: None}, "gym", after=("delete eggs", "delete gym", "what is left?")),
    says("delete the dentits", {}, 'Did you mean "dentist" (2)?'),
    says("yes", {2: None}, 'Deleted "dentist"', after=("delete the dentits",)),
    says("buy flowers", {NEW: task("buy flowers")}, 'Added "buy flowers"'),
]


class Site(NamedTuple):
    backend: ServiceProcess
    connection: psycopg.Connection[Any]

    def seed(self, person: str) -> None:
        self.connection.execute("INSERT INTO people (user_id, last_task_id) VALUES (%s, %s)", [person, max(SEED)])
        for number, row in SEED.items():
            completed = datetime.fromisoformat(COMPLETED_AT.get(number, "2026-10-01T12:00:00+02:00"))
            self.connection.execute(
                "INSERT INTO tasks (user_id, id, title, due_on, due_time, status, priority, labels, repeat, series,"
                " completed_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    *(person, number, *row[:5], list(row.labels), row.repeat, number if row.repeat else None),
                    completed if row.status == "completed" else None,
                ],
            )

    def rows(self, person: str) -> dict[int, Row]:
        fields = ", ".join(Row._fields)
        found = self.connection.execute(
            f"SELECT id, {fields} FROM tasks WHERE user_id = %s ORDER BY id".encode(), [person]
        ).fetchall()
        return {id: Row(*more)._replace(labels=tuple(more[5])) for id, *more in found}

    async def say(self, person: str, *sentences: str) -> Answer:
        """In one conversation; the last answer."""
        token = minted(IDP_SECRET, sub=person, iss=ISSUER, aud=AUDIENCE)
        headers = {"Authorization": f"Bearer {token}", "X-Time-Zone": "Europe/Berlin"}
        async with ChatKit(self.backend.url, headers=headers) as chat:
            answer = await chat.say(sentences[0])
            for sentence in sentences[1:]:
                answer = await chat.say(sentence, answer.thread_id)
            for card in cards(answer):  # more than ten are deleted once their person has approved of it
                answer = await decide(chat, card, approve=True)
        assert answer.error is None
        return answer


@pytest.fixture(scope="module")
def site(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    logs = tmp_path_factory.mktemp("sentences")
    common = {"AUTH_MODE": "jwt", "AUTH_ISSUER": ISSUER, "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET, "TEST_NOW": NOW}
    common |= {"DATABASE_URL": session_database_url}
    offline = ServiceProcess("offline_model", "OFFLINE_PORT", logs / "offline.log")
    mcp = ServiceProcess("mcp_server", "MCP_PORT", logs / "mcp.log", **common)
    mcp.environment["MCP_URL"] = f"{mcp.url}/mcp"
    model = {"LLM_PROVIDER": "offline", "LLM_BASE_URL": f"{offline.url}/v1", "MCP_URL": f"{mcp.url}/mcp"}
    identity = {"AUTH_JWT_SECRET": IDP_SECRET, "AUTH_AUDIENCE": AUDIENCE}
    backend = ServiceProcess("backend", "BACKEND_PORT", logs / "backend.log", **common, **model, **identity)
    services = (offline, mcp, backend)
    for service in services:
        service.start()
    try:
        for service in services:
            service.wait_until_ready(path="/health" if service is offline else "/ready")
        with psycopg.connect(as_admin(session_database_url), autocommit=True) as connection:
            yield Site(backend, connection)
    finally:
        for service in services[::-1]:
            service.end()


@pytest.mark.parametrize("case", CASES, ids=lambda case: " / ".join(case.said))
async def test_a_sentence(site: Site, case: Case):
    person = f"person {CASES.index(case)}"
    site.seed(person)
    answer = await site.say(person, *case.said)
    expected = {number: row for number, row in (SEED | dict(case.rows)).items() if row}
    assert (site.rows(person), answer.text) == (expected, answer.text)
    assert [words for words in case.answer if words not in answer.text] == [], answer.text
    if case.lists is not None:
        assert [line.partition("] ")[2].partition(" (")[0] for line in answer.listed] == list(case.lists)
