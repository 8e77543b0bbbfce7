"""Ends what a token has opened when its session is ended."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

import psycopg
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common import scopes
from common.database import DatabaseUnavailable
from common.database.ended_sessions import EndedSessions
from common.database.session_uses import SessionUses
from common.tokens import ISSUER, LEEWAY_SECONDS, OwnTokenRejected, is_from_backend
from common.tool_server.identity import reject_token
from mcp_server.errors import explain_error
from mcp_server.read_routes import reject_call


class EndWithSession:
    """Rejects requests with a token of an ended session, and ends those that are open, as if the client had left.

    A call that is being committed is completed. There are no streams: the server is stateless and answers with JSON,
    and a response that has begun is complete.
    """

    def __init__(self, app: ASGIApp, *, ended: EndedSessions, uses: SessionUses, resource_url: str | None) -> None:
        self._app = app
        self._ended = ended
        self._uses = uses
        self._resource_url = resource_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        claims = (user.access_token.claims or {}) if isinstance(user, AuthenticatedUser) else {}
        is_public = scopes.find_tool_server_scope(scope.get("path", "")) == scopes.PUBLIC
        if claims.get("iss") != ISSUER or is_from_backend(claims) or is_public:
            return await self._app(scope, receive, send)
        try:
            if await self._ended.includes(claims["sub"], claims["jti"]):
                return await self._reject()(scope, receive, send)
        except (DatabaseUnavailable, psycopg.Error) as error:
            return await reject_call(explain_error(error, is_committing=False))(scope, receive, send)
        self._uses.note(claims["sub"], claims["jti"])
        ending = asyncio.create_task(self._wait_for_end(claims))
        try:
            await self._serve(ending, scope, receive, send)
        finally:
            ending.cancel()
        return None

    async def _wait_for_end(self, claims: Mapping[str, Any]) -> None:
        rest = max(0.0, claims["exp"] + LEEWAY_SECONDS - time.time())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait_for(claims["sub"], claims["jti"]), rest)

    async def _serve(self, ending: asyncio.Task[None], scope: Scope, receive: Receive, send: Send) -> None:
        response = _Response(ending, receive, send)
        serving = asyncio.ensure_future(self._app(scope, response.receive, response.send))
        try:
            await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done() and not response.has_started:
                response.is_closed = True
                await self._reject()(scope, receive, send)
            await asyncio.wait({serving})
            if not serving.cancelled() and (error := serving.exception()):
                raise error
        finally:
            serving.cancel()

    def _reject(self) -> JSONResponse:
        return reject_token(str(OwnTokenRejected("ended")), resource_url=self._resource_url)


class _Response:
    """What a request receives and sends, until its session ends."""

    def __init__(self, ending: asyncio.Task[None], receive: Receive, send: Send) -> None:
        self._ending, self._receive, self._send = ending, receive, send
        self.has_started = self.is_closed = False

    async def receive(self) -> Message:
        receiving = asyncio.ensure_future(self._receive())
        try:
            await asyncio.wait({receiving, self._ending}, return_when=asyncio.FIRST_COMPLETED)
            return receiving.result() if receiving.done() else {"type": "http.disconnect"}
        finally:
            receiving.cancel()

    async def send(self, message: Message) -> None:
        if not self.is_closed:
            self.has_started = True
            await self._send(message)
