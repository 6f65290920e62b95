"""Probes that are made by one request, where tuples are outside of this process.

A stage needs tuples that are elsewhere, and a request takes long, however little it asks for. So
the pipelines *look ahead*: rows go through the stages that follow as far as what is here tells, and
what these would ask for is asked for by the same request.

    h(p, s, c, r) :- change(p, s), big1(p, c), big2(s, r).      `p` and `s` are known: one request
    h(p, s, c, r) :- change(p), big1(p, s), big2(s, r).         `s` is not: two, one after the other

Rows that a stage would drop are not dropped when its tuples are not here. What is fetched for them
is not needed, and a bound on it keeps that cheaper than another request.
"""

from collections.abc import Sequence

from corollary.engines.local.storage.runs import PendingProbe

LOOK_AHEAD_MAX_ROWS = 20_000
"""With more rows than this, stages ask for what they need one after the other."""

UPCOMING_MAX_PIPELINES = 64
"""No more pipelines that run next look ahead for one request."""

EXPECTED_MAX_TUPLES = 1 << 15
"""Fetching this many tuples takes about as long as a request that fetches none."""

SELECTIVE_RATIO = 4
"""A relation with this many times fewer tuples than it is asked for drops most rows."""


class Prefetch:
    """What a request asks for: what a stage needs, and what others will need.

    Attributes:
        probes: all of it.
    """

    def __init__(self, needed: Sequence[PendingProbe] = ()) -> None:
        self.probes = [*needed]
        self._expected = 0

    def add(self, probes: Sequence[PendingProbe]) -> None:
        """Ask for something else as well, if that does not cost much."""
        for each in probes:
            expected = max(len(each.keys), each.expected_tuples)
            if self._expected + expected <= EXPECTED_MAX_TUPLES:
                self._expected += expected
                self.probes.append(each)

    def fetch(self) -> None:
        """Fetch everything."""
        self.probes[0].fetch_with(self.probes[1:])


def is_selective(tuples: int, asked: Sequence[PendingProbe]) -> bool:
    """Whether a relation with some tuples has none for most of the keys that it is asked for."""
    return SELECTIVE_RATIO * tuples < sum(len(each.keys) for each in asked)
