"""A run followed from this process and from another, from the beginning and from the middle."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from backend.conversation.errors import LimitReached, NotFound
from backend.conversation.items import Message, Said
from backend.conversation.runs.events import EVENTS_CHANNEL
from backend.turn.following.publisher import Followed, Numbered
from backend.turn.log import Done, Ended, Failed, Grown, Reset, Started, StepDone
from tests.backend.conftest import Backend, Rows
from tests.backend.slow_turns import SLOW, read_text
from tests.backend.turn.following.readers import following, read, text_of
from tests.chatkit_client import ChatKit, user_input
from tests.scripted_model import ScriptedModel
from tests.waiting import until

pytestmark = pytest.mark.long

TEXT = SLOW["text"]
SOON_DEAD = {"lease_seconds": 1.0}
CRASH = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'COMMIT' AND pid <> pg_backend_pid()"


async def started(chat: ChatKit, **how: Any) -> str:
    """The id of a run that nobody reads, and that is published from its beginning."""
    parts = chat.app.state.parts  # pyright: ignore[reportAttributeAccessIssue]
    said = Said(text="count", body=user_input("count"))
    turn = await parts.turns.start(
        parts.chatkit.server._answers.answer,
        user_id="local",
        conversation_id=None,
        said=said,
        detached=True,
        followed=True,
        **how,
    )
    return turn.run.id


async def test_a_turn_that_nobody_follows_writes_no_event(chat: ChatKit, rows: Rows) -> None:
    await chat.say("add milk")
    assert rows("SELECT 1 FROM run_events") == []
    assert rows("SELECT followed FROM runs") == [{"followed": False}]


async def test_a_followed_run_is_told_alike_here_and_elsewhere(backend: Backend, model: ScriptedModel) -> None:
    await model.script({**SLOW, "token_delay": 0.02})
    async with backend() as one, backend() as other:
        run = await started(one)
        here, elsewhere = await asyncio.gather(read(following(one), run), read(following(other), run))
        assert here == elsewhere
        assert here == await read(following(other), run)
    assert [number for number, _ in here] == list(range(1, len(here) + 1))
    assert text_of(here) == TEXT
    assert isinstance(here[0].event, Started)
    assert here[-1].event == Ended("completed")
    assert [event.item.text for _, event in here if isinstance(event, Done) and isinstance(event.item, Message)] == [
        TEXT
    ]
    assert 1 < len([event for _, event in here if isinstance(event, Grown)]) < len(TEXT) / 4


async def test_a_reader_may_leave_and_go_on_anywhere(backend: Backend, model: ScriptedModel) -> None:
    await model.script(SLOW)
    async with backend() as one, backend() as other:
        run = await started(one)
        told = await read(following(other), run, most=6)
        told += await read(following(one), run, told[-1].seq, most=2)
        told += await read(following(other), run, told[-1].seq)
        assert told == await read(following(one), run)
        assert await read(following(other), run, told[-1].seq) == []


async def test_a_running_answer_can_be_followed_by_who_comes_later(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with backend() as one, backend() as other:
        async with one.open("threads.create", input=user_input("count")) as events:
            shown = await read_text(events, at_least=12)
            [run] = rows("SELECT id FROM runs")
            reading = [asyncio.create_task(read(following(chat), run["id"])) for chat in (other, one)]
            shown += await read_text(events, at_least=len(TEXT) - len(shown))
            first, second = await asyncio.gather(*reading)
        assert shown == TEXT
        assert first == second
        assert text_of(first) == TEXT
        assert len(next(event for _, event in first if isinstance(event, Grown)).text) >= 12, "what was said before"


async def test_the_run_of_another_is_not_there(backend: Backend, model: ScriptedModel) -> None:
    await model.script(SLOW)
    async with backend() as chat:
        run = await started(chat)
        with pytest.raises(NotFound):
            await read(following(chat), run, user="mallory")
        with pytest.raises(NotFound):
            await read(following(chat), "run_none")


async def test_who_asks_for_the_run_of_another_lets_nothing_be_published(
    chat: ChatKit, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=6)
        [run] = rows("SELECT id FROM runs WHERE status = 'running'")
        with pytest.raises(NotFound):
            await read(following(chat), run["id"], user="mallory")
        assert following(chat).publisher._followed == {}
        await read_text(events, at_least=len(TEXT) - 6)
    assert rows("SELECT 1 FROM run_events") == []
    assert rows("SELECT followed FROM runs") == [{"followed": False}]


async def test_what_no_row_marks_as_followed_is_never_written(chat: ChatKit, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with chat.open("threads.create", input=user_input("count")) as events:
        await read_text(events, at_least=6)
        [run] = rows("SELECT id FROM runs WHERE status = 'running'")
        turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        turns._follow(run["id"])
        assert following(chat).publisher._followed
        await until(lambda: not following(chat).publisher._followed, seconds=10)
        await read_text(events, at_least=1)
    assert rows("SELECT 1 FROM run_events") == []


async def test_what_is_not_held_any_more_is_told_as_it_is_stored(
    chat: ChatKit, rows: Rows, model: ScriptedModel
) -> None:
    await model.script({"tool_calls": [{"name": "add_task", "arguments": {"title": "milk"}}]}, {"text": "Milk it is."})
    run = await started(chat)
    whole = await read(following(chat), run)
    rows("DELETE FROM run_events")
    rows("UPDATE runs SET ended_at = now() - interval '1 hour'")
    for after in (0, 7, 10**18):
        again = await read(following(chat), run, after)
        assert [number for number, _ in again] == list(range(len(again)))
        assert again[0].event == Reset()
        assert again[-1].event == Ended("completed")
        kept = {type(event).__name__ for _, event in again}
        assert kept == {"Reset", "Done", "Called", "Answered", "Ended"}
        stored = [event for _, event in again if not isinstance(event, Reset | Done)]
        assert stored == [event for _, event in whole if type(event) in map(type, stored)]
        items = [event.item.id for _, event in again if isinstance(event, Done)]
        assert set(items) >= {event.item.id for _, event in whole if isinstance(event, Done)}


async def test_a_number_that_never_was_begins_anew(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script(SLOW)
    run = await started(chat)
    told = await read(following(chat), run, 1000)
    assert told[0] == (0, Reset())
    assert text_of(told) == TEXT
    assert told[1:] == await read(following(chat), run)


async def test_an_owner_that_is_gone_is_told_of(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script({**SLOW, "token_delay": 0.5})
    async with backend(**SOON_DEAD) as one, backend(**SOON_DEAD) as other:
        run = await started(one)
        reading = asyncio.create_task(read(following(other), run))
        await until(lambda: rows("SELECT 1 FROM run_events WHERE seq > 5"))
        turns = one.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        for task in turns._services:
            task.cancel()
        told = await asyncio.wait_for(reading, 10)
    assert isinstance(told[-2].event, Failed)
    assert told[-1].event == Ended("interrupted")
    assert TEXT.startswith(text_of(told))


async def test_who_has_read_more_than_a_crash_has_left_begins_anew(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script({**SLOW, "token_delay": 0.5})
    async with backend(**SOON_DEAD) as one, backend(**SOON_DEAD) as other:
        run = await started(one)
        told: list[Numbered] = []

        async def reading() -> None:
            async for numbered in following(other).events(run, "local"):
                told.extend([numbered] if numbered else [])

        reader = asyncio.create_task(reading())
        await until(lambda: told and told[-1].seq > 5)
        turns = one.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
        for task in turns._services:
            task.cancel()
        rows("DELETE FROM run_events WHERE seq > 2")
        await asyncio.wait_for(reader, 10)
        again = told.index(Numbered(0, Reset())) + 1
        assert again > 5
        assert told[again:] == await read(following(other), run)
        assert told[-1].event == Ended("interrupted")


async def test_a_deleted_conversation_leaves_no_event(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    await model.script(SLOW)
    async with backend() as chat:
        run = await started(chat)
        reading = asyncio.create_task(read(following(chat), run))
        await until(lambda: rows("SELECT 1 FROM run_events WHERE seq > 3"))
        [thread] = rows("SELECT id FROM conversations")
        await chat.ask("threads.delete", thread_id=thread["id"])
        assert (await reading)[-1].event == Ended("cancelled")
        assert rows("SELECT 1 FROM run_events") == []


async def test_a_database_that_comes_back_has_all_of_it(backend: Backend, model: ScriptedModel, rows: Rows) -> None:
    """What was written before its crash may be gone: it is written again."""
    await model.script(SLOW)
    async with backend() as chat:
        run = await started(chat)
        reading = asyncio.create_task(read(following(chat), run))
        await until(lambda: rows("SELECT 1 FROM run_events WHERE seq > 5"))
        rows("DELETE FROM run_events WHERE seq > 3")
        rows(CRASH)
        told = await reading
        assert text_of(told) == TEXT
        following(chat).publisher._last.clear()
        assert await read(following(chat), run) == told


async def test_an_end_that_could_not_be_published_at_once_is_told_whole(
    backend: Backend, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database went away between an answer's end and its last words, for longer than these are waited for."""
    await model.script(SLOW)
    async with backend() as chat:
        reader, is_away, failed = following(chat), False, 0
        write, reader._grace_seconds, reader._look_seconds = reader.publisher._write, 0, 0.05

        async def unless_away(behind: Sequence[Followed]) -> set[str]:
            nonlocal failed
            if is_away:
                failed += 1
                raise OSError
            return await write(behind)

        monkeypatch.setattr(reader.publisher, "_write", unless_away)
        run = await started(chat)
        reading = asyncio.create_task(read(reader, run))
        await until(lambda: rows("SELECT 1 FROM run_events WHERE seq > 5"))
        is_away = True
        await until(lambda: rows("SELECT 1 FROM runs WHERE status = 'ended'"))
        ended = failed
        await until(lambda: failed > ended + 3)
        is_away = False
        told = await reading
        await until(lambda: not reader.publisher._followed)
        assert await read(reader, run) == told
        assert await read(reader, run, told[-1].seq) == []
    assert text_of(told) == TEXT
    assert [type(event) for _, event in told].count(StepDone) == 1


