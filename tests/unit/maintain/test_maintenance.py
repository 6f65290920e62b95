"""Maintenance: the papers' examples row for row, and what algorithms promise to leave undone."""

from __future__ import annotations

import random
from typing import Any

import pytest

import corollary
from corollary.core.plans import Plan
from corollary.core.states import State
from corollary.database.counters import TraceRow
from corollary.database.database import Database
from corollary.database.state import DatabaseState
from corollary.database.transaction import Transaction
from corollary.engines.local.engine import LocalEngine
from corollary.errors import EvaluationError, InputError, LimitError
from corollary.maintain.choose import RECURSIVE_SPREAD
from support.maintained_database import (
    ALGORITHMS,
    CLOSURES,
    LIMITS,
    MIXED,
    Judged,
    Row,
    apply,
    changes_of,
    closure,
    delete,
    flips,
    held,
    insert,
    opened,
    pairs,
    with_virtual,
)
from support.selection import examples, sampled

STORED = [each for each in ALGORITHMS if each != "counting"]
STEPS = examples(20, 50)


def shown(rows: tuple[list[Any], ...]) -> str:
    """Tuples of two nodes as `ab bc`."""
    return " ".join("".join(row) for row in rows)


def table(trace: list[TraceRow]) -> list[tuple[str, ...]]:
    """A trace as the papers print it, without the rows whose approximation is empty."""
    return [
        (
            row.rule,
            " ".join(f"{name} {''.join(each)}" for name, each in row.updates),
            shown(row.approximation),
            shown(row.disqualified),
            shown(row.actual),
        )
        for row in trace
        if row.approximation
    ]


def total(tx: Transaction, counter: str) -> int:
    """A counter over all relations."""
    return sum(each.counts.get(counter, 0) for each in tx.stats.values())


# ---------------------------------------------------------------------------------- worked examples

FAN = "ab ac bd cd d1 d2 d3 d4"
"""Figure 2 of the paper on EPF, n = 4; the nodes e1 … en are 1 … n."""

GRAPH = "ab ac be cd df ef eg fg fh"
"""Figure 1 of the entry on recursive views, as it was reconstructed."""


@pytest.mark.parametrize("virtual", [(), ("reach",)], ids=["stored", "virtual"])
def test_epf_goes_through_the_rows_of_figure_3(virtual: tuple[str, ...]) -> None:
    db = opened(closure(), "epf", virtual)
    insert(db, "edge", pairs(FAN))
    tx = delete(db, "edge", pairs("bd"), is_traced=True)
    first, second = "reach(x, y) :- edge(x, y).", CLOSURES["left-linear"]
    assert table(tx.trace) == [
        (first, "edge bd", "bd", "", "bd"),
        (second, "reach bd", "b1 b2 b3 b4", "", "b1 b2 b3 b4"),
        (second, "edge bd", "ad", "ad", ""),
    ]
    assert changes_of(tx, "reach") == ([], pairs("b1 b2 b3 b4 bd"))
    potential = {"".join(each) for row in tx.trace for each in row.approximation}
    assert not potential & {"a1", "a2", "a3", "a4"}


@pytest.mark.parametrize("virtual", [(), ("reach",)], ids=["stored", "virtual"])
@pytest.mark.parametrize("algorithm", ["pf", "epf"])
def test_pf_goes_through_the_rows_of_table_2(algorithm: str, virtual: tuple[str, ...]) -> None:
    db = opened(closure(), algorithm, virtual)
    insert(db, "edge", pairs(GRAPH))
    tx = delete(db, "edge", pairs("ef"), is_traced=True)
    first, second = "reach(x, y) :- edge(x, y).", CLOSURES["left-linear"]
    assert table(tx.trace) == [
        (first, "edge ef", "ef", "", "ef"),
        (second, "reach ef", "eg eh", "eg", "eh"),
        (second, "edge ef", "af bf", "af", "bf"),
        (second, "reach bf", "bg bh", "bg", "bh"),
    ]
    every = [(row.rule, row.updates) for row in tx.trace]
    assert (second, (("reach", ["e", "h"]),)) in every  # told, though nothing came of it


