"""What day and time it is, and where: told to the model before each message, and to the tools with each call."""

import logging
from datetime import datetime
from typing import Any

import pytest

from backend.doors import time_zone
from backend.tools.tasks.tools import TIME_ZONE, TaskTools
from tests.backend.completions import check_pairs
from tests.backend.conftest import Backend, Rows
from tests.backend.now import now_of, told_now
from tests.backend.slow_turns import SLOW, read_text
from tests.backend.widgets import listed, tick
from tests.chatkit_client import Answer, ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until

SUNDAY = datetime.fromisoformat("2026-11-22T09:54:00Z")
PROFILES = "SELECT user_id, time_zone FROM profiles ORDER BY user_id"


def sends(chat: ChatKit, zone: str | None) -> None:
    chat.http.headers.pop(time_zone.HEADER, None)
    if zone is not None:
        chat.http.headers[time_zone.HEADER] = zone


async def requests(model: ScriptedModel) -> list[list[dict[str, Any]]]:
    return [request["body"]["messages"] for request in await model.finished_requests()]


async def told(model: ScriptedModel) -> list[str]:
    return told_now((await requests(model))[-1])


async def retry(chat: ChatKit, answer: Answer) -> Answer:
    item = answer.user_item_id
    return await chat.stream("threads.retry_after_item", thread_id=answer.thread_id, item_id=item)


