"""Withdraws advice whose measured gain is too small.

The gain of a query is its own rewriting and those of the predicates that it reads. A predicate that
is not a query stays rewritten as long as a query that reads it gains enough, and a view as long as
a rewritten rule reads it.
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.advisor.advice import Advice, PredicateAdvice
from corollary.advisor.check.measurement import Measurements


def withdraw_small_gains(advice: Advice, measurements: Measurements) -> Advice:
    """Return the advice without what gains less than its options require."""
    least = advice.options.min_real_gain
    gains = {each.relation: each.speed_up for each in measurements.queries}

    def judge(name: str, each: PredicateAdvice) -> PredicateAdvice:
        found = list(_gains_of(advice, name, gains))
        if not each.is_applicable or not found or max(found) >= least:
            return each
        reason = f"the measured gain is {max(found):.2f} x, less than {least:g}"
        return replace(
            each,
            reason=reason,
            after=each.before,
            virtual_after=each.before.left_deep,
            rewritten=each.originals,
            views=(),
            work=None if each.work is None else (each.work[0], each.work[0]),
        )

    predicates = {name: judge(name, each) for name, each in advice.predicates.items()}
    used = {view for each in predicates.values() for view in each.views}
    views = {name: view for name, view in advice.views.items() if name in used}
    return replace(advice, predicates=predicates, views=views)


def _gains_of(advice: Advice, name: str, gains: dict[str, float]) -> Iterator[float]:
    """Yield the measured gains of the queries that a rewriting concerns."""
    if name in gains:
        yield gains[name]
        return
    for query, gain in gains.items():
        if name in advice.scheme.reachable([query]):
            yield gain
