"""Spans at the few places that matter. Without an endpoint nothing is loaded, and every function returns at once."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from common.telemetry.tracing import Current, Tracing

Kind = Literal["INTERNAL", "SERVER", "CLIENT"]
Attributes = Mapping[str, str | int | float]

_tracing: "Tracing | None" = None
_OFF = nullcontext()


@asynccontextmanager
async def exporting(service: str, endpoint: str | None) -> AsyncIterator[None]:
    """Trace while the block runs, if there is an endpoint."""
    global _tracing
    if endpoint is None:
        yield
        return
    from common.telemetry.tracing import Tracing

    _tracing = tracing = Tracing(service)
    try:
        yield
    finally:
        _tracing = None
        await asyncio.to_thread(tracing.shut_down)


def span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "INTERNAL", parent: Mapping[str, str] | None = None
) -> "nullcontext[None] | Current":
    """The current span while a block runs, with or without `async`; `parent` are a request's headers."""
    return _OFF if _tracing is None else _tracing.current(name, attributes, kind, parent)


def begin(name: str, attributes: Attributes | None = None, *, kind: Kind = "INTERNAL") -> "Span | None":
    """A span that is ended by hand and never the current one; None when nobody is told of it."""
    return None if _tracing is None else _tracing.start(name, attributes, kind)


def annotate(attributes: Attributes) -> None:
    """Say more of the current span."""
    if _tracing is not None:
        _tracing.annotate(attributes)


def statement(text: str) -> None:
    """Note in the current span a statement, which holds no values."""
    if _tracing is not None:
        _tracing.statement(text)


def headers() -> dict[str, str]:
    """What tells another service which span its own belong to."""
    return {} if _tracing is None else _tracing.headers()
