"""Parameters of the run API's routes."""

from typing import Annotated

from fastapi import Path, Query

from backend.conversations.conversations import NAME_PATTERN

_PATTERN = f"^{NAME_PATTERN}$"
_MOST = 100

ChatId = Annotated[
    str,
    Path(
        description="The chat's id, or a name that the user chose. The first message to a new name creates the chat.",
        json_schema_extra={"pattern": _PATTERN},
    ),
]
InteractionId = Annotated[
    str, Path(description="The `interaction_id` of `interaction_started`.", json_schema_extra={"pattern": _PATTERN})
]
InputId = Annotated[
    str, Path(description="The `input_id` of the response to the message.", json_schema_extra={"pattern": _PATTERN})
]
Limit = Annotated[int, Query(ge=1, le=_MOST, description="The maximum number of entries in a page.")]
Brief = Annotated[bool, Query(description="Leave `agent_events` empty and `final_agent_state` null.")]
FewOrNone = Annotated[int, Query(ge=0, le=_MOST, description="The maximum number of interactions in a page.")]
After = Annotated[str | None, Query(description="`after` of the previous page.", pattern=_PATTERN)]
Titled = Annotated[
    str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Only chats whose title contains this text.")
]
Before = Annotated[str | None, Query(description="`before` of the newer page.", pattern=_PATTERN)]
AfterStep = Annotated[int, Query(ge=0, lt=2**63, description="`after` of the previous page.")]