@pytest.fixture
def metas(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What went with each call of a tool."""
    sent: list[dict[str, Any]] = []
    call = TaskTools.call_tool

    async def seen(self: TaskTools, name: str, arguments: Any, meta: Any = None) -> Any:
        sent.append(meta)
        return await call(self, name, arguments, meta)

    monkeypatch.setattr(TaskTools, "call_tool", seen)
    return sent


async def test_the_note_stands_right_before_the_message(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend(test_now=SUNDAY) as chat:
        sends(chat, "Europe/Berlin")
        answer = await chat.say("add milk")
        first, _ = await requests(model)
        assert [message["role"] for message in first] == ["system", "user", "user"]
        assert now_of(first[1]) == "Sun 2026-11-22 10:54, Europe/Berlin"
        assert first[2]["content"] == "add milk"
        kinds = rows("SELECT kind, run_id, xmin::text FROM messages ORDER BY seq LIMIT 2")
        assert [row.pop("kind") for row in kinds] == ["note", "user_message"]
        assert kinds[0] == kinds[1], "of one turn, written in one transaction"
        assert [item["type"] for item in await chat.items(answer.thread_id)] == [item["type"] for item in answer.items]
        page = await chat.list_items(answer.thread_id, limit=1, order="asc")
        assert ([item["id"] for item in page.data], page.has_more) == ([answer.user_item_id], True)


@pytest.mark.parametrize(
    ("instant", "zone", "note"),
    [
        ("2026-11-22T10:50:00Z", "Pacific/Tongatapu", "Sun 2026-11-22 23:50, Pacific/Tongatapu"),
        ("2026-11-23T09:50:00Z", "Pacific/Honolulu", "Sun 2026-11-22 23:50, Pacific/Honolulu"),
        ("2026-03-29T00:59:00Z", "Europe/Berlin", "Sun 2026-03-29 01:59, Europe/Berlin"),
        ("2026-10-25T01:30:00Z", "Europe/Berlin", "Sun 2026-10-25 02:30, Europe/Berlin"),
        ("2028-02-29T10:50:00Z", "Pacific/Tongatapu", "Tue 2028-02-29 23:50, Pacific/Tongatapu"),
    ],
)
async def test_it_is_the_persons_day_wherever_the_server_is(
    backend: Backend, model: ScriptedModel, instant: str, zone: str, note: str
) -> None:
    async with backend(test_now=datetime.fromisoformat(instant)) as chat:
        sends(chat, zone)
        await chat.say("hello")
    assert await told(model) == [note]


async def test_the_zone_is_the_requests_else_the_one_kept_else_the_one_set(
    backend: Backend, model: ScriptedModel, rows: Rows, metas: list[dict[str, Any]]
) -> None:
    async with backend(test_now=SUNDAY, time_zone="Asia/Tokyo") as chat:
        thread = (await chat.say("add milk")).thread_id
        assert await told(model) == ["Sun 2026-11-22 18:54, Asia/Tokyo"]
        assert [meta.get(TIME_ZONE) for meta in metas] == [None], "what is merely set is nobody's"
        assert rows(PROFILES) == []

        sends(chat, "Europe/Berlin")
        await chat.say("add bread", thread)
        assert rows(PROFILES) == [{"user_id": "local", "time_zone": "Europe/Berlin"}]

        sends(chat, None)
        await chat.say("add eggs", thread)
        assert (await told(model))[1:] == ["Sun 2026-11-22 10:54, Europe/Berlin"] * 2
        assert [meta.get(TIME_ZONE) for meta in metas] == [None, "Europe/Berlin", "Europe/Berlin"]

        sends(chat, "America/New_York")
        await chat.say("add salt", thread)
        assert (await told(model))[3:] == ["Sun 2026-11-22 04:54, America/New_York"]
        assert metas[-1][TIME_ZONE] == "America/New_York"
        assert rows(PROFILES) == [{"user_id": "local", "time_zone": "America/New_York"}]


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
async def test_only_who_has_a_calendar_has_a_note_that_says_so(
    backend: Backend, model: ScriptedModel, rows: Rows, zone: str | None
) -> None:
    plain = "Sun 2026-11-22 10:54, Europe/Berlin"
    async with backend(test_now=SUNDAY, time_zone="Europe/Berlin") as chat:
        sends(chat, zone)
        rows("INSERT INTO profiles (user_id, calendar_hash) VALUES ('bob', sha256('secret'))")
        first = await chat.say("hello")
        assert await told(model) == [plain]
        before = (await requests(model))[-1]
        assert (await chat.http.post("/calendar")).status_code == 201
        second = await chat.say("hello again", first.thread_id)
        assert await told(model) == [plain, f"{plain}, calendar feed on"]
        assert (await requests(model))[-1][: len(before)] == before, "what was said before stays as it was"
        await chat.http.delete("/calendar")
        await chat.say("bye", first.thread_id)
        assert await told(model) == [plain, f"{plain}, calendar feed on", plain]
        await chat.http.post("/calendar")
        assert (await retry(chat, second)).error is None
    assert (await told(model))[-1] == f"{plain}, calendar feed on"


async def test_a_zone_that_is_known_already_is_not_written_again(chat: ChatKit, rows: Rows) -> None:
    sends(chat, "Europe/Berlin")
    thread = (await chat.say("hello")).thread_id
    version = "SELECT xmin::text, xmax::text, ctid::text FROM profiles"
    before = rows(version)
    await chat.say("hello again", thread)
    assert rows(version) == before != []


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "localtime", "A" * 5_000, "Europe/Berlin; x"])
async def test_a_zone_that_nobody_knows_is_told_of_once_and_fails_nothing(
    backend: Backend, model: ScriptedModel, rows: Rows, caplog: pytest.LogCaptureFixture, zone: str
) -> None:
    time_zone._tell.cache_clear()
    async with backend(test_now=SUNDAY) as chat:
        sends(chat, zone)
        with caplog.at_level(logging.WARNING, logger=time_zone.logger.name):
            first = await chat.say("add milk")
            await chat.say("add bread", first.thread_id)
    assert first.error is None
    assert (await told(model)) == ["Sun 2026-11-22 09:54, UTC"] * 2
    assert rows(PROFILES) == []
    [warned] = [record.getMessage() for record in caplog.records if record.name == time_zone.logger.name]
    assert zone[:20] in warned
    assert len(zone) <= 20 or zone not in warned


async def test_a_refused_message_leaves_neither_note_nor_zone(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "token_delay": 0.5})
    async with chat.open("threads.create", input=user_input("count")) as events:
        thread = next(event["thread"]["id"] for event in [await anext(events)])
        await read_text(events, at_least=4)
        before = rows("SELECT id FROM messages")
        sends(chat, "Europe/Berlin")
        answer = await chat.say("and this?", thread)
        assert "still answering" in (answer.error or {})["message"]
        assert rows("SELECT id FROM messages") == before
        assert rows(PROFILES) == []


async def test_a_retry_the_next_day_is_told_of_that_day(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    async with backend(test_now=SUNDAY) as chat:
        sends(chat, "Europe/Berlin")
        first = await chat.say("add milk")
    yesterday = (await requests(model))[-1]
    async with backend(test_now=datetime.fromisoformat("2026-11-23T20:00:00Z")) as chat:
        assert (await retry(chat, first)).error is None
        again = (await requests(model))[-1]
        assert again[:3] == yesterday[:3]
        assert told_now(again) == ["Sun 2026-11-22 10:54, Europe/Berlin", "Mon 2026-11-23 21:00, Europe/Berlin"]
        assert now_of(again[3]), "after the message, before what the first attempt did"
        assert (await retry(chat, first)).error is None
        assert len(await told(model)) == 2, "the note of the attempt that was replaced is gone"
        await chat.say("hello", first.thread_id)
        messages = (await requests(model))[-1]
    assert len(told_now(messages)) == 3
    assert now_of(messages[-2]) == told_now(messages)[-1]
    check_pairs(messages)
    assert len(rows("SELECT 1 FROM tasks")) == 1


async def test_a_note_of_a_zone_that_is_known_no_more_is_in_utc(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(test_now=SUNDAY) as chat:
        rows("INSERT INTO profiles (user_id, time_zone) VALUES ('local', 'Mars/Olympus'), ('bob', 'Asia/Tokyo')")
        assert (await chat.say("hello")).error is None
    assert await told(model) == ["Sun 2026-11-22 09:54, UTC"]


async def test_a_tick_carries_the_zone_too(chat: ChatKit, metas: list[dict[str, Any]]) -> None:
    sends(chat, "Europe/Berlin")
    _, item = await listed(chat, "milk", "bread", "eggs")
    for zone, sent in (("Asia/Tokyo", "Asia/Tokyo"), (None, "Europe/Berlin")):
        sends(chat, zone)
        metas.clear()
        await tick(chat, item, "milk" if zone else "bread")
        assert [meta[TIME_ZONE] for meta in metas] == [sent]
    sends(chat, "Asia/Tokyo")
    metas.clear()
    await chat.items(item["thread_id"])
    assert [meta[TIME_ZONE] for meta in metas] == ["Asia/Tokyo"]


async def test_a_long_conversation_is_never_cut_between_note_and_message(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    async with backend(history_tokens=400, test_now=SUNDAY) as chat:
        thread = (await chat.say("add task 0")).thread_id
        for number in range(1, 12):
            await chat.say(f"add task {number}", thread)
            await chat.app.state.parts.turns.finish_background_work()  # pyright: ignore[reportAttributeAccessIssue]
        await until(lambda: rows("SELECT 1 FROM messages WHERE kind = 'summary'"))
    sent = await model.finished_requests()
    for messages in [one["body"]["messages"] for one in sent if "tools" in one["body"]]:
        said = [index for index, one in enumerate(messages) if str(one["content"]).startswith("add task")]
        assert said
        assert all(now_of(messages[index - 1]) for index in said)
    summarised = [one["body"]["messages"][-1]["content"] for one in sent if "tools" not in one["body"]]
    assert "Now: Sun 2026-11-22 09:54, UTC\nPerson: add task 0" in summarised[0]
