"""An OTLP endpoint that keeps the spans it receives."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.serving import serve_in_threads


@dataclass(frozen=True)
class Span:
    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    statements: list[str]


@dataclass
class Collector:
    url: str
    bodies: list[bytes] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        return [span for body in self.bodies.copy() for span in _parse_spans(body)]


def _parse_spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _read_attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                statements = [_read_attributes(event.attributes)["db.query.text"] for event in span.events]
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                yield Span(service, span.name, *ids, _read_attributes(span.attributes), statements)


def _read_attributes(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def run_collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.bodies.append(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    with serve_in_threads(Handler) as url:
        collector = Collector(url)
        yield collector
