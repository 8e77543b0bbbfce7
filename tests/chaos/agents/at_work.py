"""The workspace, what agents are told to do in it, and what must have come of it."""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

from tests.chaos.agents.checks import Works, processes_of
from tests.chaos.agents.script import ASKED_INSIDE, Script
from tests.chaos.checks.stored import Stored
from tests.chaos.record import Record
from tests.chaos.system import ASKED_FIRST, Killable
from tests.chatkit_client import ChatKit
from tests.workspace_service import prepared

_ENDED_SECONDS = 5.0


class AgentsAtWork:
    """With `asks`, people are asked before an agent starts, too, and not only for what it wants to do."""

    def __init__(self, directory: Path, *, asks: bool) -> None:
        self._mark = f"6.{random.SystemRandom().randrange(10**9):09}"  # in no other command line
        self.script = Script(self._mark)
        self.asked_first = (*ASKED_FIRST, ASKED_INSIDE, *(["agents"] if asks else []))
        self.workspace, self._folders = prepared(directory)
        self.figures = ""

    async def problems(self, system: Killable, chat: ChatKit, record: Record) -> list[str]:
        """Once nothing is killed any more, and no answer goes on."""
        began = time.monotonic()
        while (left := processes_of(self._mark)) and time.monotonic() - began < _ENDED_SECONDS:
            await asyncio.sleep(0.1)
        asks = "agents" in self.asked_first
        works = Works(Stored(system.cluster.admin_url), self._folders, asks=asks)
        outcomes = Counter(work.status for work in works.by_token.values())
        counted = ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))
        told = sum(map(len, self.script.told.values()))
        how = "by approval" if asks else "unasked"
        self.figures = (
            f"; agents {how}: {len(works.by_token)} ({counted}), "
            f"{self.script.requests} requests of theirs, {told} outputs read, {len(record.works)} told as done, "
            f"asked inside: {works.asked}"
        )
        found = [f"a command is left: {one}" for one in left]
        return [*found, *works.problems(self.script.told, record.works), *await works.shown(chat)]
