"""From an intent to tool calls: plans, and what they are made of.

A plan yields the calls of a step, is sent their results, and returns the reply. It is run again from its start for
each request, so nothing is stored between two requests.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from offline_model import replies
from offline_model.conversation import ChatTurn, ToolResult
from offline_model.language.text import Text

MAX_TASKS = 25  # that one message may name
_TASKS_PER_CALL = 100
CHANGING_TOOLS = ("add_task", "update_task", "complete_task", "delete_task")


Value = TypeVar("Value")


@dataclass(frozen=True)
class PlannedCall:
    name: str
    arguments: dict[str, Any]


Calls = tuple[PlannedCall, ...]
Results = tuple[ToolResult, ...]
Steps = Generator[Calls, Results, str]
Lookup = Generator[Calls, Results, Value]
"""Steps that return something else than a reply."""
Kind = Literal["request", "aside", "reply"]
"""An aside is dropped if there is also a request; a reply such as "2" is only an answer."""


@dataclass(frozen=True)
class Context:
    chosen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    earlier: Sequence[ChatTurn] = ()
    has_notifications: bool = False

    @property
    def last(self) -> ChatTurn:
        return self.earlier[-1] if self.earlier else ChatTurn("")


@dataclass(frozen=True)
class Intent:
    """A row of the table with the texts in its slots. Phrases name tasks; "bought the milk" `is_deed`."""

    plan: "Plan"
    answer: str
    readings: Sequence[Mapping[str, Text]] = ()
    phrases: Sequence[str] = ()
    kind: Kind = "request"
    is_deed: bool = False
    slot_words: tuple[int, int] = (0, 0)
    """The numbers of words in slots of free text, and in all slots."""

    @property
    def text(self) -> Text:
        return list(self.readings[0].values())[-1]


Plan = Callable[[Intent, Context], Steps]


class Stop(Exception):
    """Ends all plans of a message with this sentence."""


def create_calls(tool: str, ids: Sequence[int], **arguments: Any) -> Calls:
    ids = list(dict.fromkeys(ids))
    groups = [ids[at : at + _TASKS_PER_CALL] for at in range(0, len(ids), _TASKS_PER_CALL)]
    return tuple(
        PlannedCall(tool, {"task_id": first, **arguments} | ({"also": others} if others else {}))
        for first, *others in groups
    )


def tell_notifications(answer: str, context: Context) -> str:
    """Adds to the answer to a request for a reminder that notifications are not known to be on."""
    is_told = context.has_notifications or replies.NOTIFICATIONS_OFF in answer
    return answer if is_told else f"{answer}\n\n{replies.NOTIFICATIONS_OFF}"
