"""Parameters and dependencies of the run API's routes."""

from typing import Annotated

from fastapi import Depends, Path, Query

from backend.api.dependencies import AppServices, LimitedUser
from backend.conversations.conversations import NAME_PATTERN, is_valid
from backend.conversations.records import Run
from backend.errors import NotFound

_PATTERN = f"^{NAME_PATTERN}$"
_MAX_PAGE = 100

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
Limit = Annotated[int, Query(ge=1, le=_MAX_PAGE, description="The maximum number of entries in a page.")]
Brief = Annotated[bool, Query(description="Leave `agent_events` empty and `final_agent_state` null.")]
FewOrNone = Annotated[int, Query(ge=0, le=_MAX_PAGE, description="The maximum number of interactions in a page.")]
After = Annotated[str | None, Query(description="`after` of the previous page.", pattern=_PATTERN)]
Titled = Annotated[
    str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Only chats whose title contains this text.")
]
Before = Annotated[str | None, Query(description="`before` of the newer page.", pattern=_PATTERN)]
AfterStep = Annotated[int, Query(ge=0, lt=2**63, description="`after` of the previous page.")]


async def get_interaction(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId
) -> Run:
    """Loads the interaction in the path. Raises `NotFound`, also for a sub-agent's run."""
    return await services.interactions.find_interaction(user.user_id, chat_id, interaction_id)


InteractionRun = Annotated[Run, Depends(get_interaction)]


async def get_input_id(
    input_id: Annotated[
        str, Path(description="The `input_id` of the response to the message.", json_schema_extra={"pattern": _PATTERN})
    ],
) -> str:
    if not is_valid(input_id):
        raise NotFound.of("message", input_id)
    return input_id


InputId = Annotated[str, Depends(get_input_id)]
