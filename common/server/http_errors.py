"""Sentences about requests to a path that a service does not have, or with a method that a path does not have."""

from collections.abc import Sequence
from http import HTTPStatus

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from common.text import join_words

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def explain_status(status: int, scope: Scope, methods: Sequence[str]) -> str:
    """Returns a sentence about an error that a web framework raises; `methods` are those that the path has."""
    if status == HTTPStatus.NOT_FOUND:
        return f"There is nothing at {scope['path']}."
    if status == HTTPStatus.METHOD_NOT_ALLOWED and methods:
        return f"{scope['method']} is not allowed at {scope['path']}. Use {join_words(methods, 'or')}."
    return f"{HTTPStatus(status).phrase}."


def list_methods(scope: Scope, routes: Sequence[BaseRoute]) -> list[str]:
    """Returns the methods of a path; the Allow header of Starlette (1.10) has only those of the first route."""
    return [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
