"""What the operations of one ChatKit request share."""

from dataclasses import dataclass, field
from typing import Any

from chatkit import types as ck

from backend.runs.live_run import LiveRun
from backend.users.idempotency import IdempotencyKey


@dataclass(slots=True)
class RequestContext:
    """A request of a user, and what became of it.

    `is_guest` is that of its user. `answered_run_id` is the run whose message is answered again, `live` the run that
    the request has started or continued, and `interaction_id` that run or the one that is followed.
    """

    user_id: str
    time_zone: str | None = None
    is_guest: bool = False
    request: ck.ChatKitReq | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    key: IdempotencyKey | None = None
    answered_run_id: str | None = None
    live: LiveRun | None = None
    interaction_id: str | None = None

    def begin(self, live: LiveRun) -> None:
        """Notes the run that the request has started or continued."""
        self.live, self.interaction_id = live, live.run.id

    @property
    def is_detached(self) -> bool:
        """Whether the run goes on when its reader leaves; in ChatKit's protocol leaving means Stop."""
        return self.request is not None and self.request.metadata.get("detached") is True
