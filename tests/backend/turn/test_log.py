import asyncio

from backend.turn.log import Log, Progress, StepBegun, StepDone


async def test_a_reader_is_woken_for_what_it_shows_and_then_reads_all() -> None:
    log = Log()
    reader = asyncio.create_task(log.after(0))
    log.append(StepBegun())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reader.done()
    log.append(Progress("Looking…"))
    log.append(StepDone())
    assert await reader == [StepBegun(), Progress("Looking…"), StepDone()]


async def test_the_end_gives_what_was_not_read_and_then_nothing() -> None:
    log = Log()
    log.append(Progress("Looking…"))
    log.append(StepDone())
    reader = asyncio.create_task(log.after(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reader.done()
    log.close()
    assert await reader == [StepDone()]
    assert await log.after(2) == []