def test_dred_goes_through_table_1() -> None:
    db = opened(closure(), "dred")
    insert(db, "edge", pairs(GRAPH))
    tx = delete(db, "edge", pairs("ef"), is_traced=True)
    *_, row = table(tx.trace)
    assert row[1:] == (
        "edge ef",
        "af ag ah bf bg bh ef eg eh",
        "af ag ah bg eg",
        "bf bh ef eh",
    )
    assert tx.stats["reach"].counts["approximated"] == 9


@pytest.mark.parametrize("algorithm", STORED)
@pytest.mark.parametrize(
    ("edges", "removed", "expected"),
    [(FAN, "bd", "b1 b2 b3 b4 bd"), (GRAPH, "ef", "bf bh ef eh")],
    ids=["figure 2", "table 1"],
)
def test_all_algorithms_find_the_removals_of_the_papers(
    algorithm: str, edges: str, removed: str, expected: str
) -> None:
    db = opened(closure(), algorithm)
    insert(db, "edge", pairs(edges))
    tx = delete(db, "edge", pairs(removed))
    assert changes_of(tx, "reach") == ([], pairs(expected))
    tx = insert(db, "edge", pairs(removed))
    assert changes_of(tx, "reach") == (pairs(expected), [])


PEERS = """
.decl employee(x: symbol)
.decl immediate(x: symbol, y: symbol)
.decl supervisor(x: symbol, y: symbol)
supervisor(e, s) :- immediate(e, s).
supervisor(e, s) :- supervisor(e, m), immediate(m, s).
.decl peer(x: symbol, y: symbol)
peer(a, b) :- employee(a), employee(b), !supervisor(a, b), !supervisor(b, a).
"""


@pytest.mark.parametrize("virtual", [(), ("supervisor",), ("supervisor", "peer")])
@pytest.mark.parametrize("algorithm", sampled([*STORED, MIXED], 3, ["auto"]))
def test_peers_come_and_go_with_supervisors(algorithm: str, virtual: tuple[str, ...]) -> None:
    judged = Judged(PEERS, algorithm, virtual)
    judged.step(({"employee": [("a",), ("b",), ("c",)], "immediate": pairs("ab")}, {}))
    tx = judged.step(({"immediate": pairs("bc")}, {}))
    assert changes_of(tx, "peer") == ([], pairs("ac bc ca cb"))
    tx = judged.step(({"immediate": pairs("ac")}, {"immediate": pairs("ab")}))
    assert changes_of(tx, "peer") == (pairs("ab ba"), [])
    tx = judged.step(({}, {"immediate": pairs("bc ac"), "employee": [("a",)]}))
    assert changes_of(tx, "peer") == (pairs("bc cb"), pairs("aa ab ba"))


@pytest.mark.parametrize("algorithm", sampled([*STORED, MIXED], 3, ["auto"]))
def test_the_three_closures_change_alike(algorithm: str) -> None:
    databases = [
        opened(closure(kind, "number"), "auto" if algorithm == MIXED else algorithm)
        for kind in CLOSURES
    ]
    has_changed = 0
    for number, step in enumerate(flips(1, 6, STEPS)):
        chosen = STORED[number % len(STORED)] if algorithm == MIXED else None
        found = [changes_of(apply(db, step, chosen), "reach") for db in databases]
        assert found[0] == found[1] == found[2]
        has_changed += found[0] != ([], [])
    assert has_changed >= STEPS / 2


SAME_GENERATION = """
.decl par(x: symbol, y: symbol)
.decl sg(x: symbol, y: symbol)
sg(x, y) :- par(x, p), par(y, p).
sg(x, y) :- sg(x, x1), par(x1, xp), sg(xp, yp), par(y1, yp), sg(y1, y).
"""


