"""The part of `common.telemetry.traces` that needs OpenTelemetry's SDK; it is imported only if there is an endpoint."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Timer

from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from common.telemetry.traces import Attributes, Kind

_PROPAGATOR = TraceContextTextMapPropagator()
_SHUT_DOWN_SECONDS = 2.0


class Tracing:
    """Sends spans to OTEL_EXPORTER_OTLP_ENDPOINT; the SDK reads the other OTEL_* variables, too."""

    def __init__(self, service: str) -> None:
        resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", service)})
        self._provider = TracerProvider(resource=resource)
        self._exporter = OTLPSpanExporter()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        # Not the global provider, to which libraries would add spans with errors that quote what users wrote.
        self._tracer = self._provider.get_tracer("todo-assistant")

    def start_span(
        self, name: str, attributes: Attributes | None, kind: Kind, parent: Mapping[str, str] | None = None
    ) -> Span:
        context = None if parent is None else _PROPAGATOR.extract(parent)
        return self._tracer.start_span(name, context, kind=SpanKind[kind], attributes=attributes)

    @contextmanager
    def span(
        self, name: str, attributes: Attributes | None, kind: Kind, parent: Mapping[str, str] | None
    ) -> Iterator[None]:
        span = self.start_span(name, attributes, kind, parent)
        token = attach(set_span_in_context(span))
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", type(error).__qualname__)  # its message may quote what users wrote
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            detach(token)
            span.end()

    def annotate(self, attributes: Attributes) -> None:
        if (span := get_current_span()).is_recording():  # it may have ended
            span.set_attributes(attributes)

    def record_statement(self, text: str) -> None:
        get_current_span().add_event("statement", {"db.query.text": text})

    def headers(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier

    def shut_down(self) -> None:
        """Sends the remaining spans, for at most two seconds."""
        timer = Timer(_SHUT_DOWN_SECONDS, self._exporter.shutdown)
        timer.start()
        self._provider.shutdown()
        timer.cancel()