async def test_what_grew_unpublished_in_a_process_that_died_is_told_with_its_end(
    backend: Backend, model: ScriptedModel, rows: Rows
) -> None:
    await model.script(SLOW)
    async with backend() as chat:
        run = await started(chat)
        whole = await read(following(chat), run)
        [cut] = [number for number, event in whole if isinstance(event, Grown)][3:4]
        rows("DELETE FROM run_events WHERE seq > %s", cut)
        rows("UPDATE runs SET ended_at = now() - interval '1 hour'")
        told = await read(following(chat), run)
        assert told[:cut] == whole[:cut]
        assert text_of(told) == TEXT
        assert [type(event) for _, event in told[cut:]] == [Grown, Done, Ended]
        assert await read(following(chat), run) == told


async def test_what_cannot_be_published_keeps_no_other_back(chat: ChatKit, rows: Rows, model: ScriptedModel) -> None:
    await model.script({"text": "fine"}, {"text": "fine"})
    bad = await started(chat)
    publisher = following(chat).publisher
    publisher._last[bad].payloads.append('"\\u0000"')
    publisher._last[bad].events.append(Grown("none", 0, "\0"))
    good = await started(chat)
    told = await asyncio.gather(read(following(chat), good), read(following(chat), bad))
    assert text_of(told[0]) == "fine"
    assert told[1][-1].event == Ended("completed")
    whole = rows("SELECT run_id FROM run_events WHERE payload->>'event' = 'Ended'")
    assert {"run_id": good} in whole


