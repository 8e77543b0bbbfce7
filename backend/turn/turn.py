"""One turn: what it is, what it says, and what it has left to do."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from backend.conversation.items import Ending, Hidden, Item
from backend.conversation.model_input import history
from backend.conversation.reading import Sent
from backend.conversation.runs.approvals import Approval
from backend.conversation.runs.leases import Outcome
from backend.turn.calls import Calls
from backend.turn.lifecycle import endings
from backend.turn.log import Event, Log
from backend.turn.run import Ended, Run


@dataclass(eq=False)
class Turn:
    """A running turn: what it is, what it says, and its private life.

    `on_end` runs before the outcome is written, `afterwards` when the lease is free again. The items of `closing` are
    stored with the outcome, and only then told of; `ending`, stored after them, says what kept the answer from its end.
    What is `asked` before calls are made lets the run wait instead of ending; what is `unmade` of that ends with it,
    and so do the agents that asked. One that is `detached` goes on when its
    reader leaves. Of its `usage`, `counted` was used before the run waited. `outcome` is how it ended, None where its
    run waits. `go_on` answers what was said meanwhile, once the answer has come to its end; `has_news` tells that the
    model may have something to read before that. `memory` is what the person wants remembered, `sent` what was asked
    for that the model is to read, until it has read it: an answer may take minutes.
    """

    run: Run
    log: Log = field(default_factory=Log)
    closing: list[Item] = field(default_factory=list[Item])
    ending: Ending | None = None
    asked: Sequence[Approval] = ()
    unmade: Sequence[Approval] = ()
    on_end: AsyncExitStack = field(default_factory=AsyncExitStack)
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])
    detached: bool = False
    go_on: "Work | None" = None
    has_news: bool = False
    memory: str = ""
    sent: Sent | None = None
    note_of_now: Callable[[], Hidden] = lambda: history.note("")
    usage: dict[str, Any] | None = None
    counted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stopping: Outcome | None = None
    stop_next: Outcome | None = None
    outcome: Outcome | None = None
    finishing: bool = False
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        run = self.run
        self.calls = Calls(run.acting, run.conversation_id, run.message_id or run.id, batch=run.id)

    def say(self, event: Event) -> None:
        self.ending = endings.told(event) or self.ending
        self.log.append(event)

    def use(self, model: str, by_agent: Mapping[str, Mapping[str, int]], **counted: int) -> None:
        """Add what was used: `requests`, `input_tokens` and `output_tokens`, those of the agents among them.

        Of the output, `reasoning_tokens` were thought, where a provider tells. The model and the temperature that were
        asked for are kept with it: a run that waits goes on with them.
        """
        used, temperature = self.usage or {}, self.run.choice.temperature
        warmth = {} if temperature is None else {"temperature": temperature}
        self.usage = {**used, "model": model, **warmth, **_added(used, counted)}
        if by_agent:
            before = used.get("by_agent", {})
            added = {agent: _added(before.get(agent, {}), more) for agent, more in by_agent.items()}
            self.usage["by_agent"] = {**before, **added}

    def stop(self, outcome: Outcome = "cancelled") -> None:
        """End it soon: shown text is saved, a tool in flight is recorded.

        A second stop changes nothing. One that finds the turn writing down its end is for what may follow that.
        """
        if self.stopping is not None or self.task is None:
            return
        if self.finishing:
            self.stop_next = self.stop_next or outcome
            return
        self.stopping = outcome
        self.task.cancel()

    def hear(self) -> None:
        """Something may have been said to it."""
        self.has_news = True

    def ended(self, outcome: Outcome) -> Ended:
        log = self.log
        return Ended(outcome, self.usage, self.counted, self.calls.made, log.began, log.first_event_after)


def _added(used: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: used.get(name, 0) + number for name, number in more.items()}


Work = Callable[[Turn], Awaitable[None]]
