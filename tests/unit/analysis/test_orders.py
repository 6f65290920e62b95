"""The fewest column orders that serve all probes."""

from itertools import permutations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.analysis.orders import chain_cover, orders
from corollary.core.logic import Literal, Origin, Variable
from corollary.core.pipeline import Reference
from corollary.core.plans import pipelines_of
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.database.program.loaded_program import load_program
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms.seminaive import plan_program
from corollary.maintain.sip import Goal, sip
from corollary.source import SourceFile
from support.selection import examples

Sets = list[frozenset[int]]

some_sets = st.integers(1, 4).flatmap(
    lambda arity: st.tuples(
        st.lists(st.frozensets(st.integers(0, arity - 1), min_size=1), max_size=7), st.just(arity)
    )
)


def serves(order: tuple[int, ...], bound: frozenset[int]) -> bool:
    return set(order[: len(bound)]) == bound


def fewest(sets: Sets, arity: int) -> int:
    """The smallest number of orders, by trying: every set picks an order that serves it."""
    everyone = list(permutations(range(arity)))
    served = [frozenset(at for at, s in enumerate(sets) if serves(o, s)) for o in everyone]
    options = set(served)
    reached: set[frozenset[int]] = {frozenset()}
    count = 0
    while frozenset(range(len(sets))) not in reached:
        reached = {one | two for one, two in product(reached, options)}
        count += 1
    return count


@settings(max_examples=examples(25, 150))
@given(some_sets)
def test_a_chain_cover_is_smallest(case: tuple[Sets, int]) -> None:
    sets, arity = case
    found = chain_cover(sets, arity)
    assert all(sorted(order) == list(range(arity)) for order in found)
    assert len(set(found)) == len(found)
    assert all(any(serves(order, each) for order in found) for each in sets)
    assert len(found) == fewest(list(set(sets)), arity)


@given(some_sets, st.randoms())
def test_the_cover_does_not_depend_on_the_order_of_the_sets(
    case: tuple[Sets, int], random: object
) -> None:
    sets, arity = case
    shuffled = list(sets)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert chain_cover(shuffled, arity) == chain_cover(sets, arity)


def test_named_covers() -> None:
    def cover(arity: int, *sets: str) -> tuple[tuple[int, ...], ...]:
        return chain_cover([frozenset(map(int, each)) for each in sets], arity)

    assert cover(2) == ()
    assert cover(2, "0") == ((0, 1),)
    assert cover(2, "1") == ((1, 0),)
    assert cover(2, "1", "01") == ((1, 0),)
    assert cover(2, "0", "1", "01") == ((0, 1), (1, 0))
    assert cover(3, "0", "02", "012") == ((0, 2, 1),)
    # Greedy choice of 0 ⊂ 01 ⊂ 012 would leave 1 and 02 apart; a matching needs two orders.
    assert len(cover(3, "0", "1", "01", "02")) == 2
    assert len(cover(4, "0", "1", "2", "3", "01", "12", "23", "03")) == 4


def test_orders_of_a_pipeline() -> None:
    x, y, z = (Variable(name) for name in "xyz")
    goals = [
        Goal(Literal("p", (x, y)), Reference("p", State.ADDED)),
        Goal(Literal("q", (z, y)), Reference("q")),
        Goal(Literal("r", (x, z)), Reference("r")),
    ]
    pipeline = sip((x, z), goals, (), Origin(""), Statistics(), lead=goals[0])
    assert pipeline.adornments[0] == "ff"
    found = orders([pipeline])
    assert "p" not in found  # scanned, not probed
    assert set(found) == {"q", "r"}


def test_orders_of_a_program() -> None:
    text = """
    .decl edge(x: number, y: number)
    .decl back(x: number, y: number)
    .decl tc(x: number, y: number)
    tc(x, y) :- edge(x, y).
    tc(x, z) :- tc(x, y), edge(y, z).
    tc(x, z) :- tc(x, y), back(z, y).
    """
    plan = plan_program(load_program(parse(SourceFile("orders.dl", text))).normal, Statistics())
    assert plan.orders == {"edge": ((0, 1),), "back": ((1, 0),)}
    assert plan.orders == orders(pipelines_of(plan))
