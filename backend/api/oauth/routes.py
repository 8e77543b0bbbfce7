"""The endpoints that OAuth clients use, which need no sign-in and no cookie: pages of any website may use them."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.routes import cors_middleware
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from backend.api.oauth.server import get_server, get_services
from backend.api.oauth.tokens import TokenProvider
from backend.api.page.renderer import PageRenderer
from common.server import json_body

_TOKEN, _REVOKE, _REGISTER = "/token", "/revoke", "/register"
_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
MAX_BODY_BYTES = 8_192  # parsing a form takes time for each byte
MAX_FIELDS = 50
MAX_VALUES = 200
_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


def list_public_paths(path: str) -> frozenset[str]:
    """Lists the paths of these endpoints in a server below `path`."""
    return frozenset(path + one for one in (_TOKEN, _REVOKE, _REGISTER, *_list_metadata_paths(path)))


def _list_metadata_paths(path: str) -> list[str]:
    """Lists where clients look for the metadata of an issuer with a path (RFC 8414, section 3.1)."""
    return [*_METADATA, *(one + path for one in _METADATA if path)]


class OAuthRoutes:
    """`path` is that of the issuer."""

    def __init__(self, page: PageRenderer, path: str) -> None:
        self._page = page
        self._path = path

    def list_routes(self) -> list[BaseRoute]:
        endpoints = {_TOKEN: _exchange, _REVOKE: _revoke, _REGISTER: _register}
        return [
            Route("/authorize", self._page.authorization_response, methods=["GET"]),
            *(_create_route(one, _send_metadata, "GET") for one in _list_metadata_paths(self._path)),
            *(_create_route(path, _limit_body(handle), "POST") for path, handle in endpoints.items()),
        ]


_Handler = Callable[[Request], Awaitable[Response]]


def _create_route(path: str, handle: _Handler, method: str) -> Route:
    methods = [method, "OPTIONS"]
    return Route(path, cors_middleware(handle, methods), methods=methods)


def _limit_body(handle: _Handler) -> _Handler:
    async def limited(request: Request) -> Response:
        body = await request.body()
        if len(body) > MAX_BODY_BYTES:
            return _refuse(413, "invalid_request", f"The body must have at most {MAX_BODY_BYTES} bytes.")
        if handle is not _register and body.count(b"&") >= MAX_FIELDS:  # Starlette would call it invalid JSON
            return _refuse(400, "invalid_request", f"The form must have at most {MAX_FIELDS} fields.")
        return await handle(request)

    return limited


def _refuse(status: int, error: str, description: str) -> JSONResponse:
    return JSONResponse({"error": error, "error_description": description}, status, headers=_NO_STORE)


async def _send_metadata(request: Request) -> Response:
    return JSONResponse(get_server(request).metadata(), headers={"Cache-Control": "public, max-age=3600"})


async def _register(request: Request) -> Response:
    if sentence := json_body.find_problem(await request.body(), MAX_VALUES):  # each may cost an error
        return _refuse(400, "invalid_client_metadata", sentence)
    provider = TokenProvider(get_server(request), get_services(request))
    response = await RegistrationHandler(provider, ClientRegistrationOptions(enabled=True)).handle(request)
    response.headers.update(_NO_STORE)
    return response


async def _exchange(request: Request) -> Response:
    """The SDK (2.3) does not compare the resource of a token request."""
    server = get_server(request)
    if (await request.form()).get("resource", server.resource) != server.resource:
        return _refuse(400, "invalid_target", f"The resource must be {server.resource}.")
    provider = TokenProvider(server, get_services(request))
    return await TokenHandler(provider, ClientAuthenticator(provider)).handle(request)


async def _revoke(request: Request) -> Response:
    """Ends the grant of a token. The SDK's handler (2.3) demands a secret, which public clients do not have."""
    provider = TokenProvider(get_server(request), get_services(request))
    try:
        client = await ClientAuthenticator(provider).authenticate_request(request)
    except AuthenticationError as error:
        return _refuse(401, "invalid_client", error.message)
    token = (await request.form()).get("token")
    if not isinstance(token, str):
        return _refuse(400, "invalid_request", "The form needs the field token.")
    await provider.revoke(client.client_id, token)
    return Response(headers=_NO_STORE)
