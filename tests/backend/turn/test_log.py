import asyncio

from backend.turn.log import Grown, Log, Mark, PartDone, Progress, StepBegun, StepDone


async def test_a_reader_is_woken_for_what_it_shows_and_then_reads_all() -> None:
    log = Log()
    reader = asyncio.create_task(log.after(Mark()))
    log.append(StepBegun())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reader.done()
    log.append(Progress("Looking…"))
    log.append(StepDone())
    assert await reader == [StepBegun(), Progress("Looking…"), StepDone()]


async def test_the_end_gives_what_was_not_read_and_then_nothing() -> None:
    log, mark = Log(), Mark()
    log.append(Progress("Looking…"))
    assert await log.after(mark) == [Progress("Looking…")]
    log.append(StepDone())
    reader = asyncio.create_task(log.after(mark))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reader.done()
    log.close()
    assert await reader == [StepDone()]
    assert await log.after(mark) == []


def grow(log: Log, *words: str, part: int = 0) -> None:
    for word in words:
        log.append(Grown("msg_1", part, word))


async def test_every_reader_reads_all_of_a_text_once_wherever_the_others_are() -> None:
    log, ahead, behind = Log(), Mark(), Mark()
    grow(log, "Buy", " milk")
    assert log.since(ahead) == [Grown("msg_1", 0, "Buy"), Grown("msg_1", 0, " milk")]
    grow(log, " and", " bread")
    assert log.since(behind) == [Grown("msg_1", 0, "Buy milk"), Grown("msg_1", 0, " and"), Grown("msg_1", 0, " bread")]
    grow(log, " today")
    assert log.since(ahead) == [Grown("msg_1", 0, " and bread"), Grown("msg_1", 0, " today")]
    log.append(StepDone())
    assert log.since(behind) == [Grown("msg_1", 0, " today"), StepDone()]
    assert log.since(ahead) == [StepDone()]
    assert log.since(ahead) == []


async def test_other_parts_and_what_comes_between_stay_apart() -> None:
    log, mark, late = Log(), Mark(), Mark()
    for part in (0, 1):
        grow(log, "a", part=part)
        log.since(mark)
        grow(log, "b", part=part)
        log.since(mark)
    log.append(PartDone("msg_1", 1, "ab"))
    log.since(mark)
    grow(log, "c", part=1)
    told = [Grown("msg_1", 0, "ab"), Grown("msg_1", 1, "ab"), PartDone("msg_1", 1, "ab"), Grown("msg_1", 1, "c")]
    assert log.since(late) == told


async def test_a_reader_is_woken_for_what_grew_with_what_it_has_read() -> None:
    log, mark, other = Log(), Mark(), Mark()
    grow(log, "Buy")
    await log.after(mark)
    reader = asyncio.create_task(log.after(mark))
    await asyncio.sleep(0)
    grow(log, " milk")
    log.since(other)
    grow(log, " today")
    assert await reader == [Grown("msg_1", 0, " milk"), Grown("msg_1", 0, " today")]


async def test_what_was_read_is_kept_as_few_events() -> None:
    log, mark = Log(), Mark()
    for _ in range(1000):
        grow(log, "word ")
        await log.after(mark)
    assert log.since(Mark()) == [Grown("msg_1", 0, "word " * 1000)]
