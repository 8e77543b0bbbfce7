"""Personal access tokens, which only the page may make."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from backend.accounts.events import add_event
from backend.accounts.sessions import Session
from backend.accounts.tokens import DEFAULT_DAYS, MAX_NAME_LENGTH, is_token_name
from backend.api.dependencies import AppServices, LimitedUser, PageUser, UserRoute, forbid_caching
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.errors import InvalidRequest, NotFound
from backend.users.limits import check_rate
from common.commands import MAX_TOKEN_DAYS
from common.scopes import TokenScope

router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])

TokenId = Annotated[
    str, Path(max_length=100, pattern="^[A-Za-z0-9_-]+$", description="The `id` of a token in the list.")
]


def _check_name(name: str) -> str:
    if not is_token_name(name):
        raise PydanticCustomError(
            "token_name", "must be a visible text of 1 to {most} characters on one line", {"most": MAX_NAME_LENGTH}
        )
    return name


class TokenRequest(RequestBody):
    name: Annotated[str, AfterValidator(_check_name)]
    """What it is for, such as the program that uses it."""
    scopes: list[TokenScope] = Field(min_length=1, max_length=3, fail_fast=True)
    days: int = Field(default=DEFAULT_DAYS, ge=1, le=MAX_TOKEN_DAYS, strict=True)


class TokenShown(BaseModel):
    id: str
    name: str
    scopes: list[TokenScope]
    made: datetime
    last_used: datetime | None
    """To ten minutes; null if it was never used."""
    expires: datetime


class TokenMade(TokenShown):
    token: str
    """It is not stored, and shown only this once."""


class TokenList(BaseModel):
    tokens: list[TokenShown]


@router.get("/tokens")
async def list_tokens(user: LimitedUser, services: AppServices) -> TokenList:
    """Returns the user's tokens that can be used, the last used first."""
    listed = await services.sessions.list_open(user.user_id, ("token",))
    return TokenList(tokens=[_show(each) for each in listed])


@router.post("/tokens", status_code=201)
async def make_token(body: TokenRequest, user: PageUser, services: AppServices) -> TokenMade:
    """Makes a token for a program. It can do what its scopes say, and never more than the user."""
    if services.personal_tokens is None:
        raise InvalidRequest("This server has no sign-in, so programs need no token.")
    check_rate(services.sign_in_limit, user.user_id)  # ended ones are stored until they expire
    scopes = [*dict.fromkeys(body.scopes)]
    made = await services.personal_tokens.make(
        user.user_id, name=body.name, scopes=scopes, days=body.days, by=user.sign_in.session_id
    )
    return TokenMade(**_show(made.session).model_dump(), token=made.token)


@router.delete("/tokens/{token_id}", status_code=204, responses=errors(404))
async def end_token(token_id: TokenId, user: LimitedUser, services: AppServices) -> None:
    """Ends a token: within a second, it opens nothing in any process."""
    ended = await services.sessions.end(user.user_id, token_id, kinds=("token",))
    if ended is None:
        raise NotFound.of("token", token_id)
    await add_event(services.database, user.user_id, "token_ended", name=ended.name)


def _show(session: Session) -> TokenShown:
    used = session.last_used_at
    return TokenShown.model_validate(
        {
            "id": session.id,
            "name": session.name,
            "scopes": session.scopes,
            "made": session.created_at,
            "last_used": used if used > session.created_at else None,
            "expires": session.expires_at,
        }
    )