async def test_silence_has_a_pulse(chat: ChatKit, model: ScriptedModel) -> None:
    await model.script({"text": "late", "delay": 1})
    run = await started(chat)
    reader = following(chat)
    reader._look_seconds = reader._pulse_seconds = 0.1
    told = [numbered async for numbered in reader.events(run, "local")]
    assert told.count(None) > 3


async def test_old_logs_are_swept(backend: Backend, rows: Rows) -> None:
    async with backend() as chat:
        run = await started(chat)
        await read(following(chat), run)
        rows("UPDATE runs SET ended_at = now() - interval '11 minutes'")
        await until(lambda: not rows("SELECT 1 FROM run_events"))
        assert rows("SELECT followed FROM runs") == [{"followed": False}]


async def test_a_run_that_waits_is_looked_at_less_often_and_heard_at_once(
    backend: Backend, model: ScriptedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    await model.script(SLOW)
    async with backend() as chat, backend() as other:
        run = await started(chat)
        await read(following(chat), run)
        rows("DELETE FROM run_events WHERE payload->>'event' = 'Ended'")
        rows("UPDATE runs SET status = 'waiting', ended_at = NULL, outcome = NULL")
        reader, looked = following(other), list[int]()
        looks = reader._look

        async def look(run_id: str, user_id: str, after: int) -> Any:
            looked.append(after)
            return await looks(run_id, user_id, after)

        monkeypatch.setattr(reader, "_look", look)
        reading = asyncio.create_task(read(reader, run))
        await asyncio.sleep(3.5)
        assert len(looked) <= 2
        rows("UPDATE runs SET status = 'ended', ended_at = now() - interval '1 hour', outcome = 'completed'")
        rows("SELECT pg_notify(%s, %s)", EVENTS_CHANNEL, run)
        assert (await asyncio.wait_for(reading, 1))[-1].event == Ended("completed")


async def test_a_person_has_so_many_readers_and_a_place_is_free_once_one_left(
    backend: Backend, model: ScriptedModel
) -> None:
    await model.script(SLOW)
    async with backend() as chat:
        run = await started(chat)
        reader = following(chat)
        told = [reader.events(run, "local") for _ in range(20)]  # not one of them is read yet
        with pytest.raises(LimitReached, match="stop reading"):
            reader.events(run, "local")
        with pytest.raises(NotFound):
            await read(reader, run, user="mallory")
        told.pop()
        await anext(told[0])
        await told[0].aclose()
        told += [reader.events(run, "local") for _ in range(2)]
        with pytest.raises(LimitReached):
            reader.place("local")
        read_to_its_end = [one async for one in told[-1]]
        assert read_to_its_end
        assert reader.place("local")
