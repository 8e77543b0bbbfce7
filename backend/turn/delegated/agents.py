"""The agents that may work for the assistant, for every turn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncEngine

from backend.tools.workspace.tools import WorkspaceTools
from backend.turn.delegated.call import Means
from backend.turn.delegated.delegation import Delegation
from backend.turn.delegated.meanwhile import Meanwhile
from backend.turn.recorder import Recorder
from backend.turn.turn import Turn


@dataclass(frozen=True)
class Agents:
    """`per_day` is how often a person may start one; `address` is where people reach the backend.

    Of an agent's name `works_apart` tells whether it has a folder of its own beside the conversation's.
    """

    engine: AsyncEngine
    tools: WorkspaceTools
    address: str
    per_day: int | None
    works_apart: Callable[[str], bool]

    def of(self, turn: Turn, recorder: Recorder) -> Delegation:
        """Those of one answer."""
        run = turn.run
        folder = f"{self.address}/chats/{quote(run.conversation_id)}/files"
        means = Means(
            self.engine,
            run,
            turn.calls,
            self.tools,
            turn.say,
            folder,
            self.works_apart,
            recorder.consent.waiting,
            recorder.consent.reach_of,
            partial(Meanwhile, self.engine, turn),
        )
        return Delegation(means, recorder.answer, recorder.hold, per_day=self.per_day)