class WatchedEngine(LocalEngine):
    """A local engine that keeps the plans it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Plan] = []

    def run(self, plan: Plan, *arguments: Any) -> None:
        """Keep the plan, then run it."""
        self.plans.append(plan)
        super().run(plan, *arguments)


@pytest.mark.parametrize("algorithm", ["pf", "epf"])
@pytest.mark.parametrize("virtual", [(), ("sg",)], ids=["stored", "virtual"])
def test_same_generation_is_never_called_without_bindings(
    algorithm: str, virtual: tuple[str, ...]
) -> None:
    engine = WatchedEngine()
    db = Database(DatabaseState(engine, algorithm, limits=LIMITS))
    db.load(text=with_virtual(SAME_GENERATION, virtual))
    for name in virtual:
        db.watch(name)
    insert(db, "par", pairs("ap bp pg qg cq"))
    engine.plans.clear()
    tx = delete(db, "par", pairs("pg"))
    assert changes_of(tx, "sg") == ([], pairs("ac bc ca cb pp pq qp"))
    called = {name.partition("•")[0] for plan in engine.plans for name in plan.types if "^" in name}
    assert called
    assert not {name for name in called if name.startswith("sg^ff")}


@pytest.mark.parametrize("algorithm", sampled([*STORED, MIXED], 3, ["auto"]))
@pytest.mark.parametrize("kind", CLOSURES)
def test_what_a_cycle_supports_goes_with_it(kind: str, algorithm: str) -> None:
    judged = Judged(closure(kind), algorithm)
    judged.step(({"edge": pairs("sa ab bc ca")}, {}))
    tx = judged.step(({}, {"edge": pairs("sa")}))
    assert changes_of(tx, "reach") == ([], pairs("sa sb sc"))
    tx = judged.step(({}, {"edge": pairs("bc")}))
    assert changes_of(tx, "reach") == ([], pairs("aa ac ba bb bc cc"))


@pytest.mark.parametrize("algorithm", sampled([*STORED, MIXED], 3, ["auto"]))
@pytest.mark.parametrize("kind", CLOSURES)
def test_a_bridge_may_be_replaced(kind: str, algorithm: str) -> None:
    judged = Judged(closure(kind), algorithm)
    judged.step(({"edge": pairs("ab ba xy yx ax")}, {}))
    tx = judged.step(({"edge": pairs("by")}, {"edge": pairs("ax")}))
    assert changes_of(tx, "reach") == ([], [])


ASSERTED = """
.decl edge(x: symbol, y: symbol)
.decl reach(x: symbol, y: symbol)
.input reach
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
"""


@pytest.mark.parametrize("algorithm", sampled([*STORED, MIXED], 3, ["auto"]))
def test_what_is_asserted_and_derived_goes_when_both_are_gone(algorithm: str) -> None:
    db = opened(ASSERTED, algorithm)
    chosen = iter(STORED * 2)

    def step(inserts: Any = (), deletes: Any = ()) -> tuple[list[Row], list[Row]]:
        options = {"algorithm": next(chosen)} if algorithm == MIXED else {}
        return changes_of(apply(db, (dict(inserts), dict(deletes)), **options), "reach")

    step({"edge": pairs("ab bc"), "reach": pairs("ac za")})
    assert step((), {"reach": pairs("ac")}) == ([], [])
    assert step((), {"edge": pairs("bc")}) == ([], pairs("ac bc zc"))
    assert step({"reach": pairs("ac")}) == (pairs("ac"), [])
    assert step((), {"reach": pairs("za")}) == ([], pairs("za zb"))


@pytest.mark.parametrize("algorithm", sampled([*STORED, MIXED], 3, ["auto"]))
def test_ranks_hold_across_strata_that_merge(algorithm: str) -> None:
    text = """
