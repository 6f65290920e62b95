"""Why not: what fails in the nearest attempts, as users see it."""

from typing import Any

import pytest

import corollary
from corollary.database.database import state_of, store_of
from corollary.provenance.absences.why_not import why_not, with_attempts
from corollary.provenance.limits import ProofLimits
from corollary.provenance.nodes import ProofKind
from corollary.provenance.proof import Absence
from corollary.provenance.query_state import query_state
from corollary.provenance.why import why

NETWORK = """
.decl edge(x: symbol, y: symbol)
edge("a", "b"). edge("b", "c"). edge("d", "e").
.decl down(x: symbol)
down(x) :- broken(x).
down(x) :- off(x).
.decl broken(x: symbol)
broken("b").
.decl off(x: symbol)
off("b").
.decl reach(x: symbol, y: symbol)
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z), !down(y).
.decl many(x: symbol, n: number)
many(x, n) :- edge(x, _), n = count : { reach(x, _) }.
.decl same(x: symbol, y: symbol) eqrel
same(x, y) :- edge(x, y).
.decl last(x: symbol)
last(x) :- edge(_, x), !edge(x, _).
.decl price(x: symbol, n: number)
price("a", 3). price("b", 8).
.decl dear(x: symbol, n: number)
dear(x, n * 2) :- price(x, n), n > 5 ; off(x), n = 1.
.decl far(x: symbol)
far(x) :- edge(x, y), broken(y), off("q"), off("r"), off("s"), off(x).
"""


@pytest.fixture(scope="module")
def database() -> corollary.Database:
    db = corollary.open(None)
    db.load(text=NETWORK)
    return db


def ask(db: corollary.Database, goal: str, insertions: int = 0) -> Absence:
    limits = ProofLimits(seconds=60.0)
    return why_not(state_of(db), store_of(db), goal, insertions=insertions, limits=limits)


def attempts(found: Absence) -> list[tuple[int, int, int, list[str]]]:
    return [
        (each.rule, each.distance, each.count, [f"{f.kind} {f.literal}" for f in each.failing])
        for each in found.attempts
    ]


def test_missing_and_blocking_tuples(database: corollary.Database) -> None:
    found = ask(database, 'reach("a", "c")')
    assert attempts(found) == [
        (3, 1, 1, ['missing edge("a", "c")']),
        (4, 1, 1, ['blocking !down("b")']),
    ]
    (blocked,) = found.attempts[1].failing
    assert blocked.node is not None
    down = found.nodes[blocked.node]
    assert (down.kind, down.text) == (ProofKind.DERIVED, 'down("b")')
    assert [found.nodes[at].text for at in down.premises] == ['broken("b")']
    assert {each.id for each in found.nodes} == set(range(len(found.nodes)))
    assert found.rules[4].text.startswith("reach(x, z) :-")


def test_every_proof_of_a_blocking_tuple_has_to_go(database: corollary.Database) -> None:
    found = ask(database, 'reach("a", "c")', 2).insertions
    assert found is not None
    assert [[(c.op, c.relation, c.row) for c in each] for each in found.sets] == [
        [("+", "edge", ("a", "c"))],
        [("-", "broken", ("b",)), ("-", "off", ("b",))],
    ]
    assert (found.size, found.complete) == (1, False)


def test_an_aggregate_with_another_value(database: corollary.Database) -> None:
    found = ask(database, 'many("a", 7)')
    assert attempts(found) == [(5, 1, 1, ['condition 7 = count : { reach("a", y) }'])]
    (failing,) = found.attempts[0].failing
    assert failing.node is not None
    assert found.nodes[failing.node].kind is ProofKind.AGGREGATE


def test_an_equivalence_is_asked_in_both_directions(database: corollary.Database) -> None:
    assert attempts(ask(database, 'same("a", "e")')) == [
        (6, 1, 1, ['missing edge("a", "e")']),
        (6, 1, 1, ['missing edge("e", "a")']),
    ]


def test_a_negated_projection_reads_as_written(database: corollary.Database) -> None:
    assert attempts(ask(database, 'last("a")')) == [
        (7, 2, 1, ['missing edge(_, "a")', 'blocking !edge("a", _)'])
    ]


def test_conditions_and_alternatives(database: corollary.Database) -> None:
    assert attempts(ask(database, 'dear("a", 6)')) == [
        (8, 1, 1, ["condition 3 > 5"]),
        (8, 2, 2, ['missing off("a")', "condition 3 = 1"]),
        (8, 2, 2, ['missing off("a")', "condition 6 = 1 * 2"]),
    ]


def test_more_than_three_failures_have_a_beginning(database: corollary.Database) -> None:
    (found,) = ask(database, 'far("a")').attempts
    assert (found.distance, found.count, found.beginning) == (4, 1, 2)
    assert [each.literal for each in found.failing] == ['off("q")']
    assert {name: value for name, (value, _) in found.bindings.items()} == {"x": "a", "y": "b"}


def test_absent_notes_have_attempts(database: corollary.Database) -> None:
    state = state_of(database)
    with database.transaction() as tx:
        tx.insert("edge", [("e", "f")])
    proof = with_attempts(query_state(state), why(state, 'reach("d", "f")'))
    (note,) = [node for node in proof.nodes if node.kind is ProofKind.ABSENT]
    assert note.text == '!down("e")'
    assert [each.failing[0].literal for each in note.attempts] == ['broken("e")', 'off("e")']
    assert {1, 2} <= proof.rules.keys()
    with database.transaction() as tx:
        tx.delete("edge", [("e", "f")])


def test_no_time_is_said(database: corollary.Database) -> None:
    state = state_of(database)
    found = why_not(state, store_of(database), 'reach("a", "e")', limits=ProofLimits(seconds=1e-9))
    assert [each.reason for each in found.cuts] == ["seconds"]


@pytest.mark.parametrize(
    ("goal", "code"),
    [
        ('reach("a", x)', "C1420"),
        ('reach("a", "b"), edge("a", "b")', "C1420"),
        ('reach("a", "b")', "C1421"),
        ('nothing("a")', "C0201"),
    ],
)
def test_what_cannot_be_asked(database: corollary.Database, goal: str, code: str) -> None:
    with pytest.raises(corollary.InputError, match=code):
        ask(database, goal)


def test_the_same_question_has_the_same_answer(database: corollary.Database) -> None:
    def once() -> Any:
        return ask(database, 'reach("a", "e")', 2).to_json()

    assert once() == once()


def test_a_view_in_sql_has_its_query_block() -> None:
    with corollary.open(None) as db:
        db.sql("CREATE TABLE sale(item INT, price DECIMAL(8,2))")
        db.sql("CREATE VIEW dear AS SELECT item FROM sale WHERE price > 3")
        db.sql("INSERT INTO sale VALUES (1, 2.50), (1, 2.50)")
        found = ask(db, "dear(1)")
        assert [each.failing[0].literal for each in found.attempts] == ["2.50 > 3.00"]
        (rule,) = found.rules.values()
        assert rule.text.startswith("SELECT item FROM sale") or "CREATE VIEW dear" in rule.text
