"""Requests that schemathesis makes of the description: answers have to be as it says."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import corollary
from corollary.serve.http.openapi import openapi_document
from corollary.serve.processes.local_service import LocalService
from corollary.serve.service import ServiceLimits
from support.serve.threaded_server import ThreadedServer

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.decl weight(x: symbol, n: number, f: float) key(x)
edge("a", "b"). edge("b", "c").
weight("a", 1, 0.5).
"""
ENDLESS = ("/v1/events",)
"""Paths whose answers do not end."""
CHECKS = [
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
LIKELY = {
    "goal": st.sampled_from(['link("a", y)', "edge(x, y), !link(y, x)", "weight(x, n, f)", "p("]),
    "sql": st.sampled_from(["SELECT * FROM link", "SELECT count(*) FROM edge", "SELECT 1/0"]),
    "fact": st.sampled_from(['edge("a", "b")', 'link("a", "c")', 'link("c", "a")', "edge(x, y)"]),
    "program": st.just(PROGRAM),
    "question": st.sampled_from(['link("a", y)', "SELECT * FROM link"]),
    "relation": st.sampled_from(["link", "edge", "weight", "no_such"]),
    "min_commit": st.none(),
    "command": st.sampled_from(["query", "log", "apply", "what-if", "run"]),
    "options": st.sampled_from(
        [
            {"places": ["wh"], "goal": 'link("a", y)'},
            {"warehouse": "wh", "fact": 'edge("a", "b")'},
            {"warehouse": "wh", "insert": ["edge=new.csv"]},
            {"warehouse": "wh", "changes": "c.jsonl", "idempotency_key": "k"},
        ]
    ),
    "changes": st.sampled_from(
        [
            '{"op": "insert", "relation": "edge", "row": ["c", "d"]}',
            '{"op": "delete", "relation": "edge", "row": ["c", "d"]}',
            '{"op": "insert", "relation": "weight", "row": ["a", 2, 1.5]}',
        ]
    ),
}
"""Values with which a request gets further than to an error about them."""


@contextmanager
def fuzzed_server() -> Iterator[ThreadedServer]:
    """Give a server of a small warehouse."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "wh"
        with corollary.open(place, engine="local") as db:
            db.load(text=PROGRAM)

        def opened() -> Any:
            return LocalService.open(
                lambda: corollary.open(place, engine="local"), ServiceLimits(seconds=5.0)
            )

        with closing(ThreadedServer(place, opened)) as server:
            yield server


def send_requests(server: ThreadedServer, count: int, number: int) -> Counter[str]:
    """Send so many requests to each path, valid and invalid ones; count answers by status."""
    found: Counter[str] = Counter()
    schema = schemathesis.openapi.from_dict(openapi_document())
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in ENDLESS:
            continue
        cases = st.one_of(
            operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
        )

        def send(case: Any, data: Any) -> None:
            _improve(case, data)
            headers = {"Authorization": f"Bearer {server.token}"}
            response = case.call(base_url=server.url, headers=headers)
            case.validate_response(response, checks=CHECKS)
            assert response.status_code < 500 or response.status_code == 503, response.text
            found[str(response.status_code)] += 1
            found["requests"] += 1

        run = settings(
            max_examples=count,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )(given(cases, st.data())(send))
        seed(number)(run)()
    return found


def _improve(case: Any, data: Any) -> None:
    """Replace some values by ones that mean something; nobody waits for commits to come."""
    for fields in (case.body, case.path_parameters, case.query):
        if isinstance(fields, dict):
            for name in fields.keys() & LIKELY.keys():
                if name == "min_commit" or data.draw(st.integers(0, 3)):
                    fields[name] = data.draw(LIKELY[name])