.decl e()
.decl p()
.decl q()
p() :- e().
q() :- p().
"""
    judged = Judged(text, algorithm)
    judged.step(({"e": [()]}, {}))
    judged.step(add=["p() :- q()."])
    judged.step(({}, {"e": [()]}))
    assert judged.expected["p"] == judged.expected["q"] == set()
    judged.step(({"e": [()]}, {}))
    judged.step(({}, {"e": [()]}), remove=["q() :- p()."])
    judged.step(({"e": [()]}, {}), add=["q() :- p()."])


# --------------------------------------------------------------------------------------- pf and epf


def diamond_chain(length: int) -> list[Row]:
    """Diamonds one behind the other, with one arm longer: x0 → a0 → x1, x0 → b0 → c0 → x1."""
    return [
        pair
        for at in range(length)
        for pair in (
            (f"x{at}", f"a{at}"),
            (f"a{at}", f"x{at + 1}"),
            (f"x{at}", f"b{at}"),
            (f"b{at}", f"c{at}"),
            (f"c{at}", f"x{at + 1}"),
        )
    ]


@pytest.mark.parametrize("virtual", [(), ("reach",)], ids=["stored", "virtual"])
@pytest.mark.parametrize("is_kept", [False, True], ids=["actual", "disqualified"])
def test_diamond_chain(virtual: tuple[str, ...], is_kept: bool) -> None:
    """The ends of diamonds are approximated along both arms: PF proves them twice, EPF once.

    Either they go, or they are reached all the same from `start` by another edge.
    """
    counts = {}
    for algorithm in ("pf", "epf"):
        db = opened(closure(), algorithm, virtual)
        around = [("start", "x1")] if is_kept else []
        insert(db, "edge", [("start", "x0"), *diamond_chain(4), *around])
        with db.transaction(is_traced=True) as tx:
            tx.delete("edge", [("start", "x0")])
        assert len(changes_of(tx, "reach")[1]) == (4 if is_kept else 17)
        counts[algorithm] = tx.stats["reach"].counts
    assert counts["pf"]["refiltered"] > 0
    assert counts["epf"]["refiltered"] == 0
    assert counts["epf"]["filtered"] < counts["pf"]["filtered"]


# -------------------------------------------------------------------------------- virtual relations

LAYERED = """
.decl edge(x: number, y: number)
.decl mark(x: number)
.decl reach(x: number, y: number)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z), !mark(_), y != 9.
.decl degree(x: number, n: number)
degree(x, n) :- edge(x, _), n = count : { reach(x, y), !mark(y) }.
.decl busy(x: number)
busy(x) :- degree(x, n), n > 2, !mark(x).
"""


@pytest.mark.matrix(4)
@pytest.mark.parametrize("algorithm", ["auto", "pf", "epf", "recompute"])
@pytest.mark.parametrize(
    "virtual",
    [("reach",), ("degree",), ("reach", "degree"), ("reach", "degree", "busy")],
    ids="+".join,
)
def test_nothing_of_a_virtual_relation_is_stored(algorithm: str, virtual: tuple[str, ...]) -> None:
    judged = Judged(LAYERED, algorithm, virtual)
    for number, (inserts, deletes) in enumerate(flips(3, 5, 12)):
        marks = {"mark": [(number % 2,)]}
        inserts |= marks if number % 3 == 1 else {}
        deletes |= marks if number % 3 == 2 else {}
        judged.step((inserts, deletes))
        sizes = judged.db._state.engine.statistics().rows
        program = judged.db._state.loaded.normal
        kept = {name for name, size in sizes.items() if size}
        for name in kept:
            relation = program.relations[name.partition("•")[0]]
            assert not relation.is_derived or not relation.is_virtual, name
            assert name.partition(".")[0] not in virtual, name
    assert judged.counts["changed"] >= 6


def test_a_virtual_relation_that_nobody_asks_for_is_not_computed() -> None:
    db = opened(LAYERED.replace("y: number)\nreach", "y: number) virtual\nreach"), "auto")
    assert db._state.loaded.normal.relations["reach"].is_virtual
    text = closure().replace("y: symbol)\nreach", "y: symbol) virtual\nreach")
    db = opened(text)
    tx = insert(db, "edge", pairs("ab bc"))
    assert "reach" not in tx.stats
    with pytest.raises(KeyError, match="reach"):
        tx.changes["reach"]
    assert sorted(db.relation("reach").rows()) == pairs("ab ac bc")


def test_watching_may_begin_later() -> None:
    text = closure().replace("y: symbol)\nreach", "y: symbol) virtual\nreach")
    db = opened(text)
    insert(db, "edge", pairs("ab"))
    db.watch("reach")
    assert changes_of(insert(db, "edge", pairs("bc")), "reach") == (pairs("ac bc"), [])
    db.watch("reach", added=False)
    assert changes_of(insert(db, "edge", pairs("cd")), "reach") == ([], [])
    assert changes_of(delete(db, "edge", pairs("bc")), "reach") == ([], pairs("ac ad bc bd"))


# ----------------------------------------------------------------------- what need not be looked at


@pytest.mark.parametrize("algorithm", ["auto", "ranked"])
def test_self_maintainable_updates_read_no_base_relation(algorithm: str) -> None:
    text = """
