"""Traces: a span for each request, if OpenTelemetry is configured."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from corollary.errors import InputError
from corollary.serve.http.telemetry import (
    ENDPOINT_VARIABLE,
    EXPORTER_VARIABLE,
    OpenTelemetry,
    Telemetry,
    configured_telemetry,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Route:
    """What a router leaves in the scope of a request."""

    path = "/v1/relations/{relation:path}"


def test_a_span_for_each_request() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = OpenTelemetry(provider)
    parent = (b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())
    headers = [parent, (b"authorization", b"Bearer secret")]
    scope = {"method": "GET", "path": "/v1/relations/link", "headers": headers, "route": Route()}
    with telemetry.span(scope) as end:
        end(503)
    telemetry.close()
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/relations/{relation:path}"
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 503
    assert not span.status.is_ok
    assert "secret" not in span.to_json()


def test_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EXPORTER_VARIABLE, raising=False)
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    assert type(configured_telemetry()) is Telemetry
    monkeypatch.setenv(EXPORTER_VARIABLE, "none")
    assert type(configured_telemetry()) is Telemetry
    monkeypatch.setenv(EXPORTER_VARIABLE, "console")
    configured = configured_telemetry()
    assert isinstance(configured, OpenTelemetry)
    configured.close()
    monkeypatch.setenv(EXPORTER_VARIABLE, "nothing-like-it")
    with pytest.raises(InputError, match="C1635"):
        configured_telemetry()
