"""What a turn is, and how it ended: values that stores and reports take."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backend.conversation.acting import Acting
from backend.conversation.items import Said
from backend.conversation.runs.kept import Keyed
from backend.conversation.runs.leases import Outcome
from backend.model.choices import AS_SET, Choice


@dataclass(frozen=True)
class Run:
    """One answer in a conversation, for one person.

    `said` was stored when it began. `message_id` is the message that it answers. One that is `instead_of` a message
    stands beside the run that had answered it: it answers it again, or answers `said` in its place. `time_zone` is the
    person's, if it is known, and `wall_time` what their clock shows. Of one that has waited, perhaps in another
    process, `told` events were published before it went on. A new conversation may have a `name`, and one that its
    person `left` for it; `keyed` is the request that asked for the run, where that may come again. Tools that are
    `allowed` are not asked about: what was clicked to begin it was the consent. `choice` is the model that it asks.
    """

    id: str
    user_id: str
    conversation_id: str
    is_new: bool = False  # this run made the conversation
    name: str | None = None
    left: str | None = None
    keyed: Keyed | None = None
    allowed: tuple[str, ...] = ()
    told: int = 0
    said: Said | None = None
    message_id: str | None = None
    instead_of: str | None = None
    choice: Choice = AS_SET
    time_zone: str | None = None
    wall_time: datetime | None = None

    @property
    def acting(self) -> Acting:
        return Acting(self.user_id, self.id, self.time_zone)


@dataclass(frozen=True)
class Ended:
    """How a run ended; `began` as `time.perf_counter` tells it, `first_event_after` in seconds.

    `usage` is that of all the run, of which `counted` was told when it began to wait.
    """

    outcome: Outcome
    usage: Mapping[str, Any] | None
    counted: Mapping[str, Any]
    tool_calls: int
    began: float
    first_event_after: float | None
