"""The page's side of OAuth: what a client asks for, the user's decision, and the clients that the user has allowed."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from backend.accounts.codes import make_code
from backend.accounts.events import add_event
from backend.accounts.grants import Grants
from backend.api.dependencies import AppServices, LimitedUser, Services, UserRoute, forbid_caching
from backend.api.errors import ForeignOrigin
from backend.api.identity import AuthenticatedUser, is_from_own_page
from backend.api.oauth.authorization import AuthorizationRequest, read_request
from backend.api.oauth.clients import describe_address, digest_id
from backend.api.oauth.server import AuthorizationServer
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.errors import BackendError, NotFound
from backend.users.limits import check_rate

router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])

CODE_SECONDS = 60
Scope = Literal["tasks:read", "tasks"]
ClientId = Annotated[
    str, Path(max_length=100, pattern="^[A-Za-z0-9_-]+$", description="The `id` of a client in the list.")
]


class PageOnly(BackendError):
    """Only you can allow a program, on the page: sign in there."""

    code, status = "page_only", 403


class AuthorizationShown(BaseModel):
    name: str
    """What the client calls itself."""
    host: str | None
    """The host of the client's metadata document, which proves whose client it is; None for any other client."""
    address: str
    """Where the answer goes: a host, or the scheme of another program, such as `cursor:`."""
    scopes: list[Scope]
    problem: str | None
    """Why the request cannot be allowed."""


class ConsentDecision(RequestBody):
    allow: bool


class Answered(BaseModel):
    location: str
    """Where the browser goes with the answer."""


class ClientShown(BaseModel):
    id: str
    name: str
    address: str
    scopes: list[Scope]
    allowed: datetime
    last_used: datetime
    """To ten minutes."""
    expires: datetime
    """When it ends if it is not used until then."""


class ClientList(BaseModel):
    clients: list[ClientShown]


async def get_authorization_server(request: Request) -> AuthorizationServer:
    """Raises `NotFound` in a mode without accounts, and `PageOnly` for a request with a token."""
    server: AuthorizationServer | None = request.app.state.authorization_server
    if server is None:
        raise NotFound("This server gives no tokens to programs: it has no accounts.")
    if not request.state.user.sign_in.is_by_page:
        raise PageOnly
    if not is_from_own_page(request):
        raise ForeignOrigin
    return server


PageServer = Annotated[AuthorizationServer, Depends(get_authorization_server)]


async def get_authorization_request(request: Request, server: PageServer) -> AuthorizationRequest:
    return await read_request(request.query_params, server)


Asked = Annotated[AuthorizationRequest, Depends(get_authorization_request)]


@router.get("/authorization", responses=errors(404))
async def describe_authorization(_: LimitedUser, asked: Asked) -> AuthorizationShown:
    """Returns what a client asks for; the query is that of `/authorize`."""
    return AuthorizationShown(
        name=asked.client.name,
        host=asked.client.host,
        address=describe_address(asked.redirect_uri),
        scopes=[*asked.scopes],  # pyright: ignore[reportArgumentType]
        problem=asked.problem.sentence if asked.problem else None,
    )


@router.post("/authorization", responses=errors(404))
async def decide_authorization(
    user: LimitedUser, services: AppServices, server: PageServer, asked: Asked, body: ConsentDecision
) -> Answered:
    """Returns where the browser takes the user's decision; the query is that of `/authorize`."""
    if asked.problem:
        answer = {"error": asked.problem.error, "error_description": asked.problem.sentence}
    elif body.allow:
        answer = {"code": await _allow(user, services, asked)}
    else:
        answer = {"error": "access_denied", "error_description": "The user has not allowed it."}
    return Answered(location=asked.answer(server.issuer, **answer))


async def _allow(user: AuthenticatedUser, services: Services, asked: AuthorizationRequest) -> str:
    details = {
        "client": digest_id(asked.client.id),
        "name": asked.client.name,
        "address": describe_address(asked.redirect_uri),
        "redirect_uri": asked.redirect_uri,
        "challenge": asked.challenge,
        "scopes": asked.scopes,
        "by": user.sign_in.session_id,
    }
    check_rate(services.sign_in_limit, user.user_id)  # each is logged
    told = {name: details[name] for name in ("name", "address", "scopes")}
    await add_event(services.database, user.user_id, "client_allowed", **told)
    return await make_code(services.database, user.user_id, "authorization", seconds=CODE_SECONDS, details=details)


@router.get("/clients")
async def list_clients(user: LimitedUser, services: AppServices) -> ClientList:
    """Returns the programs that the user has allowed to use their tasks, the last used first."""
    clients = await Grants(services.database, services.sessions).list_open(user.user_id)
    return ClientList(
        clients=[
            ClientShown(
                id=one.id,
                name=one.name,
                address=one.address,
                scopes=one.scopes,  # pyright: ignore[reportArgumentType]
                allowed=one.created_at,
                last_used=one.last_used_at,
                expires=one.expires_at,
            )
            for one in clients
        ]
    )


@router.delete("/clients/{client_id}", status_code=204, responses=errors(404))
async def end_client(client_id: ClientId, user: LimitedUser, services: AppServices) -> None:
    """Ends what the user has allowed a program: within a second, its tokens open nothing."""
    if not await Grants(services.database, services.sessions).end(user.user_id, client_id, by="user"):
        raise NotFound.of("client", client_id)
