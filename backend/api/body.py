"""JSON bodies, checked before anything is made of them, and the class of the routes that only a user may call."""

import re
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders

from backend.errors import InvalidRequest
from common.server import json_body

NO_JSON = "The body is not JSON. Send an object with the fields of this request."
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # an odd number of backslashes: the last is no character of the text


def check_json(body: bytes, *, max_values: int = json_body.MAX_VALUES) -> None:
    """Raises `InvalidRequest` for a body that is too costly to parse, or has a NUL character, which is not storable."""
    if sentence := json_body.find_problem(body, max_values):
        raise InvalidRequest(sentence)
    if _NUL.search(body):
        raise InvalidRequest("The text contains a NUL character. Remove it and send the text again.")


class _JsonRequest(Request):
    """A request whose body FastAPI gets as it was checked and parsed here."""

    _value: Any = None

    async def load(self, *, max_values: int) -> None:
        body = await self.body()
        check_json(body, max_values=max_values)
        try:
            self._value = from_json(body) if body else None
        except ValueError:
            raise InvalidRequest(NO_JSON) from None

    @property
    def headers(self) -> Headers:
        """Declares the body as JSON, as FastAPI parses nothing else. `Edge` requires that of POST and PATCH only."""
        headers = MutableHeaders(raw=[*self.scope["headers"]])
        headers["content-type"] = "application/json"
        return headers

    async def json(self) -> Any:
        return self._value


class UserRoute(APIRoute):
    """Authenticates the user, then checks the body. FastAPI (0.165) would parse the body before any dependency."""

    max_values: ClassVar[int] = json_body.MAX_VALUES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle_checked = super().get_route_handler()

        async def handle(request: Request) -> Response:
            state = request.app.state
            request.state.user = await state.identity.authenticate(request, state.services.database)
            if self.body_field is not None:
                request = _JsonRequest(request.scope, request.receive)
                await request.load(max_values=self.max_values)
            return await handle_checked(request)

        return handle
