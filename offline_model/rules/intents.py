"""What passes between reading, plans and tools: what is wanted, what earlier turns tell, calls and their results."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from offline_model.conversation import Result, Turn
from offline_model.rules.language.pattern import Reading
from offline_model.rules.language.text import Text

MAX_CALLS = 25
"""So many tasks may be named in one message."""
IN_ONE_CALL = 100
"""So many tasks a tool takes."""


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: dict[str, Any]


Calls = tuple[ToolCall, ...]
Results = tuple[Result, ...]
Kind = Literal["request", "aside", "reply"]
Steps = Generator[Calls, Results, str]
"""Yields the calls of a step, is sent their results, and returns what to say."""


@dataclass(frozen=True)
class Known:
    """What earlier turns tell: the numbers chosen for phrases asked about, and how the last list goes on.

    `rest` are the arguments of that call; `earlier` are those turns themselves, the last of them last.
    """

    chosen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rest: Mapping[str, Any] | None = None
    earlier: Sequence[Turn] = ()


@dataclass(frozen=True)
class Intent:
    """One thing wanted: a row of the table of wishes, and how its pattern reads what was said.

    A phrase is how a task was named, by words or numbers; `told` if it is a deed, such as "bought the milk".
    """

    plan: "Plan"
    answer: str
    readings: Sequence[Reading] = ()
    phrases: Sequence[str] = ()
    kind: Kind = "request"
    told: bool = False

    @property
    def texts(self) -> list[Text]:
        """What stands in the last gap of each reading."""
        return [next(reversed(reading.values())) for reading in self.readings]


Plan = Callable[[Intent, Known], Steps]


class Stopped(Exception):
    """The plan ends here, with this sentence."""


def several(tool: str, ids: Sequence[int], **arguments: Any) -> Calls:
    """One call for up to a hundred tasks."""
    groups = [ids[at : at + IN_ONE_CALL] for at in range(0, len(ids), IN_ONE_CALL)]
    return tuple(
        ToolCall(tool, {"task_id": first, **arguments} | ({"also": others} if others else {}))
        for first, *others in groups
    )
