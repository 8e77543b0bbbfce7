import asyncio
from pathlib import Path

import pytest

from tests.waiting import until
from workspace.commands.errors import FolderBusy, PersonBusy
from workspace.commands.places import Places


class Commands:
    """Places that are taken until they are told to end, in the order in which they began."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._ends: dict[str, asyncio.Event] = {}
        self.running: list[str] = []

    def begin(self, name: str, person: str, folder: str) -> asyncio.Task[None]:
        self._ends[name] = asyncio.Event()
        return asyncio.create_task(self._run(name, person, Path(folder)))

    def end(self, name: str) -> None:
        self._ends[name].set()

    async def _run(self, name: str, person: str, folder: Path) -> None:
        async with self._places.taken(person, folder):
            self.running.append(name)
            await self._ends[name].wait()
            self.running.remove(name)


async def test_one_runs_in_a_folder_and_a_few_of_a_person_in_the_order_they_came() -> None:
    commands = Commands(Places(2, of_all=3))
    asked = [("1", "p", "a"), ("2", "p", "a"), ("3", "p", "b"), ("4", "p", "c"), ("5", "q", "d"), ("6", "q", "e")]
    tasks = [commands.begin(*one) for one in asked]
    await until(lambda: commands.running == ["1", "3", "5"])
    commands.end("1")  # 2 has its folder now, and waits behind 4 for a place of the person's
    await until(lambda: commands.running == ["3", "5", "6"])
    for name in ("6", "4", "3", "2", "5"):
        commands.end(name)
    await asyncio.gather(*tasks)


async def test_who_waits_for_long_is_told_for_what() -> None:
    commands = Commands(Places(1, wait_seconds=0.01))
    first = commands.begin("1", "p", "a")
    await until(lambda: commands.running)
    with pytest.raises(FolderBusy, match="Another command"):
        await commands.begin("2", "p", "a")
    with pytest.raises(PersonBusy, match="1 commands are running"):
        await commands.begin("3", "p", "b")
    commands.end("1")
    await first
    last = commands.begin("4", "p", "a")
    commands.end("4")
    await last
