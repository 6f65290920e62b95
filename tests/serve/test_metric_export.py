"""Metrics for OpenTelemetry: the same table as `/metrics`, and nothing that a server depends on."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import MetricsData

from corollary.errors import InputError
from corollary.serve.answers import ServiceError
from corollary.serve.http.http_metrics import HttpMetrics, print_metrics
from corollary.serve.http.metric_export import METRICS_VARIABLE, MetricExport, configured_export
from corollary.serve.http.telemetry import ENDPOINT_VARIABLE
from corollary.serve.service import ServiceMetrics


class Counted:
    """A service that has counted, and whose warehouse is out of reach."""

    def __init__(self) -> None:
        self.metrics = ServiceMetrics(
            commits=3, commit_seconds=1.5, rows_changed={("link", "+"): 7}, reader_commits={"r1": 3}
        )

    async def call(self, *_: Any) -> Any:
        raise ServiceError.of(503, "C1611", "busy", "ask again")


class Collector:
    """An exporter that keeps what it gets; the first time, it fails."""

    def __init__(self) -> None:
        self.got: list[MetricsData] = []
        self.is_closed = self.has_failed = False

    def export(self, data: MetricsData) -> None:
        if not self.has_failed:
            self.has_failed = True
            raise ConnectionError("nobody listens")
        self.got.append(data)

    def shutdown(self) -> None:
        self.is_closed = True


def test_the_same_figures_as_for_prometheus(caplog: pytest.LogCaptureFixture) -> None:
    metrics = HttpMetrics()
    for seconds in (0.001, 0.2, 0.2, 60.0):
        metrics.count("/v1/query", 200, seconds)
    collector, service = Collector(), Counted()
    export = MetricExport(collector, 0.001)

    async def work() -> list[Any]:
        async def collect() -> list[Any]:
            return await metrics.read(service, shows_relations=True)  # type: ignore[arg-type]

        running = asyncio.ensure_future(export.run(collect))
        while not collector.got:
            await asyncio.sleep(0.001)
        running.cancel()
        return await collect()

    text = print_metrics(asyncio.run(work()))
    export.close()
    assert collector.is_closed
    assert "metrics could not be exported" in caplog.text
    document = json.loads(collector.got[0].to_json())
    (resource,) = document["resource_metrics"]
    assert resource["resource"]["attributes"]["service.name"] == "corollary"
    (scope,) = resource["scope_metrics"]
    found = {each["name"]: each["data"] for each in scope["metrics"]}
    assert list(found) == re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    (commits,) = found["corollary_commits_total"]["data_points"]
    assert (commits["value"], found["corollary_commits_total"]["is_monotonic"]) == (3, True)
    (rows,) = found["corollary_rows_changed_total"]["data_points"]
    assert (rows["value"], rows["attributes"]) == (7, {"relation": "link", "sign": "+"})
    assert "is_monotonic" not in found["corollary_subscribers"]
    (durations,) = found["corollary_request_seconds"]["data_points"]
    assert (durations["count"], durations["sum"]) == (4, 60.401)
    filled = dict(zip(durations["explicit_bounds"], durations["bucket_counts"], strict=False))
    assert {bound: count for bound, count in filled.items() if count} == {0.001: 1, 0.25: 2}
    assert durations["bucket_counts"][-1] == 1
    (total,) = found["corollary_commit_seconds"]["data_points"]
    assert (total["count"], total["sum"], total["bucket_counts"]) == (3, 1.5, [3])


def test_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(METRICS_VARIABLE, raising=False)
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    assert configured_export() is None
    monkeypatch.setenv(METRICS_VARIABLE, "console")
    export = configured_export()
    assert export is not None
    export.close()
    monkeypatch.setenv(METRICS_VARIABLE, "nothing-like-it")
    with pytest.raises(InputError, match=r"C1635(.|\n)*corollary\[telemetry\]"):
        configured_export()
