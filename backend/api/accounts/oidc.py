"""Sign-in at the identity provider: where the page goes, and what the provider sends the browser back with."""

import html
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from backend.accounts.accounts import get_provider_user_id, store_account
from backend.accounts.events import add_event
from backend.accounts.oidc.id_tokens import InvalidIdToken
from backend.accounts.oidc.provider import NotAllowed, Refused, Tokens, get_display_name
from backend.accounts.oidc.renewal import SESSION_SECONDS, UNRENEWED_SECONDS
from backend.accounts.oidc.sign_in import OidcSignIn
from backend.accounts.oidc.transactions import (
    SECONDS,
    SignInTransaction,
    begin_transaction,
    read_cookie,
    take,
    write_cookie,
)
from backend.accounts.sessions import AccountDisabled
from backend.api.accounts.sessions import begin_session
from backend.api.dependencies import AppServices, Services
from backend.api.identity import Identity
from backend.api.openapi import errors
from backend.errors import BackendError, NotFound, Overloaded
from backend.users.limits import check_rate
from common.server.address_turns import end_address_turn, get_network
from common.server.edge import get_own_origin

logger = logging.getLogger(__name__)

router = APIRouter()

_COOKIE = "todo_sign_in"
_PARAMETERS = ("state", "code", "iss", "error")
ReturnTo = Annotated[
    str,
    Query(
        max_length=2_000,  # with the request of an OAuth client
        pattern=r"^/([A-Za-z0-9_.~%!$&'()*+,;=:@?-][A-Za-z0-9_.~%!$&'()*+,;=:@/?-]*)?$",
        description="The path of the page to go on with, below the address of this server.",
    ),
]
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
{refresh}<title>To-do assistant</title>
</head>
<body><main><h1>{title}</h1><p>{text}</p><p><a href="{url}">{link}</a></p></main></body>
</html>
"""


_HTML: dict[str, Any] = {"text/html": {}}
_PAGES = {
    200: {"content": _HTML, "description": "A page that goes on by itself."},
    **{status: {**error, "content": _HTML} for status, error in errors(400, 403, 404, 429, 503).items()},
}


class ProviderAddress(BaseModel):
    url: str
    """Where the browser goes to sign in."""


class SignInFailed(BackendError):
    """The identity provider did not confirm the sign-in. Sign in again."""

    code, status = "sign_in_failed", 403


class SignInOver(BackendError):
    """This sign-in has expired, is finished already, or was begun in another browser. Sign in again."""

    code, status = "sign_in_over", 400


class SignInNotAllowed(BackendError):
    """The identity provider knows you, but you may not use this server. Ask its operator."""

    code, status = "sign_in_not_allowed", 403


class SignInDeclined(BackendError):
    """The identity provider did not let you in."""

    code, status = "sign_in_declined", 403


@router.post("/session/provider", responses=errors(400, 404, 429, 503))
async def begin_provider_sign_in(
    request: Request, services: AppServices, response: Response, return_to: ReturnTo = "/"
) -> ProviderAddress:
    """Begins a sign-in at the identity provider (AUTH_MODE=oidc), which ends at `GET /session/callback`."""
    oidc = _get_oidc(request, services)
    transaction = begin_transaction(return_to)
    async with _take_turn(request, services, oidc):
        url = await oidc.provider.create_authorization_url(transaction, _get_redirect_uri(request))
    _set_cookie(request, response, oidc, [*_read_cookie(request, oidc), transaction])
    response.headers["Cache-Control"] = "no-store"
    return ProviderAddress(url=url)


@router.get("/session/callback", responses=_PAGES)
async def finish_provider_sign_in(request: Request, services: AppServices) -> Response:
    """Signs the user in with the answer of the identity provider, and goes on with the page.

    With AUTH_MODE=proxy it only goes on: a browser that opens it has been signed in by the proxy.
    """
    identity: Identity = request.app.state.identity
    if identity.proxy is not None:
        return _go_on(f"{_get_own_url(request)}/")
    oidc = _get_oidc(request, services)
    parameters = {name: request.query_params.getlist(name) for name in _PARAMETERS}
    sent = {name: values[0] for name, values in parameters.items() if len(values) == 1}
    transaction, others = take(_read_cookie(request, oidc), sent.get("state", ""))
    try:
        if transaction is None or any(len(values) > 1 for values in parameters.values()):
            raise SignInOver
        response = _go_on(f"{_get_own_url(request)}{transaction.return_to}")
        async with _take_turn(request, services, oidc):
            await _sign_in(request, services, oidc, response, transaction, sent)
    except BackendError as error:
        response = _render("You are not signed in.", str(error), "Back to sign-in", f"{_get_own_url(request)}/")
        response.status_code = error.status
    if transaction is not None:
        _set_cookie(request, response, oidc, others)
    return response


async def _sign_in(
    request: Request,
    services: Services,
    oidc: OidcSignIn,
    response: Response,
    transaction: SignInTransaction,
    sent: dict[str, str],
) -> None:
    """Begins a session, of which the response gets the cookie."""
    if not await oidc.provider.is_from_here(sent.get("iss")):
        logger.warning("an authorization response names another issuer")
        raise SignInFailed
    if "error" in sent or "code" not in sent:
        logger.info("the identity provider declined a sign-in: %s", ascii(sent.get("error"))[:100])
        raise SignInDeclined
    try:
        tokens, claims = await oidc.provider.exchange_code(sent["code"], transaction, _get_redirect_uri(request))
    except Refused:
        raise SignInFailed from None
    except InvalidIdToken as error:
        logger.warning("the identity provider sent an invalid ID token: %s", error)
        raise SignInFailed from None
    except NotAllowed as error:
        user_id = get_provider_user_id(oidc.provider.issuer, error.subject)
        await oidc.sessions.refuse(user_id)  # of a session that lasts only twelve hours, no renewal could tell it
        await add_event(services.database, user_id, "sign_in_failed", reason="OIDC_ALLOWED does not match")
        raise SignInNotAllowed from None
    await _begin_session(request, services, oidc, response, tokens, claims["sub"], get_display_name(claims))


async def _begin_session(
    request: Request,
    services: Services,
    oidc: OidcSignIn,
    response: Response,
    tokens: Tokens,
    subject: str,
    name: str,
) -> None:
    issuer = oidc.provider.issuer
    user_id = get_provider_user_id(issuer, subject)
    seconds = SESSION_SECONDS if tokens.refresh_token else UNRENEWED_SECONDS
    if await store_account(services.database, user_id, name, issuer=issuer, subject=subject):
        await add_event(services.database, user_id, "account_made", by=issuer)
    try:
        begun = await begin_session(request, response, user_id, expires=int(time.time()) + seconds)
    except AccountDisabled:
        await add_event(services.database, user_id, "sign_in_failed", reason="the account is disabled")
        raise
    assert begun.session_id
    await oidc.sessions.add(user_id, begun.session_id, subject, tokens)


@asynccontextmanager
async def _take_turn(request: Request, services: Services, oidc: OidcSignIn) -> AsyncIterator[None]:
    """Holds one of the places for requests to the provider; it may be slow, and then holds up no other requests."""
    check_rate(services.provider_limit, get_network(_get_address(request)))
    if oidc.turns.locked():
        raise Overloaded
    async with oidc.turns:
        end_address_turn(request.scope)
        yield


def _get_oidc(request: Request, services: Services) -> OidcSignIn:
    if services.oidc is None:
        raise NotFound(f"There is nothing at {request.url.path}: users of this server do not sign in at a provider.")
    return services.oidc


def _get_own_url(request: Request) -> str:
    return get_own_origin(request.scope, request.headers) + request.scope.get("root_path", "")


def _get_redirect_uri(request: Request) -> str:
    return f"{_get_own_url(request)}/session/callback"


def _get_address(request: Request) -> str:
    return request.client.host if request.client else ""


def _get_cookie_name(request: Request) -> str:
    return f"__Host-{_COOKIE}" if request.url.scheme == "https" else _COOKIE


def _read_cookie(request: Request, oidc: OidcSignIn) -> list[SignInTransaction]:
    return read_cookie(request.cookies.get(_get_cookie_name(request), ""), oidc.sealer)


def _set_cookie(request: Request, response: Response, oidc: OidcSignIn, transactions: list[SignInTransaction]) -> None:
    """Sets the cookie to these transactions. It is Lax, because the provider's page is what leads back to it."""
    response.set_cookie(
        _get_cookie_name(request),
        write_cookie(transactions, oidc.sealer) if transactions else "",
        max_age=SECONDS if transactions else 0,
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="lax",
    )


def _go_on(url: str) -> HTMLResponse:
    """Renders a page that goes on by itself.

    It is of this site, so that the Strict cookie of a session is sent next; in a redirect of the provider it might not.
    """
    refresh = f'<meta http-equiv="refresh" content="0; url={html.escape(url)}">'
    return _render("You are signed in.", "The page goes on by itself.", "Continue", url, refresh=refresh)


def _render(title: str, text: str, link: str, url: str, *, refresh: str = "") -> HTMLResponse:
    texts = {name: html.escape(one) for name, one in {"title": title, "text": text, "link": link, "url": url}.items()}
    return HTMLResponse(_PAGE.format(refresh=refresh, **texts), headers={"Cache-Control": "no-store"})
