"""Insertions that the change and the view determine: maintained = recomputed, after every step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from support.generators.scenarios import is_lively
from support.maintained_database import Judged, Row, Step
from support.selection import examples

SEEDS = examples(2, 30)

VIEWS = {
    "join": "v(i, k, y) :- r(i, k), s(k, y).",
    "two literals more": "v(i, k, y) :- r(i, k), s(k, y), !t(y).",
    "negation": "v(i, k) :- r(i, k), !t(k).",
    "selection": "v(i, k, y) :- r(i, k), s(k, y), i != 2, k > 0.",
    "comparison": "v(i, k, y) :- r(i, k), s(k, y), i < y.",
    "repeated": "v(i, y, i) :- r(i, i), s(i, y).",
    "constants": "v(i, k, 7) :- r(i, k), s(k, 2).",
    "null joins null": "v(i, k, y) := r(i, k), s(k, y).",
    "null does not join null": "v(i, k, y) :- r(i, k), s(k, y).",
    "virtual": "v(i, k, y) :- q(i, k), s(k, y).",
    "one literal": "v(k, i) :- q(i, k), i <= k.",
}


def program(kind: str) -> str:
    number = "number?" if "null" in kind else "number"
    columns = {"r": "ik", "e": "ik", "q": "ik", "s": "ik", "t": "i"}
    columns["v"] = "ijk"[: VIEWS[kind].split(")")[0].count(",") + 1]
    declared = "".join(
        f".decl {name}({', '.join(f'{each}: {number}' for each in listed)})\n"
        for name, listed in columns.items()
    )
    return f"""{declared}
q(i, k) :- r(i, k), k != 3.
s(k, y) :- e(k, y).
s(k, z) :- s(k, y), e(y, z).
t(k) :- e(k, 1).
{VIEWS[kind]}
"""


def steps(seed: str, values: list[int | None]) -> Iterator[Step]:
    """Yield a step that changes all, then steps that put pairs in and take some out."""
    generator = random.Random(seed)
    pairs: list[Row] = [(x, y) for x in values for y in values]
    present = {name: set(generator.sample(pairs, 5)) for name in "re"}
    yield {name: set(rows) for name, rows in present.items()}, {}
    for _ in range(10):
        name = generator.choice("rrrre")
        chosen = set(generator.sample(pairs, 2))
        chosen |= set(sorted(present[name], key=repr)[: generator.choice((0, 1))])
        yield {name: chosen - present[name]}, {name: chosen & present[name]}
        present[name] ^= chosen


@pytest.mark.parametrize("kind", VIEWS)
def test_views_that_tell_what_is_inserted(kind: str) -> None:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        judged = Judged(program(kind), "auto", "qst")
        for step in steps(f"{kind} {seed}", [*([None] if "null" in kind else [0]), 1, 2, 3, 4]):
            tx = judged.step(step)
            assert tx is not None
            added = tx.changes["v"].added.num_rows
            counts["gained"] += added > 0 and tx.stats["v"].algorithm == "autonomous"
        counts.update(judged.counts)
        judged.db.close()
    assert counts["gained"] >= SEEDS
    assert is_lively(counts["changed"], counts["steps"])
