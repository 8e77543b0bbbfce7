"""OpenTelemetry spans; without an endpoint none is made."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from threading import Timer
from typing import Literal

from opentelemetry.context import attach, detach
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from common.telemetry import logs

REQUEST_ID_HEADER = "x-request-id"
Kind = Literal["INTERNAL", "SERVER", "CLIENT"]
Attributes = Mapping[str, str | int | float]

_PROPAGATOR = TraceContextTextMapPropagator()
_SHUT_DOWN_SECONDS = 2.0
_tracer: Tracer | None = None


@asynccontextmanager
async def export_traces(service: str, endpoint: str | None) -> AsyncIterator[None]:
    """Sends spans to `endpoint`, which the SDK reads from its variable like its other settings (OTEL_*)."""
    global _tracer
    if endpoint is None:
        yield
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", service)}))
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    # Not the global provider, to which libraries would add spans with errors that quote what users wrote.
    _tracer = provider.get_tracer("todo-assistant")
    try:
        yield
    finally:
        _tracer = None
        timer = Timer(_SHUT_DOWN_SECONDS, exporter.shutdown)  # what is not sent by then is lost
        timer.start()
        await asyncio.to_thread(provider.shutdown)
        timer.cancel()


def start_span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "INTERNAL", parent: Mapping[str, str] | None = None
) -> Span | None:
    """Returns a span that the caller ends and that is never the current one; `parent` are the headers of a request."""
    if _tracer is None:
        return None
    context = None if parent is None else _PROPAGATOR.extract(parent)
    return _tracer.start_span(name, context, kind=SpanKind[kind], attributes=attributes)


@contextmanager
def span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "INTERNAL", parent: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Makes a new span the current one while a block runs."""
    if (started := start_span(name, attributes, kind=kind, parent=parent)) is None:
        yield
        return
    token = attach(set_span_in_context(started))
    try:
        yield
    except BaseException as error:
        started.set_attribute("error.type", type(error).__qualname__)  # its message may quote what users wrote
        started.set_status(StatusCode.ERROR)
        raise
    finally:
        detach(token)
        started.end()


def annotate(attributes: Attributes) -> None:
    if (current := get_current_span()).is_recording():  # it may have ended
        current.set_attributes(attributes)


def record_statement(text: str) -> None:
    """Adds an SQL statement, without its values, to the current span."""
    get_current_span().add_event("statement", {"db.query.text": text})


def headers() -> dict[str, str]:
    """Returns the headers by which another service continues the current trace and logs the request's id."""
    request_id = logs.request_id.get()
    carrier = {} if request_id is None else {REQUEST_ID_HEADER: request_id}
    _PROPAGATOR.inject(carrier)
    return carrier
