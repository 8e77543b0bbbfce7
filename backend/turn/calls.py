"""The calls of a turn: whose they are, and the key of each."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai.types.responses import ResponseFunctionToolCall

from backend.agents.assistant import MAX_STEPS
from backend.conversation.acting import Acting
from backend.conversation.items import Json
from backend.conversation.runs.beside import Beginning


@dataclass
class Calls:
    """Whose calls these are, and the key of each by its id: what the tools know of the turn that makes them.

    `time_zone` is the person's, if it is known. `message_id` is the message that the run began with: the keys are made
    of it, and of how often each call was `repeated` since. `batch` is what they can be taken back with. Of the newest
    step, the calls in `waiting` are not made: their person is asked. Those in `not_made` are not made either, and have
    the reason as their output.

    Agents work for the assistant by its `delegation`: for the message, which is what the person `asked`, the models of
    all have taken so many `steps`, and may take `most_steps`. `by_agent` is what they used and was not counted yet,
    and `written` how many rows there are of the run's agents. The `notes` are what the assistant reads of its person's
    memory; its agents read none. `model` is the name of the one that all of them ask.
    """

    acting: Acting
    conversation_id: str
    message_id: str
    batch: str
    time_zone: str | None = None
    call_keys: dict[str, str] = field(default_factory=dict[str, str])
    repeated: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    waiting: frozenset[str] = frozenset()
    not_made: Mapping[str, str] = field(default_factory=dict[str, str])
    made: int = 0
    steps: int = 0
    most_steps: int = MAX_STEPS
    asked: str = ""
    delegation: Any = None
    by_agent: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    written: int = 0
    notes: str = ""
    model: str = ""
    results: dict[str, tuple[Json | None, bool]] = field(default_factory=dict[str, tuple[Json | None, bool]])
    """Of calls, by their ids: the structured result, and whether it is an error."""

    @property
    def folder(self) -> str:
        """Where the tools of the agent work that works now."""
        return self.delegation.current.folder

    @property
    def user_id(self) -> str:
        return self.acting.user_id

    @property
    def waits_inside(self) -> bool:
        """Whether an agent waits for the person."""
        return self.delegation is not None and bool(self.delegation.asks)

    def take_by_agent(self) -> dict[str, dict[str, int]]:
        """What agents have used since it was taken the last time."""
        used, self.by_agent = self.by_agent, defaultdict(Counter)
        return {agent: dict(counted) for agent, counted in used.items()}

    def go_on_from(self, began: Beginning) -> None:
        """Count on where an answer begins in the middle of a run: the same calls have the same keys again."""
        self.message_id = began.message_id
        self.repeated = Counter((call["name"], canonical(call["arguments"])) for call in began.calls)

    def key_of(self, call: ResponseFunctionToolCall) -> str:
        """The same for the same call of the same message in another attempt; another for a second such call in one."""
        arguments = canonical(call.arguments)
        count = self.repeated[call.name, arguments]
        self.repeated[call.name, arguments] += 1
        return hashlib.sha256(json.dumps([self.message_id, call.name, arguments, count]).encode()).hexdigest()


MOST_CALLS = 6
"""How many calls of one response are made."""

_TOO_MANY = (
    f"This call was not made: of one response at most {MOST_CALLS} calls are made. Make it again if it is still needed."
)
_CUT_OFF = (
    "This call was cut off at the output limit of {tokens:,} tokens: nothing was done. Write it in parts: make several "
    "calls, each with less in it."
)
_FILE_IN_PARTS = " Write a long file with write_file for its first part and write_file with append for each other one."


def calls_not_made(calls: Sequence[ResponseFunctionToolCall], *, max_tokens: int) -> dict[str, str]:
    """Why calls of one response are not made, by their ids: what the model reads as their output.

    `max_tokens` is the output limit that the response was requested with.
    """
    cut = {call.call_id: _cut_off(call.name, max_tokens) for call in calls if call.status == "incomplete"}
    return {call.call_id: _TOO_MANY for call in calls[MOST_CALLS:]} | cut


def _cut_off(tool: str, max_tokens: int) -> str:
    sentence = _CUT_OFF.format(tokens=max_tokens)
    return sentence + _FILE_IN_PARTS if tool == "write_file" else sentence


class CallNotMade(Exception):
    """The turn ends: what was not begun is left undone."""


def canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return arguments


def as_stored(call: ResponseFunctionToolCall) -> Json:
    return {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
