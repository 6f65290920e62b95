"""Proofs, worked out by hand: notes and special steps, limits, ranks that are least heights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.database import Database, state_of
from corollary.provenance.limits import ProofLimits
from corollary.provenance.nodes import CutReason, ProofKind, ProofNode
from corollary.provenance.proof import Proof
from corollary.provenance.query_state import query_state
from corollary.provenance.why import prove, why
from support.spark.in_process_partitions import share_out

CLOSURE = """
.decl edge(x: number, y: number)
.decl tc(x: number, y: number)
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
"""
NONLINEAR = CLOSURE.replace("tc(x, y), edge(y, z)", "tc(x, y), tc(y, z)")


def opened(
    text: str, facts: Mapping[str, list[Any]] | None = None, place: Path | None = None
) -> Database:
    db = corollary.open(place, engine="local")
    db.load(text=text)
    if facts:
        with db.transaction() as tx:
            for name, rows in facts.items():
                tx.insert(name, rows)
    return db


def asked(db: Database, goal: str, **limits: Any) -> Proof:
    return why(state_of(db), goal, ProofLimits(**limits))


def notes(proof: Proof, at: int = 0) -> list[ProofNode]:
    return [proof.nodes[each] for each in proof.nodes[at].notes]


def premises(proof: Proof, at: int = 0) -> list[str]:
    return [proof.nodes[each].text for each in proof.nodes[at].premises]


def path(length: int) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(length)]


def test_the_network() -> None:
    db = opened(
        """.decl direct_link(x: symbol, y: symbol)
        .decl link(x: symbol, y: symbol)
        direct_link("a", "b"). direct_link("b", "c"). direct_link("a", "c"). direct_link("c", "d").
        link(x, y) :- direct_link(x, y).
        link(x, z) :- link(x, y), direct_link(y, z)."""
    )
    proof = asked(db, 'link("a", "d")')
    assert [(each.text, each.rule, each.height) for each in proof.nodes] == [
        ('link("a", "d")', 2, 2),
        ('link("a", "c")', 1, 1),
        ('direct_link("c", "d")', None, 0),
        ('direct_link("a", "c")', None, 0),
    ]
    assert (proof.height, proof.height_at_least, proof.size) == (2, 2, 4)
    assert proof.minimal
    assert proof.canonical
    assert [each.text for each in proof.rules.values()] == [
        "link(x, y) :- direct_link(x, y).",
        "link(x, z) :- link(x, y), direct_link(y, z).",
    ]
    found = proof.to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["nodes"][0]["premises"] == [1, 2]
    assert found["cuts"] == []


def test_what_does_not_hold() -> None:
    db = opened(CLOSURE, {"edge": path(3)})
    for goal in ("tc(3, 0)", "edge(7, 7)", "tc(9, x)"):
        proof = asked(db, goal)
        assert not proof.holds
        assert proof.nodes == ()


def test_variables_have_several_answers() -> None:
    db = opened(CLOSURE, {"edge": path(12)})
    proof = asked(db, "tc(0, y)")
    assert proof.answers == 12
    assert [each.goal for each in (proof, *proof.others)] == [f"tc(0, {at})" for at in range(1, 11)]
    assert proof.others[-1].height == 10


def test_goals_of_several_atoms_are_refused() -> None:
    db = opened(CLOSURE)
    with pytest.raises(corollary.InputError, match="C1400"):
        asked(db, "tc(x, y), edge(y, x)")


def test_the_engine_is_left_as_it_was() -> None:
    db = opened(CLOSURE + ".decl n(c: number)\nn(c) :- c = count : { tc(_, _) }.\n")
    with db.transaction() as tx:
        tx.insert("edge", path(3))
    engine = state_of(db).engine
    before = engine.statistics().rows
    asked(db, "n(6)")
    asked(db, "tc(0, 3)")
    assert engine.statistics().rows == before


def test_a_tuple_that_is_given_and_derived_is_a_base_tuple() -> None:
    db = opened(CLOSURE + "tc(0, 2). tc(5, 5).\n", {"edge": path(2)})
    for goal in ("tc(0, 2)", "tc(5, 5)"):
        (node,) = asked(db, goal).nodes
        assert (node.kind, node.relation, node.height) == (ProofKind.BASE, "tc", 0)


def test_equal_heights_are_told_apart_by_size_rule_and_values() -> None:
    db = opened(
        """.decl a(x: number) .decl b(x: number) .decl c(x: number) .decl p(x: number, y: number)
        p(x, y) :- a(x), b(y), c(y).
        p(x, y) :- b(y), c(x).
        p(x, y) :- c(x), b(y).
        .decl q(x: number)
        q(x) :- p(x, _).""",
        {"a": [(1,)], "b": [(2,), (3,)], "c": [(1,), (2,)]},
    )
    proof = asked(db, "p(1, 2)")
    assert (proof.nodes[0].rule, premises(proof)) == (2, ["b(2)", "c(1)"])
    assert premises(asked(db, "q(1)")) == ["p(1, 2)"]


# --- notes ---------------------------------------------------------------------------------------


def test_negation_disjunction_and_conditions() -> None:
    db = opened(
        """.decl e(x: number, y: number?)
        .decl p(x: number, y: number)
        p(x, y * 10) :- e(x, y), (x > 5 ; y < 3, !e(y, _)), x != y * 2.""",
        {"e": [(1, 2), (7, 9), (9, None)]},
    )
    proof = asked(db, "p(1, 20)")
    assert (proof.nodes[0].rule, proof.nodes[0].alternative) == (1, 2)
    assert [(each.kind, each.text) for each in notes(proof)] == [
        (ProofKind.ABSENT, "!e(2, _)"),
        (ProofKind.COMPUTED, "2 < 3"),
        (ProofKind.COMPUTED, "1 != 2 * 2"),
        (ProofKind.COMPUTED, "20 = 2 * 10"),
    ]
    absent = notes(proof)[0]
    assert (absent.relation, absent.row) == ("e", (2, None))
    assert asked(db, "p(7, 90)").nodes[0].alternative == 1


def test_nulls() -> None:
    db = opened(
        """.decl e(x: number?, y: symbol?)
        .decl p(x: number?, y: symbol?)
        p(x, y) :- e(x, y).""",
        {"e": [(None, "a"), (1, None)]},
    )
    proof = asked(db, 'p(null, "a")')
    assert premises(proof) == ['e(null, "a")']
    assert proof.to_json()["nodes"][0]["row"] == [None, "a"]
    assert premises(asked(db, "p(1, null)")) == ["e(1, null)"]


def test_no_columns_and_no_premises() -> None:
    db = opened(
        ".decl up() .decl late() late() :- up(). .decl one(x: number) one(x) :- x = 1 + 0.",
        {"up": [()]},
    )
    assert [each.text for each in asked(db, "late()").nodes] == ["late()", "up()"]
    proof = asked(db, "one(1)")
    assert (proof.height, proof.size, [each.text for each in notes(proof)]) == (1, 1, ["1 = 1 + 0"])


SALES = """
.decl sale(shop: symbol, id: number, price: number)
.decl shop(name: symbol)
.decl report(name: symbol, kind: symbol, value: number)
report(s, "count", n) :- shop(s), n = count : { sale(s, _, _) }.
report(s, "sum", n) :- shop(s), n = sum p : { sale(s, _, p) }.
report(s, "max", n) :- shop(s), n = max p : { sale(s, _, p) }.
report(s, "min", n) :- shop(s), n = min p * 2 : { sale(s, _, p), p > 1 }.
"""


def sales() -> Database:
    rows = [("a", at, at % 5) for at in range(20)]
    return opened(SALES, {"sale": rows, "shop": [("a",), ("b",)]})


def aggregate_of(proof: Proof) -> tuple[ProofNode, list[str]]:
    (note,) = (each for each in notes(proof) if each.kind is ProofKind.AGGREGATE)
    return note, premises(proof, note.id)


def test_counts_show_ten_rows() -> None:
    proof = asked(sales(), 'report("a", "count", x)')
    note, rows = aggregate_of(proof)
    assert note.text == '20 = count : { sale("a", id, price) }'
    assert rows == [f'sale("a", {at}, {at % 5})' for at in range(10)]
    assert note.aggregate is not None
    assert note.aggregate.to_json() == {
        "operator": "count",
        "group": {"s": "a"},
        "value": 20,
        "rows": 20,
        "rest": None,
    }
    assert [(each.reason, each.node, each.shown, each.total) for each in proof.cuts] == [
        (CutReason.ROWS, note.id, 10, 20)
    ]
    assert proof.canonical


def test_sums_of_sums_are_unfolded_as_far_as_nodes_go() -> None:
    db = opened(
        """.decl uses(p: number, s: number, q: number)
        .decl bought(p: number, n: number)
        .decl need(p: number, n: number)
        need(p, n) :- bought(p, n).
        need(p, n) :- uses(p, _, _), n = sum q * m : { uses(p, s, q), need(s, m) }.""",
        {"uses": [(at, at + 1, 2) for at in range(6)], "bought": [(6, 1)]},
    )
    proof = asked(db, "need(0, 64)")
    sums = [each for each in proof.nodes if each.kind is ProofKind.AGGREGATE]
    assert [each.aggregate and each.aggregate.value for each in sums] == [64, 32, 16, 8, 4, 2]
    # Aggregates are notes: neither they nor their rows add to the height.
    assert (proof.height, proof.minimal, proof.cuts) == (1, True, ())
    assert {each.height for each in proof.nodes if each.relation == "need"} == {1}
    cut = asked(db, "need(0, 64)", nodes=4)
    assert {each.reason for each in cut.cuts} == {CutReason.NODES}


def test_sums_show_the_largest_rows_and_the_rest() -> None:
    proof = asked(sales(), 'report("a", "sum", x)')
    note, rows = aggregate_of(proof)
    assert rows == [f'sale("a", {at}, {at % 5})' for at in (4, 9, 14, 19, 3, 8, 13, 18, 2, 7)]
    assert note.aggregate is not None
    assert (note.aggregate.value, note.aggregate.rest) == (40, 40 - 32)


def test_extremes_show_rows_that_attain_them() -> None:
    db = sales()
    note, rows = aggregate_of(asked(db, 'report("a", "max", x)'))
    assert rows == [f'sale("a", {at}, 4)' for at in (4, 9, 14)]
    proof = asked(db, 'report("a", "min", x)')
    note, rows = aggregate_of(proof)
    assert note.text == '4 = min p * 2 : { sale("a", _, p), p > 1 }'
    assert rows == [f'sale("a", {at}, 2), 2 > 1, 4 = 2 * 2' for at in (2, 7, 12)]
    row = proof.nodes[proof.nodes[note.id].premises[0]]
    assert [proof.nodes[each].text for each in row.premises] == ['sale("a", 2, 2)']
    assert [(each.node, each.shown, each.total) for each in proof.cuts] == [(note.id, 3, 4)]


def test_empty_groups_are_absent() -> None:
    proof = asked(sales(), 'report("b", "sum", 0)')
    assert [(each.kind, each.text) for each in notes(proof)] == [
        (ProofKind.ABSENT, 'no { sale("b", id, price) }')
    ]


def test_keys_that_the_body_needs_are_no_premises() -> None:
    db = opened(
        """.decl v(x: number)
        .decl below(x: number, n: number)
        below(x, n) :- v(x), n = count : { v(y), y < x }.""",
        {"v": [(1,), (2,), (3,)]},
    )
    proof = asked(db, "below(3, 2)")
    note, rows = aggregate_of(proof)
    assert note.text == "2 = count : { v(y), y < 3 }"
    assert rows == ["v(1), 1 < 3", "v(2), 2 < 3"]
    assert proof.height == 1


def test_rows_of_aggregates_have_proofs() -> None:
    db = opened(
        CLOSURE + ".decl n(x: number, c: number)\nn(x, c) :- edge(x, _), c = count : { tc(x, y) }."
    )
    with db.transaction() as tx:
        tx.insert("edge", path(4))
    proof = asked(db, "n(0, 4)")
    note, _ = aggregate_of(proof)
    assert [proof.nodes[each].height for each in note.premises] == [1, 2, 3, 4]
    assert proof.height == 1  # aggregates are notes
    assert proof.size == 2
    root = prove(query_state(state_of(db)), "n.aggregate1", (0, 4))
    assert root.nodes[0].kind is ProofKind.AGGREGATE
    assert root.nodes[0].text == "4 = count : { tc(0, y) }"


def test_equivalences_are_chains() -> None:
    db = opened(
        """.decl same(x: number, y: number) eqrel
        .decl e(x: number, y: number)
        same(2, 3). same(4, 3). same(1, 9). same(9, 8).
        same(x, y) :- e(x, y), x < 3.""",
        {"e": [(1, 2), (5, 6)]},
    )
    proof = asked(db, "same(4, 1)")
    assert (proof.nodes[0].kind, proof.nodes[0].rule) == (ProofKind.CHAIN, None)
    assert premises(proof) == ["same(4, 3)", "same(2, 3)", "same(1, 2)"]
    assert [proof.nodes[each].kind for each in proof.nodes[0].premises] == [
        ProofKind.BASE,
        ProofKind.BASE,
        ProofKind.DERIVED,
    ]
    assert proof.canonical
    assert premises(asked(db, "same(9, 9)")) == ["same(9, 8)"]


def test_window_functions_have_the_rows_of_their_partition() -> None:
    db = corollary.open(None, engine="local")
    db.sql("CREATE TABLE t (k INT PRIMARY KEY, g INT, a INT)")
    db.sql("CREATE VIEW v AS SELECT k, g, RANK() OVER (PARTITION BY g ORDER BY a) AS r FROM t")
    db.sql("INSERT INTO t VALUES (1, 1, 5), (2, 1, 3), (3, 1, 3), (4, 2, 1)")
    lines = str(db.why("v(1, 1, 3)")).splitlines()
    assert "rank of 3 rows" in lines[1]
    assert [line.split()[1:4] for line in lines[2:5]] == [
        ["t(1,", "1,", "5)"],
        ["t(2,", "1,", "3)"],
        ["t(3,", "1,", "3)"],
    ]
    db.close()


def test_sql_rows_and_copies() -> None:
    db = corollary.open(None, engine="local")
    db.sql("CREATE TABLE e (x INT, y INT)")
    db.sql("CREATE VIEW b AS SELECT x FROM e WHERE y < 9")
    db.sql(
        "CREATE VIEW r AS WITH RECURSIVE t(x, y) AS (SELECT x, y FROM e UNION "
        "SELECT t.x, e.y FROM t JOIN e ON t.y = e.x) SELECT * FROM t WHERE x <> y"
    )
    db.sql("INSERT INTO e VALUES (1, 2), (1, 2), (1, 3), (1, 4), (1, 5), (5, 6), (null, 1)")
    (fact,) = asked(db, "e(1, 2)").nodes
    assert (fact.kind, fact.row, fact.copies) == (ProofKind.BASE, (1, 2), 2)
    proof = asked(db, "b(1)")
    assert proof.nodes[0].copies == 5
    assert [each.text for each in proof.rules.values()][-1] == "SELECT x FROM e WHERE y < 9"
    _, rows = aggregate_of(proof)
    assert rows == ["e(1, 2), 2 < 9", "e(1, 3), 3 < 9", "e(1, 4), 4 < 9"]
    proof = asked(db, "r(1, 6)")
    assert [each.text for each in proof.nodes] == [
        "r(1, 6)",
        "`r [t]`(1, 6)",
        "1 != 6",
        "`r [t]`(1, 5)",
        "e(5, 6)",
        "e(1, 5)",
    ]
    assert [each.text for each in proof.rules.values()] == [
        "SELECT x, y FROM e",
        "SELECT t.x, e.y FROM t JOIN e ON t.y = e.x",
        "SELECT * FROM t WHERE x <> y",
    ]


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [CLOSURE, CLOSURE.replace("tc(x: number, y: number)", "tc(x: number, y: number) virtual")],
)
def test_virtual_relations_and_stored_ones_have_the_same_proofs(text: str) -> None:
    db = opened(text, {"edge": [*path(6), (0, 3), (2, 5)]})
    proof = asked(db, "tc(0, 6)")
    assert (proof.height, proof.canonical) == (4, True)
    assert premises(proof) == ["tc(0, 5)", "edge(5, 6)"]


def test_there_is_a_proof_even_without_time() -> None:
    db = opened(NONLINEAR, {"edge": path(32)})
    with db.transaction() as tx:
        tx.insert("edge", [(40, 41)])
    proof = asked(db, "tc(0, 32)", seconds=0.0)
    assert (proof.height, proof.height_at_least, proof.minimal) == (6, 1, False)
    assert not proof.canonical
    assert [each.reason for each in proof.cuts] == [CutReason.SECONDS]


def test_few_tuples_give_bounds() -> None:
    db = opened(CLOSURE, {"edge": [*path(20), (0, 10)]})
    with db.transaction() as tx:
        tx.insert("edge", [(3, 18)])
    for expanded in range(1, 40, 3):
        state = query_state(state_of(db))
        proof = prove(state, "tc", (0, 20), ProofLimits(expanded=expanded))
        assert proof.height is not None
        assert proof.height_at_least <= 6 <= proof.height
        assert proof.minimal == (proof.height_at_least == proof.height)
        assert proof.canonical == (not proof.cuts)
    assert proof.canonical


def test_nodes_that_are_not_shown() -> None:
    db = opened(CLOSURE, {"edge": path(30)})
    proof = asked(db, "tc(0, 30)", nodes=7)
    assert len(proof.nodes) == 7
    assert proof.height == 30
    assert {each.reason for each in proof.cuts} == {CutReason.NODES}
    for cut in proof.cuts:
        assert cut.node is not None
        assert cut.shown is not None
        assert cut.total is not None
        assert cut.shown < cut.total


def test_instances_that_are_not_looked_at() -> None:
    complete = [(x, y) for x in range(12) for y in range(12)]
    db = opened(NONLINEAR, {"edge": complete})
    with db.transaction() as tx:
        tx.insert("edge", [(11, 12)])
    proof = asked(db, "tc(0, 12)", instances=4)
    assert proof.height == 2
    assert [(each.reason, each.node) for each in proof.cuts][-1] == (CutReason.INSTANCES, 0)
    assert not proof.canonical
    assert proof.height_at_least == 1
    assert asked(db, "tc(0, 12)", instances=1000).canonical


# --- ranks that are least heights ----------------------------------------------------------------


def exact(db: Database) -> frozenset[str]:
    return query_state(state_of(db)).exact


def test_an_evaluation_makes_ranks_exact_and_a_change_does_not(tmp_path: Path) -> None:
    text = CLOSURE + ".decl other(x: number)\n.decl up(x: number, y: number)\n"
    text += "up(x, y) :- tc(x, y), !other(x).\nup(x, z) :- up(x, y), up(y, z).\n"
    db = opened(text, {"edge": path(20)}, tmp_path / "w")
    assert exact(db) == {"tc", "up"}
    with db.transaction() as tx:
        tx.insert("other", [(77,)])
    assert exact(db) == {"tc"}
    db.close()
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert exact(db) == {"tc"}
        proof = asked(db, "tc(0, 20)", expanded=1)
        assert (proof.minimal, proof.height) == (True, 20)
        with db.transaction() as tx:
            tx.insert("edge", [(0, 10)])
        assert exact(db) == frozenset()
        proof = asked(db, "tc(0, 20)")
        assert (proof.height, proof.canonical) == (11, True)
        with db.at(2) as past:
            assert isinstance(past, Database)
            assert exact(past) == {"tc", "up"}
            assert asked(past, "tc(0, 20)").height == 20


def test_the_same_question_gives_the_same_bytes() -> None:
    edges = [(f"n{x}", f"n{y}") for x in range(4) for y in range(4) if x != y]
    text = NONLINEAR.replace("number", "symbol")
    answers = set()
    for rows in (edges, edges[::-1]):
        db = opened(text)
        for row in rows:
            with db.transaction() as tx:
                tx.insert("edge", [row])
        for _ in range(2):
            proof = asked(db, 'tc("n0", "n0")').to_json()
            answers.add(json.dumps(proof | {"commit": 0}))
    assert len(answers) == 1


def test_very_high_proofs_are_cut_when_the_time_is_over() -> None:
    db = opened(CLOSURE.replace("edge(y, z).", "edge(y, z), x < 2."), {"edge": path(150)})
    proof = asked(db, "tc(0, 150)", nodes=100, seconds=0.0)
    assert len(proof.nodes) == 100
    assert (proof.height, proof.height_at_least, proof.canonical) == (None, 150, False)
    assert proof.cuts[0].reason is CutReason.SECONDS
    proof = asked(db, "tc(0, 150)", nodes=100)
    assert (proof.height, proof.size, proof.canonical) == (150, 300, True)


def test_partitioned_relations_are_probed_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = asked(opened(CLOSURE, {"edge": [*path(9), (0, 4)]}), "tc(0, 9)")
    share_out(monkeypatch)
    db = corollary.open(None)
    db.load(text=CLOSURE)
    with db.transaction() as tx:
        tx.insert("edge", [*path(9), (0, 4)])
    assert tx.stats["tc"].placement == "tasks"
    assert asked(db, "tc(0, 9)").to_json() == expected.to_json()
    with db.transaction() as tx:
        tx.insert("edge", [(3, 8)])
    assert asked(db, "tc(0, 9)").height == 5


def test_recursion_over_numbers() -> None:
    db = opened(
        """.decl n(x: number)
        n(0).
        n(x + 1) :- n(x), x < 50.
        n(x + 5) :- n(x), x < 50."""
    )
    proof = asked(db, "n(50)")
    assert (proof.height, proof.canonical, proof.size) == (10, True, 11)
    assert [each.text for each in notes(proof)] == ["45 < 50", "50 = 45 + 5"]
    assert exact(db) == {"n"}


def test_rules_that_are_added_and_removed() -> None:
    db = opened(CLOSURE, {"edge": path(6)})
    shortcut = "tc(x, z) :- edge(x, y), edge(y, z)."
    with db.transaction() as tx:
        tx.add_rule(shortcut)
    proof = asked(db, "tc(0, 6)")
    assert (proof.height, proof.canonical, proof.rules[3].text) == (5, True, shortcut)
    with db.transaction() as tx:
        tx.remove_rule(shortcut)
    proof = asked(db, "tc(0, 6)")
    assert (proof.height, proof.canonical) == (6, True)
