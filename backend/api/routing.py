"""The class of the routes that only a user may call."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from backend.api.body import JsonRequest
from backend.api.dependencies import authenticate
from common import json_body


class UserRoute(APIRoute):
    """Authenticates the user, then checks the body. FastAPI (0.165) would parse the body before any dependency."""

    max_values: ClassVar[int] = json_body.MAX_VALUES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the route's handler, which authenticates the user and checks the body before FastAPI parses it."""
        handle_checked = super().get_route_handler()

        async def handle(request: Request) -> Response:
            await authenticate(request)
            if self.body_field is not None:
                request = JsonRequest(request.scope, request.receive)
                await request.load(max_values=self.max_values)
            return await handle_checked(request)

        return handle
