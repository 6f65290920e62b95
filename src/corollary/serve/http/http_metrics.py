"""What the HTTP interface counts, and the text of `/metrics` (Prometheus 0.0.4)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from corollary.database.access.principals import OWNER
from corollary.serve.answers import ServiceError
from corollary.serve.requests import StatusRequest
from corollary.serve.service import Service, ServiceMetrics

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the buckets of durations."""

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]
"""What is appended to the name of a metric, its labels, and its value."""
Family = tuple[str, str, str, Iterable[Sample]]
"""The name of a metric, its kind, what it is, and its values."""


class HttpMetrics:
    """The requests that were answered: how many, and how long they took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request; the path is the one of the route, whose parameters have no values."""
        self._requests[path, status] += 1
        self._seconds[path] = self._seconds.get(path, 0.0) + seconds
        buckets = self._buckets.setdefault(path, [0] * (len(BUCKETS_SECONDS) + 1))
        buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1

    async def read(self, service: Service, *, shows_relations: bool) -> list[Family]:
        """Return all metrics.

        Args:
            service: what counts, too.
            shows_relations: whether names and sizes of relations are among them.
        """
        found = [*self._families(service.metrics, shows_relations=shows_relations)]
        with suppress(ServiceError):  # a server that is busy or stops still says what it counts
            status = (await service.call(OWNER, StatusRequest())).json
            found += _families_of(status, shows_relations=shows_relations)
        return found

    def _families(self, service: ServiceMetrics, *, shows_relations: bool) -> Iterator[Family]:
        yield "commits_total", "counter", "Commits made.", _one(service.commits)
        yield (
            "commit_seconds",
            "summary",
            "Seconds that commits took.",
            [("_sum", {}, service.commit_seconds), ("_count", {}, service.commits)],
        )
        queued = [("", {"kind": kind}, count) for kind, count in service.queued.items()]
        yield "queue_requests", "gauge", "Requests that wait.", queued
        yield (
            "requests_total",
            "counter",
            "Requests answered.",
            [
                ("", {"path": path, "status": str(status)}, count)
                for (path, status), count in sorted(self._requests.items())
            ],
        )
        yield "request_seconds", "histogram", "Seconds that requests took.", self._durations()
        yield "subscribers", "gauge", "Subscriptions to events.", _one(service.subscribers)
        yield (
            "subscriber_lag_commits",
            "gauge",
            "Commits that the slowest subscriber is behind.",
            _one(service.subscriber_lag),
        )
        if shows_relations:
            changed = [
                ("", {"relation": relation, "sign": sign}, count)
                for (relation, sign), count in sorted(service.rows_changed.items())
            ]
            yield "rows_changed_total", "counter", "Tuples that came and went.", changed
        seen = [("", {"reader": name}, n) for name, n in sorted(service.reader_commits.items())]
        yield "reader_commit", "gauge", "The commit that a reading process has seen.", seen
        restarts = [("", {"process": name}, n) for name, n in sorted(service.restarts.items())]
        yield "restarts_total", "counter", "Restarts of processes.", restarts

    def _durations(self) -> Iterator[Sample]:
        for path, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*BUCKETS_SECONDS, None), buckets, strict=True):
                total += count
                text = "+Inf" if bound is None else f"{bound:g}"
                yield "_bucket", {"path": path, "le": text}, total
            yield "_sum", {"path": path}, self._seconds[path]
            yield "_count", {"path": path}, total


def print_metrics(families: Iterable[Family]) -> str:
    """Return metrics as Prometheus reads them."""
    lines: list[str] = []
    for name, kind, text, samples in families:
        lines += [f"# HELP corollary_{name} {text}", f"# TYPE corollary_{name} {kind}"]
        lines += [_line(f"corollary_{name}{end}", labels, at) for end, labels, at in samples]
    return "\n".join((*lines, ""))


def _families_of(status: Mapping[str, Any], *, shows_relations: bool) -> Iterator[Family]:
    """Yield what the warehouse holds."""
    waiting = _one(status["outbox"]["waiting"])
    yield "alerts_waiting", "gauge", "Alerts that are not delivered yet.", waiting
    if shows_relations:
        tuples = [
            ("", {"relation": name}, relation["tuples"])
            for name, relation in sorted(status["relations"].items())
            if relation["tuples"] is not None
        ]
        yield "relation_tuples", "gauge", "Tuples of stored relations.", tuples
        streams = {name: each for name, each in sorted(status["sources"].items()) if "lag" in each}
        for name, field, text in (
            ("source_events", "events", "Change events that have been read."),
            ("source_lag", "lag", "Change events that were left when a source was last read."),
        ):
            samples = [("", {"source": each}, found[field]) for each, found in streams.items()]
            yield name, "gauge", text, samples
        outputs = [
            *({"relation": name, "in": "delta", **e} for name, e in status["published"].items()),
            *({**each, "in": each["replica"]} for each in status["replicas"]),
        ]
        labels = [({"relation": e["relation"], "in": e["in"]}, e) for e in outputs]
        behind = [("", label, each["lag"]) for label, each in labels if each["is_output"]]
        yield "output_lag_commits", "gauge", "Commits that an output does not show yet.", behind
        seconds = [("", label, e.get("seconds") or 0.0) for label, e in labels if e["is_output"]]
        yield "output_lag_seconds", "gauge", "Age of the first of these commits.", seconds
        failed = [("", label, 1) for label, each in labels if each.get("error")]
        yield "output_failed", "gauge", "Outputs that cannot be brought forward now.", failed


def _one(value: float) -> list[Sample]:
    return [("", {}, value)]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{f'{{{inside}}}' if inside else ''} {value:.12g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
