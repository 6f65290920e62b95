"""Traces for OpenTelemetry, if it is configured: a span for each request.

It is configured by the variables that OpenTelemetry has for it: `OTEL_TRACES_EXPORTER` names the
exporter (`console`, `otlp`), or `OTEL_EXPORTER_OTLP_ENDPOINT` says where an OTLP collector is.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from corollary.errors import InputError
from corollary.version import __version__

EXPORTER_VARIABLE = "OTEL_TRACES_EXPORTER"
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
SERVICE_VARIABLE = "OTEL_SERVICE_NAME"


class Telemetry:
    """Makes spans; this one makes none."""

    @contextmanager
    def span(self, scope: Any) -> Iterator[Callable[[int], None]]:  # noqa: ARG002 - of an interface
        """Give a function that takes the status of the answer at the end."""
        yield _nothing

    def close(self) -> None:
        """Send what is left."""


class OpenTelemetry(Telemetry):
    """Makes spans of OpenTelemetry, and hands them to an exporter.

    Args:
        provider: makes tracers; its `shutdown` sends what is left.
    """

    def __init__(self, provider: Any) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("corollary", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._server_kind = trace.SpanKind.SERVER
        self._error = trace.StatusCode.ERROR

    @contextmanager
    def span(self, scope: Any) -> Iterator[Callable[[int], None]]:
        """Give a function that takes the status of the answer at the end."""
        carrier = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in (b"traceparent", b"tracestate")
        }
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._propagator.extract(carrier),
            kind=self._server_kind,
            attributes=attributes,
        ) as span:

            def end(status: int) -> None:
                route = getattr(scope.get("route"), "path", None)
                if route is not None:
                    span.update_name(f"{scope['method']} {route}")
                    span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_status(self._error)

            yield end

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def _nothing(status: int) -> None:
    """Ignore the status."""


def configured_telemetry() -> Telemetry:
    """Return what the environment asks for.

    Raises:
        InputError: it asks for an exporter that is not installed.
    """
    exporter = configured_exporter(EXPORTER_VARIABLE, "opentelemetry_traces_exporter")
    if exporter is None:
        return Telemetry()
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=service_resource())
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return OpenTelemetry(provider)


def configured_exporter(variable: str, group: str) -> Any:
    """Return the exporter that the environment asks for; None if it asks for none.

    Args:
        variable: names it.
        group: the entry points among which it is.

    Raises:
        InputError: it is not installed.
    """
    asked = os.environ.get(variable, "")
    if not asked and os.environ.get(ENDPOINT_VARIABLE):
        asked = "otlp"
    if asked in ("", "none"):
        return None
    # Of OTLP there are two; this one needs no more than HTTP.
    found = [
        *entry_points(group=group, name=f"{asked}_proto_http"),
        *entry_points(group=group, name=asked),
    ]
    if not found:
        text = f"The exporter `{asked}` of `{variable}` is not installed."
        raise InputError.of("C1635", text, None, 'run `pip install "corollary[telemetry]"`')
    return found[0].load()()


def service_resource() -> Any:
    """Return how OpenTelemetry knows this server."""
    from opentelemetry.sdk.resources import Resource

    return Resource.create({"service.name": os.environ.get(SERVICE_VARIABLE, "corollary")})
