"""Parameters of the run API's routes."""

from typing import Annotated

from fastapi import Path, Query

from backend.conversations.ids import PATTERN

_PATTERN = f"^{PATTERN}$"
_MOST = 100

ChatId = Annotated[
    str,
    Path(
        description="Its id, or the name that its user chose; the first message to a new name makes the chat.",
        json_schema_extra={"pattern": _PATTERN},
    ),
]
InteractionId = Annotated[
    str, Path(description="As `interaction_started` names it.", json_schema_extra={"pattern": _PATTERN})
]
InputId = Annotated[
    str, Path(description="As the response to the message names it.", json_schema_extra={"pattern": _PATTERN})
]
Limit = Annotated[int, Query(ge=1, le=_MOST, description="How many there are on a page at most.")]
Brief = Annotated[bool, Query(description="Leave `agent_events` empty, and out what the model is sent after it.")]
FewOrNone = Annotated[int, Query(ge=0, le=_MOST, description="How many interactions there are on a page at most.")]
After = Annotated[str | None, Query(description="`after` of the page before.", pattern=_PATTERN)]
Titled = Annotated[
    str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Only chats with these letters in their title.")
]
Before = Annotated[str | None, Query(description="`before` of the newer page.", pattern=_PATTERN)]
AfterStep = Annotated[int, Query(ge=0, lt=2**63, description="`after` of the page before.")]
