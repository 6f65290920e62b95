"""Tuples that are not there because others cover them: in proofs, and when it is asked why not."""

from html import escape

import pytest

import corollary

HOPS = """
.decl edge(x: symbol, y: symbol, w: number)
edge("s", "a", 4). edge("s", "b", 1). edge("b", "a", 1).
.decl best(x: symbol, cost: number, hops: number)
best("s", 0, 0).
best(y, c + w, h + 1) :- best(x, c, h), edge(x, y, w).
"""
COMPONENTWISE = "best(x, c1, h1) <= best(x, c2, h2) :- c2 <= c1, h2 <= h1."
LEXICOGRAPHIC = """
best(x, c1, h1) <= best(x, c2, h2) :- c2 < c1.
best(x, c, h1) <= best(x, c, h2) :- h2 < h1.
"""
ROUNDS = """
.pragma "subsumption" "rounds"
.decl p(x: number)
p(1).
p(x + 1) :- p(x), x < 3.
p(x) <= p(y) :- y = x + 1.
"""

CHOICE = """
.decl e(x: symbol, y: symbol)
e("a", "b"). e("a", "c").
.decl one(x: symbol, y: symbol) choice-domain x
one(x, y) :- e(x, y).
"""


def opened(text: str) -> corollary.Database:
    db = corollary.open(None, engine="local")
    db.load(text=text)
    return db


def test_premises_that_are_no_longer_the_best() -> None:
    db = opened(
        """
        .decl v(x: symbol, n: number)
        v("b", 5).
        v("a", min(n, 3)) :- v("b", n).
        v("b", n + 4) :- v("a", n).
        v(x, n) <= v(x, m) :- m >= n.
        """
    )
    proof = db.why('v("b", 7)')
    (node,) = (each for each in proof.to_json()["nodes"] if "now" in each)
    assert node["text"] == 'v("b", 5): n is at least 5 (now 7)'
    assert (node["row"], node["now"]) == (["b", 5], ["b", 7])
    assert "n is at least 5 (now 7)" in proof.to_svg()


def test_a_better_instance_holds_up_a_worse_premise() -> None:
    db = opened(
        """
        .decl f(x: symbol, n: number)
        .decl v(x: symbol, n: number)
        v(x, n) :- f(x, n).
        v("a", min(n, 3)) :- v("b", n).
        v("b", n + 4) :- v("a", n).
        v(x, n) <= v(x, m) :- m >= n.
        """
    )
    with db.transaction() as transaction:
        transaction.insert("f", [("b", 5)])
    with db.transaction() as transaction:
        transaction.delete("f", [("b", 5)])
        transaction.insert("f", [("b", 6)])
    proof = db.why('v("b", 7)')
    assert [each.text for each in proof.nodes if each.relation] == [
        'v("b", 7)',
        'v("a", 3)',
        'v("b", 5): n is at least 5 (now 7)',
        'f("b", 6)',
    ]
    assert (proof.height, proof.minimal) == (3, True)


def test_values_that_are_ranks() -> None:
    db = opened(
        """
        .decl edge(x: number, y: number, w: unsigned)
        .decl d(x: number, c: unsigned)
        d(0, 0u).
        d(y, c + w) :- d(x, c), edge(x, y, w).
        d(y, a) <= d(y, b) :- b <= a.
        """
    )
    with db.transaction() as transaction:
        transaction.insert("edge", [(0, 1, 2), (1, 2, 0), (2, 1, 0), (2, 3, 4), (0, 3, 6)])
    assert (db.why("d(2, 2u)").height, db.why("d(3, 6u)").height) == (2, 1)
    with db.transaction() as transaction:
        transaction.delete("edge", [(0, 3, 6)])
    proof = db.why("d(3, 6u)")
    assert (proof.height, proof.size, proof.canonical) == (3, 7, True)


def test_premises_that_rounds_have_deleted() -> None:
    proof = opened(ROUNDS).why("p(3)")
    texts = [each.text for each in proof.nodes if each.relation == "p"]
    assert texts == ["p(3)", "p(2): deleted (now p(3))", "p(1): deleted"]


@pytest.mark.parametrize(
    ("text", "goal", "covering", "cover"),
    [
        (HOPS + COMPONENTWISE, 'best("a", 5, 1)', 'best("a", 4, 1)', "not among the best"),
        (HOPS + LEXICOGRAPHIC, 'best("a", 4, 1)', 'best("a", 2, 2)', "not among the best"),
        (HOPS + LEXICOGRAPHIC, 'best("a", 2, 3)', 'best("a", 2, 2)', "not among the best"),
        (ROUNDS, "p(2)", "p(3)", "dominated"),
        (CHOICE, 'one("a", "c")', 'one("a", "b")', "in the choice domain (x)"),
    ],
)
def test_why_not_proves_what_covers_a_tuple(
    text: str, goal: str, covering: str, cover: str
) -> None:
    db = opened(text)
    absence, proof = db.why_not(goal, insertions=1), db.why(covering)
    assert (absence.covered_by, absence.attempts, absence.insertions) == (0, (), None)
    assert [each.text for each in absence.nodes] == [each.text for each in proof.nodes]
    assert absence.to_json()["covered_by"] == 0
    lines = str(absence).splitlines()
    assert lines[0] == f"{goal} does not hold"
    assert (cover in lines[1], lines[1].endswith(f": {covering} is there")) == (True, True)
    assert absence.to_svg().count(escape(covering)) > 1


def test_why_not_of_what_nothing_covers() -> None:
    db = opened(HOPS + COMPONENTWISE)
    assert db.why_not('best("a", 1, 1)').attempts
    assert opened(ROUNDS).why_not("p(7)").attempts
