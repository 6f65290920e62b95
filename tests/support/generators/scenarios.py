"""Random scenarios: a program, what is virtual in it, an algorithm, and transactions.

`scenarios()` draws them, `judge()` runs one and holds every step against the oracle. `make test`
runs some hundred steps, `make fuzz` thousands; both count the steps that changed a view, since a
step that changes nothing tests little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from corollary.database.transaction import Transaction
from support.generators.programs import Case, programs, updates
from support.maintained_database import (
    ALGORITHMS,
    MIXED,
    Judged,
    SkipError,
    Step,
    derived_relations,
    rules_of,
)

EVERY = (*ALGORITHMS, MIXED)
LIVELY, FEW_LIVELY = 0.6, 0.3
"""So many of the steps must change a view; of few steps, chance decides more."""
FEW_STEPS = 100


def is_lively(changed: int, steps: int) -> bool:
    """Whether enough steps change a view."""
    return changed >= (FEW_LIVELY if steps < FEW_STEPS else LIVELY) * steps


def unhurried(examples: int) -> settings:
    """Return settings for so many scenarios: they take long, and a counterexample as it came.

    To shrink one would take longer than to find it.
    """
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=examples, suppress_health_check=slow, phases=phases)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program with transactions.

    Attributes:
        out: the rules that are not in the program at first.
        steps: each an update, and the rules that come or go with it.
    """

    case: Case
    algorithm: str
    virtual: tuple[str, ...]
    out: frozenset[str]
    steps: tuple[tuple[Step, frozenset[str]], ...]

    @property
    def text(self) -> str:
        """The program at first."""
        lines = [line for line in self.case.text.splitlines() if line not in self.out]
        return "\n".join(lines) + "\n"

    @property
    def label(self) -> str:
        """How it is counted."""
        return f"{self.algorithm}{', virtual' if self.virtual else ''}"


@st.composite
def scenarios(
    draw: st.DrawFn,
    algorithms: Sequence[str] = EVERY,
    *,
    with_virtual: bool = False,
    with_rules: bool = False,
    windowed: int | None = 0,
) -> Scenario:
    """Draw a scenario.

    Args:
        draw: Given by hypothesis.
        algorithms: One of them.
        with_virtual: Whether some derived relations, mostly all, are virtual and watched.
        with_rules: Whether rules come and go.
        windowed: At least so many rules have window functions; None: none.
    """
    case = draw(programs(windowed=windowed))
    updated = draw(updates(case))
    algorithm = algorithms[draw(st.integers(0, 9_999)) % len(algorithms)]  # no favourites
    virtual: tuple[str, ...] = ()
    if with_virtual:
        every = derived_relations(case.text)
        some = st.sets(st.sampled_from(every), min_size=1)
        virtual = every if draw(st.booleans()) else tuple(sorted(draw(some)))
    none: frozenset[str] = frozenset()
    toggled = st.just(none)
    if with_rules:
        rules = sorted({*rules_of(case.text)})
        toggled = st.frozensets(st.sampled_from(rules), max_size=3)
    out = draw(toggled)
    steps = tuple((step, draw(toggled)) for step in updated)
    return Scenario(case, algorithm, virtual, out, ((({**case.facts}, {}), none), *steps))


def judge(
    scenario: Scenario,
    place: str | None = None,
    between: Callable[[Judged, Transaction | None], None] | None = None,
) -> Counter[str]:
    """Hold every step of a scenario against the oracle; return what was covered.

    Args:
        scenario: the program and its transactions.
        place: of a warehouse.
        between: what happens after each transaction.
    """
    out = scenario.out
    try:
        judged = Judged(scenario.text, scenario.algorithm, scenario.virtual, place=place)
    except SkipError:
        return Counter(skipped=1)
    try:
        for step, toggled in scenario.steps:
            tx = judged.step(step, add=sorted(toggled & out), remove=sorted(toggled - out))
            if tx is not None:
                out = out ^ toggled
            if between is not None:
                between(judged, tx)
    except SkipError:
        judged.counts["skipped"] += 1
    finally:
        judged.db.close()
    return judged.counts
