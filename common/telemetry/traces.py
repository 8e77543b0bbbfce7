"""OpenTelemetry spans. Without an endpoint OpenTelemetry is not imported and these functions do nothing."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from common.telemetry.tracing import Tracing

Kind = Literal["INTERNAL", "SERVER", "CLIENT"]
Attributes = Mapping[str, str | int | float]

_tracing: "Tracing | None" = None
_OFF = nullcontext()


@asynccontextmanager
async def export_traces(service: str, endpoint: str | None) -> AsyncIterator[None]:
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
) -> AbstractContextManager[None]:
    """Makes a new span the current one while a block runs; `parent` are the headers of a request."""
    return _OFF if _tracing is None else _tracing.span(name, attributes, kind, parent)


def start_span(name: str, attributes: Attributes | None = None, *, kind: Kind = "INTERNAL") -> "Span | None":
    """Returns a span that the caller ends and that is never the current one; None without tracing."""
    return None if _tracing is None else _tracing.start_span(name, attributes, kind)


def annotate(attributes: Attributes) -> None:
    if _tracing is not None:
        _tracing.annotate(attributes)


def record_statement(text: str) -> None:
    """Adds an SQL statement, without its values, to the current span."""
    if _tracing is not None:
        _tracing.record_statement(text)


def headers() -> dict[str, str]:
    """Returns the headers by which another service continues the current trace."""
    return {} if _tracing is None else _tracing.headers()
