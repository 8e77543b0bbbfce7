"""JSON bodies, checked before anything is made of them."""

from typing import Any

from fastapi import Request
from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders

from backend.errors import InvalidRequest
from common import json_body

NO_JSON = "The body is not JSON. Send an object with the fields of this request."


class JsonRequest(Request):
    """A request whose body FastAPI gets as it was checked and parsed here."""

    _value: Any = None

    async def load(self, *, max_values: int) -> None:
        """Reads the body, checks and parses it.

        Raises `InvalidRequest` if it is no JSON, or if `check_json` rejects it.
        """
        body = await self.body()
        check_json(body, max_values=max_values)
        try:
            self._value = from_json(body) if body else None
        except ValueError:
            raise InvalidRequest(NO_JSON) from None

    @property
    def headers(self) -> Headers:
        """Declares the body as JSON, as FastAPI parses nothing else.

        `Edge` requires that of POST and PATCH, not of PUT.
        """
        headers = MutableHeaders(raw=[*self.scope["headers"]])
        headers["content-type"] = "application/json"
        return headers

    async def json(self) -> Any:
        """Returns the value that `load` has parsed."""
        return self._value


def check_json(body: bytes, *, max_values: int = json_body.MAX_VALUES) -> None:
    """Raises `InvalidRequest` for a body that is too costly to parse, or has a NUL character, which is not storable."""
    if sentence := json_body.find_problem(body, max_values):
        raise InvalidRequest(sentence)
    if b"\\u0000" in body and any("\0" in text for text in _find_strings(body)):
        raise InvalidRequest("The text contains a NUL character. Remove it and send the text again.")


def _find_strings(body: bytes) -> list[str]:
    """Returns every string in a JSON body, keys too; none if it is no JSON."""
    try:
        waiting: list[Any] = [from_json(body)]
    except ValueError:
        return []
    found: list[str] = []
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case dict() as mapping:
                waiting.extend((*mapping, *mapping.values()))
            case list() as values:
                waiting.extend(values)
    return found
