"""The figures of `/metrics` for OpenTelemetry, if it is configured: the same table, pushed.

It is configured as traces are, by the variables that OpenTelemetry has: `OTEL_METRICS_EXPORTER`
names the exporter (`console`, `otlp`), or `OTEL_EXPORTER_OTLP_ENDPOINT` says where a collector is;
`OTEL_METRIC_EXPORT_INTERVAL` has the milliseconds between two exports.
"""

import asyncio
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from corollary.serve.http.http_metrics import Family, Sample
from corollary.serve.http.telemetry import configured_exporter, service_resource
from corollary.version import __version__

METRICS_VARIABLE = "OTEL_METRICS_EXPORTER"
INTERVAL_VARIABLE = "OTEL_METRIC_EXPORT_INTERVAL"
INTERVAL_MILLISECONDS = 60_000
_log = logging.getLogger("corollary")


class MetricExport:
    """Hands the families of metrics to an exporter of OpenTelemetry, again and again.

    Args:
        exporter: of the package `opentelemetry-sdk`, or for it.
        seconds: between two exports.
    """

    def __init__(self, exporter: Any, seconds: float) -> None:
        self._exporter = exporter
        self._seconds = seconds
        self._began = time.time_ns()

    async def run(self, collect: Callable[[], Awaitable[Sequence[Family]]]) -> None:
        """Export until it is cancelled; what goes wrong is logged, and tried again."""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                families = await collect()
                await asyncio.to_thread(self.send, families)
            except Exception:  # noqa: BLE001 - a server does not depend on who watches it
                _log.warning("metrics could not be exported", exc_info=True)

    def send(self, families: Sequence[Family]) -> None:
        """Export once."""
        from opentelemetry.sdk.metrics import export
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        metrics = [
            export.Metric(f"corollary_{name}", text, "", self._data(kind, list(samples)))
            for name, kind, text, samples in families
        ]
        scope = export.ScopeMetrics(InstrumentationScope("corollary", __version__), metrics, "")
        resource = export.ResourceMetrics(service_resource(), [scope], "")
        self._exporter.export(export.MetricsData([resource]))

    def close(self) -> None:
        """Let the exporter end."""
        self._exporter.shutdown()

    def _data(self, kind: str, samples: Sequence[Sample]) -> Any:
        """Return the values of a family as OpenTelemetry has them."""
        from opentelemetry.sdk.metrics import export

        now, cumulative = time.time_ns(), export.AggregationTemporality.CUMULATIVE
        if kind in ("histogram", "summary"):  # a summary has a sum and a count, so no bounds
            return export.Histogram(self._durations(samples, now), cumulative)
        points = [
            export.NumberDataPoint(dict(labels), self._began, now, value)
            for _, labels, value in samples
        ]
        return (
            export.Sum(points, cumulative, is_monotonic=True)
            if kind == "counter"
            else export.Gauge(points)
        )

    def _durations(self, samples: Iterable[Sample], now: int) -> list[Any]:
        from opentelemetry.sdk.metrics import export

        found: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
        for end, labels, value in samples:
            key = tuple((name, text) for name, text in labels.items() if name != "le")
            point = found.setdefault(key, {"bounds": [], "below": []})
            if end != "_bucket":
                point[end] = value
            else:
                point["below"].append(int(value))
                point["bounds"] += [] if labels["le"] == "+Inf" else [float(labels["le"])]
        points = []
        for key, point in found.items():
            total = point["below"] or [int(point["_count"])]
            counts = [at - before for at, before in zip(total, [0, *total], strict=False)]
            points.append(
                export.HistogramDataPoint(
                    dict(key),
                    self._began,
                    now,
                    int(point["_count"]),
                    point["_sum"],
                    counts,
                    point["bounds"],
                    math.inf,  # neither least nor greatest is known
                    -math.inf,
                )
            )
        return points


def configured_export() -> MetricExport | None:
    """Return what the environment asks for; None if that is nothing.

    Raises:
        InputError: it asks for an exporter that is not installed.
    """
    exporter = configured_exporter(METRICS_VARIABLE, "opentelemetry_metrics_exporter")
    if exporter is None:
        return None
    text = os.environ.get(INTERVAL_VARIABLE, "")
    milliseconds = int(text) if text.isdigit() and int(text) else INTERVAL_MILLISECONDS
    return MetricExport(exporter, milliseconds / 1000)