.decl r(id: number, k: number)
.decl s(k: number, y: number)
.decl v(id: number, k: number, y: number)
v(id, k, y) :- r(id, k), s(k, y).
.decl big(id: number)
big(id) :- r(id, k), k > 10.
"""
    judged = Judged(text, algorithm)
    judged.step(({"r": [(1, 1), (2, 1), (3, 20)], "s": [(1, 5), (1, 6), (20, 7)]}, {}))
    for step in (
        ({}, {"r": [(1, 1)]}),
        ({}, {"s": [(1, 6)]}),
        ({}, {"r": [(2, 1), (3, 20)], "s": [(1, 5)]}),
    ):
        tx = judged.step(step)
        assert tx.stats["v"].algorithm == "autonomous"
        assert tx.stats["v"].counts.get("base_probes", 0) == 0
    db = opened(text, algorithm)
    insert(db, "r", [(6, 12)])
    tx = insert(db, "r", [(7, 11)])
    assert tx.stats["big"].counts.get("base_probes", 0) == 0


WITNESSED = """
.decl r(id: number, k: number)
.decl e(k: number, y: number)
.decl s(k: number, y: number)
s(k, y) :- e(k, y).
s(k, z) :- s(k, y), e(y, z).
.decl v(id: number, k: number, y: number)
v(id, k, y) :- r(id, k), s(k, y), id < 100.
"""


def test_insertions_like_rows_of_the_view_ask_nothing_of_virtual_relations() -> None:
    judged = Judged(WITNESSED, "auto", ["s"])
    judged.step(({"e": [(1, 2), (2, 3), (5, 6)], "r": [(7, 1)]}, {}))
    for inserted, is_asked in (
        ([(8, 1), (9, 1)], False),
        ([(500, 5)], False),  # irrelevant
        ([(8, 5), (10, 1)], True),  # the first row with k = 5
        ([(11, 1), (11, 5)], False),
    ):
        tx = judged.step(({"r": inserted}, {"r": [(8, 1)]} if (11, 1) in inserted else {}))
        assert tx.stats["v"].algorithm == "autonomous"
        assert bool(tx.stats["v"].counts.get("base_probes", 0)) == is_asked, inserted
    # Where the rest of the rule changes too, the view does not tell.
    tx = judged.step(({"r": [(12, 1)], "e": [(3, 4)]}, {}))
    assert tx.stats["v"].algorithm == "dred"


IRRELEVANT = """
.decl r(x: number, y: number)
.decl s(x: number, y: number)
.decl unused(x: number)
.decl large(x: number)
large(x) :- r(x, y), s(y, _), y > 10.
.decl loop(x: number)
loop(x) :- r(x, x), s(x, _).
.decl one(y: number)
one(y) :- r(1, y), s(y, _).
.decl walk(x: number, y: number)
walk(x, y) :- r(x, y), s(x, y), x < 0.
walk(x, z) :- walk(x, y), r(y, z), y < 0.
"""


@pytest.mark.parametrize("algorithm", ["auto", "dred", "pf", "epf", "counting", "ranked"])
def test_irrelevant_updates_are_counted_and_ask_nothing(algorithm: str) -> None:
    judged = Judged(IRRELEVANT, algorithm)
    judged.step(({"r": [(1, 20), (3, 3)], "s": [(20, 1), (3, 1), (5, 1)]}, {}))
    tx = judged.step(({"r": [(2, 5), (4, 3)]}, {}))
    for name in ("large", "loop", "one", "walk"):
        counts = tx.stats[name].counts
        assert counts["irrelevant_updates"] >= 2, name
        assert counts.get("base_probes", 0) == 0, name
    tx = judged.step(({}, {"r": [(2, 5), (4, 3)]}))
    assert total(tx, "base_probes") == 0
    tx = judged.step(({"unused": [(1,), (2,)]}, {}))
    assert tx.stats["unused"].counts["irrelevant_updates"] == 2
    assert total(tx, "base_probes") == 0


POLARITY = """
.decl edge(x: symbol, y: symbol)
.decl block(x: symbol)
.decl reach(x: symbol, y: symbol)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
.decl free(x: symbol, y: symbol)
free(x, y) :- reach(x, y), !block(x).
"""


@pytest.mark.parametrize("algorithm", ["auto", "pf", "epf"])
@pytest.mark.parametrize("sign", ["added", "removed"])
def test_only_wanted_signs_are_propagated(algorithm: str, sign: str) -> None:
    db = opened(POLARITY, algorithm, ("reach", "free"))
    db._state.watched.clear()
    db.watch("free", added=sign == "added", removed=sign == "removed")
    insert(db, "edge", pairs("ab bc cd"))
    wanted = sign == "removed"
    tx = delete(db, "edge", pairs("bc"))
    assert changes_of(tx, "free") == ([], pairs("ac ad bc bd") if wanted else [])
    assert (total(tx, "approximated") > 0) == wanted
    tx = insert(db, "edge", pairs("bc"))
    assert changes_of(tx, "free") == ([] if wanted else pairs("ac ad bc bd"), [])
    assert (total(tx, "approximated") > 0) != wanted
    tx = insert(db, "block", [("a",)])  # behind a negation the signs are the other way round
    assert changes_of(tx, "free") == ([], pairs("ab ac ad") if wanted else [])
    assert (total(tx, "approximated") > 0) == wanted
    tx = delete(db, "block", [("a",)])
    assert changes_of(tx, "free") == ([] if wanted else pairs("ab ac ad"), [])
    assert (total(tx, "approximated") > 0) != wanted


SMALL_GROUPS = """
.decl group(k: symbol)
.decl p(k: symbol, x: number)
.decl small(k: symbol)
small(k) :- group(k), n = max x : { p(k, x) }, n < 9.
"""


@pytest.mark.parametrize("algorithm", ["auto", "epf"])
def test_a_tuple_that_drops_a_changed_value_stays(algorithm: str) -> None:
    """The greatest value of a group has a key, and is another one in each state."""
    db = opened(SMALL_GROUPS, algorithm, ("small",))
    insert(db, "group", [("a",), ("b",)])
    insert(db, "p", [("a", 1), ("b", 8)])
    tx = insert(db, "p", [("a", 2), ("b", 9)])
    assert changes_of(tx, "small") == ([], [("b",)])


@pytest.mark.parametrize("virtual", [(), ("h",)])
def test_rules_with_windows_come_change_and_go(virtual: tuple[str, ...]) -> None:
    declared = ".decl p(x: number)\n.decl h(x: number, y: number?)\n"
    rule = 'h(x, y) :- p(x), y is window("{}($1) over (order by $1)", x).'
    db = opened(declared, "auto", virtual)
    insert(db, "p", [(1,), (2,)])
    with db.transaction() as tx:
        tx.add_rule(rule.format("lag"))
    assert changes_of(tx, "h") == ([(1, None), (2, 1)], [])
    with db.transaction() as tx:
        tx.remove_rule(rule.format("lag"))
        tx.add_rule(rule.format("lead"))
    assert changes_of(tx, "h") == ([(1, 2), (2, None)], [(1, None), (2, 1)])
    with db.transaction() as tx:
        tx.remove_rule(rule.format("lead"))
    assert changes_of(tx, "h") == ([], [(1, 2), (2, None)])
    assert db.relation("h").rows() == []


# --------------------------------------------------------------------------------- ranks and counts


def test_all_rows_of_a_window_are_replaced() -> None:
    text = """
