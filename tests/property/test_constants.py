"""Views that need recursions for some constants only: maintained = recomputed, after every step.

The recursions are virtual and nobody watches them, so that constants are pushed into copies of
them (`active.specialise`); the views that read them are judged by the oracle.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.arrow import to_python
from support.comparison import comparable
from support.generators.programs import literals, programs, render, updates
from support.generators.scenarios import is_lively, unhurried
from support.maintained_database import (
    Row,
    Step,
    after,
    apply,
    derived_relations,
    opened,
    truth,
    with_virtual,
)
from support.selection import examples, sampled

EXAMPLES = examples(2, 100)
SEEDS = examples(1, 6)

RECURSIONS = {
    "doubled": "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).\n",
    "through each other": "p(x, y) :- e(x, y).\np(x, z) :- q(y, x), e(y, z).\n"
    "q(y, x) :- p(x, y).\nq(y, x) :- q(z, x), p(z, y), y != 2.\n",
    "both ways": "p(x, y) :- e(x, y).\np(x, z) :- q(y, x), e(y, z).\n"
    "q(y, x) :- p(x, y).\nq(y, x) :- q(z, x), p(y, z), y != 2.\n",
    "same generation": "p(x, x) :- e(x, _).\np(x, y) :- e(x, u), p(u, v), e(y, v).\n",
    "three times": "p(x, y) :- e(x, y).\np(x, y) :- p(x, u), e(u, w), p(w, v), e(s, v), p(s, y).\n",
    "negation below": "q(x, y) :- e(x, y), !e(y, x).\nr(x) :- q(x, _).\n"
    "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), !r(y), p(y, z), !q(z, x).\n",
    "constants inside": "p(x, y) :- e(x, y).\np(1, y) :- p(2, x), p(x, y).\n"
    "p(x, z) :- p(x, y), p(y, 3), p(y, z).\n",
    "computed": "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, w), z = (w + 1) % 6, e(z, _).\n",
    "null joins null": "p(x, y) :- e(x, y).\np(x, z) := p(x, y), p(y, z).\n",
}
BOUND_FIRST = "a(y) :- p(1, y).\nc(y) :- p(x, y), x = 2, !a(y).\n"
BOUND_SECOND = "b(x) :- p(x, 2), !p(x, 3).\n"
FIRST_ONLY = ("constants inside", "computed")
"""In these `p` is needed as a whole for constants of its second argument."""


def judge(text: str, views: Collection[str], steps: Iterable[Step]) -> Counter[str]:
    """Hold the views after every step against the oracle; nothing else is watched or stored."""
    hidden = [name for name in derived_relations(text) if name not in views]
    counts: Counter[str] = Counter()
    before = truth(text, {})
    assert before is not None
    base: dict[str, set[Row]] = {name: set() for name in before}
    db = opened(with_virtual(text, hidden))
    for step in steps:
        base = after(base, step)
        expected = truth(text, base)
        if expected is None:
            break  # nobody may have asked for what fails
        tx = apply(db, step)
        for name in views:
            rows, was, change = expected[name], before[name], tx.changes[name]
            found = [comparable(to_python(each)) for each in (change.added, change.removed)]
            wanted = [comparable(rows - was), comparable(was - rows)]
            assert found == wanted, f"{name} changes by {found}, not {wanted}\n{text}\n{base}"
        counts["changed"] += any(expected[name] != before[name] for name in views)
        before = expected
        counts["steps"] += 1
    counts["copied"] = any(".magic" in name for name in db._state.planned_program.relations)
    db.close()
    return counts


def flips(seed: str, values: Sequence[int | None]) -> Iterator[Step]:
    """Yield steps that put some pairs in and take others out."""
    generator = random.Random(seed)
    pairs = [(x, y) for x in values for y in values]
    present: set[Row] = set()
    for _ in range(12):
        chosen: set[Row] = set(generator.sample(pairs, 2))
        chosen |= set(generator.sample(sorted(present, key=repr), min(1, len(present))))
        yield {"e": chosen - present}, {"e": chosen & present}
        present ^= chosen


@pytest.mark.slow
@pytest.mark.parametrize("recursion", sampled(RECURSIONS, 4))
def test_recursions_that_are_read_for_constants(recursion: str) -> None:
    rules = RECURSIONS[recursion] + BOUND_FIRST
    rules += "" if recursion in FIRST_ONLY else BOUND_SECOND
    type_, values = ("number?", [None, 1, 2, 3]) if ":=" in rules else ("number", [*range(5)])
    columns = dict.fromkeys("epq", f"x: {type_}, y: {type_}")
    columns |= dict.fromkeys("rabc", f"x: {type_}")
    text = "".join(
        f".decl {name}({each})\n" for name, each in columns.items() if f"{name}(" in rules
    )
    views = [name for name in "abc" if f"{name}(" in rules]
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        counts.update(judge(text + rules, views, flips(f"{recursion} {seed}", values)))
    is_copied = recursion != "both ways"  # `p` is called with either argument there
    assert counts["copied"] == SEEDS * is_copied
    assert is_lively(counts["changed"], counts["steps"])


def with_views(text: str, data: st.DataObject) -> tuple[str, list[str]]:
    """Return a program with a view for a constant of each derived relation, and the views."""
    views = []
    for name in derived_relations(text):
        (declared,) = re.findall(rf"(?m)^\.decl {name}\((.*)\)", text)
        columns = re.findall(r"(\w+): (\w+(?:\([0-9,]+\))?\??)", declared)
        if not columns:
            continue
        at = data.draw(st.integers(0, len(columns) - 1))
        values = literals(columns[at][1].split("(")[0])
        slots = [f"v{each}" for each in range(len(columns))]
        head = ", ".join(slots[:at] + slots[at + 1 :])
        slots[at] = render(data.draw(st.sampled_from(values)))
        kept = [f"v{k}: {type_}" for k, (_, type_) in enumerate(columns) if k != at]
        text += f".decl {name}_at({', '.join(kept)})\n"
        text += f"{name}_at({head}) :- {name}({', '.join(slots)}).\n"
        views.append(f"{name}_at")
    return text, views


@pytest.mark.smoke
def test_random_programs_that_are_read_for_constants() -> None:
    counts: Counter[str] = Counter()

    @unhurried(EXAMPLES)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(programs(simple=True))
        text, views = with_views(case.text, data)
        steps = [(case.facts, {}), *data.draw(updates(case))]
        counts.update(judge(text, views, steps))

    run()
    assert counts["copied"] >= EXAMPLES // 2
    assert counts["changed"] >= EXAMPLES
