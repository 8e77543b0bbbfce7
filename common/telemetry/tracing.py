"""The part of `common.telemetry.traces` that needs OpenTelemetry's SDK, loaded only when there is an endpoint."""

import os
from collections.abc import Mapping
from threading import Timer
from typing import Any

from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from common.telemetry.traces import Attributes, Kind

_PROPAGATOR = TraceContextTextMapPropagator()
_LAST_SECONDS = 2.0


class Tracing:
    """Sends spans to the endpoint that OTEL_EXPORTER_OTLP_ENDPOINT names; the SDK reads what else OTEL_* says."""

    def __init__(self, service: str) -> None:
        resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", service)})
        self._provider = TracerProvider(resource=resource)
        self._exporter = OTLPSpanExporter()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        # Not the global provider's: libraries would add spans that quote what people wrote in their errors.
        self._tracer = self._provider.get_tracer("todo-assistant")

    def start(
        self, name: str, attributes: Attributes | None, kind: Kind, parent: Mapping[str, str] | None = None
    ) -> Span:
        context = None if parent is None else _PROPAGATOR.extract(parent)
        return self._tracer.start_span(name, context, kind=SpanKind[kind], attributes=attributes)

    def current(self, *described: Any) -> "Current":
        return Current(self.start(*described))

    def annotate(self, attributes: Attributes) -> None:
        if (span := get_current_span()).is_recording():  # it may have ended
            span.set_attributes(attributes)

    def statement(self, text: str) -> None:
        get_current_span().add_event("statement", {"db.query.text": text})

    def headers(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier

    def shut_down(self) -> None:
        """Send what is left; an endpoint that is away does not hold the end up for long."""
        give_up = Timer(_LAST_SECONDS, self._exporter.shutdown)
        give_up.start()
        self._provider.shutdown()
        give_up.cancel()


class Current:
    """Makes a span the current one while a block runs, with or without `async`, and ends it."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> None:
        self._token = attach(set_span_in_context(self._span))

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        detach(self._token)
        if error is not None:
            failed(self._span, error)
        self._span.end()

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)


def failed(span: Span, error: BaseException) -> None:
    """Say that it failed, and by the kind of error only."""
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(StatusCode.ERROR)