.decl t(x: symbol, y: bool)
.decl w(x: symbol, y: bool, n: number)
w(x, y, n) :- t(x, y), n = window("count($2) over (order by $2, $1 desc)", x, y).
"""
    judged = Judged(text, "auto")
    judged.step(({"t": {("d", False)}}, {}))
    judged.step(({"t": {("a", True)}}, {"t": {("d", False)}}))
    judged.db.close()


def test_counting_refuses_recursion() -> None:
    with pytest.raises(InputError, match="C0820"):
        corollary.open(None, algorithm="counting").load(text=closure())
    with pytest.raises(InputError, match="C0820"):
        corollary.open(None, algorithm={"reach": "counting"}).load(text=closure())
    db = opened(closure())
    insert(db, "edge", pairs("ab bc"))
    before = held(db)
    with pytest.raises(InputError, match="`reach` is recursive"):
        insert(db, "edge", pairs("cd"), algorithm="counting")
    assert held(db) == before
    assert changes_of(insert(db, "edge", pairs("cd")), "reach") == (pairs("ad bd cd"), [])


@pytest.mark.parametrize("algorithm", ["auto", "ranked", "recompute", MIXED])
@pytest.mark.parametrize("kind", CLOSURES)
def test_ranks_are_well_founded_after_every_step(kind: str, algorithm: str) -> None:
    judged = Judged(closure(kind, "number"), algorithm, seed=7)
    for step in flips(11, 6, STEPS):
        judged.step(step)
    assert judged.counts["changed"] >= STEPS / 2
    assert judged.counts["payload"] >= 2 * STEPS


JOINS = """
.decl r(x: number, y: number)
.decl s(y: number, z: number)
.decl path(x: number, z: number)
path(x, z) :- r(x, y), s(y, z).
path(x, z) :- r(x, y), r(y, z), x != z.
.decl some(x: number)
some(x) :- r(x, _).
some(x) :- path(x, _), !s(x, x).
.decl pair(x: number, y: number)
pair(x, y) :- some(x), some(y), r(x, y).
"""


@pytest.mark.parametrize("algorithm", ["auto", "counting", "recompute", MIXED])
def test_counts_are_the_numbers_of_derivations(algorithm: str) -> None:
    judged = Judged(JOINS, algorithm, seed=5)
    generator = random.Random(2)
    for _ in range(STEPS):
        rows = {name: {(generator.randrange(4), generator.randrange(4))} for name in ("r", "s")}
        inserts = {name: found - judged.base[name] for name, found in rows.items()}
        deletes = {name: found & judged.base[name] for name, found in rows.items()}
        judged.step((inserts, deletes))
    assert judged.counts["changed"] >= STEPS / 2
    assert judged.counts["payload"] >= 2 * STEPS


@pytest.mark.matrix(7)
@pytest.mark.parametrize("first", ALGORITHMS)
@pytest.mark.parametrize("second", ALGORITHMS)
def test_algorithms_may_follow_each_other(first: str, second: str) -> None:
    judged = Judged(POLARITY, MIXED)
    order = [first, second, first, first, second, second, first]
    judged._random.choice = lambda _: order.pop()
    judged.step(({"edge": pairs("ab bc ca cd"), "block": [("d",)]}, {}))
    judged.step(({}, {"edge": pairs("bc")}))
    judged.step(({"edge": pairs("bd da")}, {"block": [("d",)]}))
    judged.step(({"edge": pairs("bc")}, {"edge": pairs("ab")}))
    judged.step(({"edge": pairs("ab"), "block": [("a",)]}, {"edge": pairs("ca")}))
    judged.step(({}, {"edge": pairs("bd")}))
    judged.step(({"edge": pairs("ad")}, {"block": [("a",)]}))
    assert judged.counts["changed"] >= 6


# ---------------------------------------------------------------------------------- being too large


def ring(size: int) -> list[Row]:
    return [(at, (at + 1) % size) for at in range(size)]


@pytest.mark.slow
@pytest.mark.matrix(3)
@pytest.mark.parametrize("kind", CLOSURES)
def test_an_increment_that_grows_too_large_is_abandoned(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corollary.maintain.choose.BUDGET_MIN_ROWS", 10)
    monkeypatch.setitem(RECURSIVE_SPREAD, State.REMOVED, 22.0)
    judged = Judged(closure(kind, "number"), "auto")
    judged.step(({"edge": ring(24)}, {}))
    tx = judged.step(({}, {"edge": [(0, 1)]}))
    assert tx.stats["reach"].algorithm == "recompute"
    assert "outgrew" in tx.stats["reach"].reason
    tx = judged.step(({"edge": [(0, 1)]}, {}))
    tx = judged.step(({}, {"edge": [(7, 8)]}))
    assert "the change would handle" in tx.stats["reach"].reason  # it is known by now
    judged.step(({"edge": [(7, 8)]}, {"edge": [(20, 21)]}))
    judged.step(({}, {"edge": [(7, 8), (14, 15)]}))
    judged.step(({"edge": [(7, 8)]}, {"edge": [(0, 1)]}))


def test_strict_databases_fail_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corollary.maintain.choose.BUDGET_MIN_ROWS", 10)
    db = opened(closure("left-linear", "number"), strict=True)
    insert(db, "edge", ring(60), algorithm="recompute")
    before = held(db)
    with pytest.raises(LimitError):
        delete(db, "edge", [(0, 1)])
    assert held(db) == before
    tx = insert(db, "edge", [(60, 61)])
    assert tx.changes["reach"].counts == (1, 0)


# ------------------------------------------------------------------------------ failed transactions

FRAGILE = """
.decl q(x: number)
.decl e(x: number, y: number)
.decl double(x: number)
double(x + x) :- q(x).
.decl up(x: number)
up(x) :- q(x).
up(x + 1) :- up(x), x >= 1000, x < 10000.
.decl tc(x: number, y: number)
tc(x, y) :- e(x, y).
tc(x, z) :- tc(x, y), tc(y, z).
.decl n(c: number)
n(c) :- c = count : { tc(_, _) }.
"""


class HiccupError(Exception):
    """Raised in the middle of a transaction."""


@pytest.mark.parametrize("algorithm", sampled([*ALGORITHMS, MIXED], 4, ["auto"]))
@pytest.mark.parametrize("virtual", [(), ("double", "up", "tc", "n")], ids=["stored", "virtual"])
def test_failed_transactions_leave_everything_as_it_was(
    algorithm: str, virtual: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.maintained_database.LIMITS", corollary.Limits(rounds=50))
    judged = Judged(FRAGILE, algorithm, virtual)
    db = judged.db
    judged.step(({"q": [(1,), (2,)], "e": [(1, 2), (2, 3), (3, 1)]}, {}))

    def attempt(*operations: tuple[Any, ...]) -> None:
        with db.transaction() as tx:
            tx.delete("e", [(1, 2)])
            for operation, *arguments in operations:
                if operation == "raise":
                    raise HiccupError
                getattr(tx, operation)(*arguments)

    def failing(error: type[Exception], *operations: tuple[Any, ...]) -> None:
        before = held(db)
        with pytest.raises(error):
            attempt(*operations)
        assert held(db) == before
        judged.judge_state()

    failing(EvaluationError, ("insert", "q", [(2**62,)]))  # its double is no number
    failing(LimitError, ("insert", "q", [(1000,)]))
    failing(HiccupError, ("insert", "q", [(5,)]), ("raise",))
    failing(HiccupError, ("add_rule", "double(x) :- q(x)."), ("raise",))
    failing(InputError, ("insert", "q", [("five",)]))
    failing(InputError, ("insert", "q", [(1, 2)]))
    failing(InputError, ("insert", "q", [(2**63,)]))
    failing(InputError, ("insert", "tc", [(1, 2)]))
    failing(InputError, ("insert", "nowhere", [(1, 2)]))
    failing(InputError, ("add_rule", "double(x) :- nowhere(x)."))
    failing(InputError, ("add_rule", "double(x) :- q(y)."))
    failing(InputError, ("remove_rule", "double(x) :- q(x)."))
    failing(EvaluationError, ("add_rule", "double(x + 9223372036854775806) :- q(x)."))
    failing(LimitError, ("add_rule", "up(x + 1) :- up(x)."))
    judged.step(({"q": [(7,)]}, {"e": [(1, 2)]}))
    judged.step(({"e": [(1, 2)]}, {"q": [(1,)]}))
    assert judged.counts["changed"] == 3


def test_a_transaction_ends_once() -> None:
    db = opened(closure())
    with db.transaction() as tx:
        tx.insert("edge", pairs("ab"))
    with pytest.raises(InputError, match="C0914"):
        tx.insert("edge", pairs("bc"))
    with pytest.raises(InputError, match="C0914"):
        tx.commit()
    other = db.transaction()
    other.insert("edge", pairs("bc"))
    other.rollback()
    with pytest.raises(InputError, match="C0914"):
        other.commit()
    assert sorted(db.relation("reach").rows()) == pairs("ab")
