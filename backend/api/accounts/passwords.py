"""Sign-in with passwords: the first account, which a one-time code makes, and another password."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from backend.accounts.password_sign_in import PasswordSignIn
from backend.api.accounts.sessions import Name, Password, SignedIn, begin_session, find_client, in_30_days
from backend.api.dependencies import AppServices, LimitedUser, PublicRoute, Services, UserRoute, forbid_caching
from backend.api.errors import Unauthorized
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.errors import InvalidRequest
from backend.users.limits import check_rate

router = APIRouter(route_class=PublicRoute)
user_router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])


class FirstAccount(RequestBody):
    code: Annotated[str, Field(max_length=100, description="What `./todo user setup` has printed after `#setup=`.")]
    name: Name
    password: Password


class NewPassword(RequestBody):
    old: Password
    new: Password


@router.post("/setup", responses=errors(400, 403, 429, 503))
async def make_first_account(
    request: Request, services: AppServices, response: Response, account: FirstAccount
) -> SignedIn:
    """Makes the first account of this server, and signs in with it."""
    passwords = _get_passwords(services)
    client = await find_client(request, None)
    check_rate(services.provider_limit, client.address)  # a hash is computed before the code is looked up
    user_id = await passwords.make_first_account(account.code, account.name, account.password, client)
    return await begin_session(request, response, user_id, expires=in_30_days())


@user_router.put("/session/password", responses=errors(400, 401, 403, 429, 503))
async def change_password(
    request: Request, user: LimitedUser, services: AppServices, response: Response, passwords: NewPassword
) -> SignedIn:
    """Changes the user's password, ends all sessions and tokens of the user, and begins a new session here."""
    if user.sign_in.session_id is None:
        raise Unauthorized
    new_hash = await _get_passwords(services).change_password(user.user_id, passwords.old, passwords.new)
    return await begin_session(request, response, user.user_id, expires=in_30_days(), password_hash=new_hash)


def _get_passwords(services: Services) -> PasswordSignIn:
    if services.passwords is None:
        raise InvalidRequest("This server has no passwords: its AUTH_MODE is not password.")
    return services.passwords
