from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.turns import Turn

LOCAL_USER = "local"


@dataclass(frozen=True)
class RequestContext:
    """Who asks, and the turn that answers; operations that do not run the model have none."""

    user_id: str
    turn: "Turn | None" = field(default=None)
