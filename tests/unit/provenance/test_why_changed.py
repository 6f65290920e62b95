"""Causes of changes, against all subsets of what a commit has changed."""

from itertools import chain, combinations
from pathlib import Path
from random import Random

import pytest

import corollary
from corollary.core.states import State
from corollary.database.database import state_of, store_of
from corollary.database.warehouse_store import WarehouseStore
from corollary.provenance.changes.why_changed import why_changed
from corollary.provenance.limits import ProofLimits
from corollary.provenance.proof import Absence, ChangeExplanation, Proof
from support.provenance.small_programs import BASES, Fact, random_facts, random_program
from support.selection import examples

LIMITS = ProofLimits(seconds=60.0, dry_runs=200)
DOMAIN = (1, 2, 3)


def explain(
    db: corollary.Database, goal: str, sign: State, commit: int | None = None
) -> ChangeExplanation:
    store = store_of(db)
    assert isinstance(store, WarehouseStore)
    return why_changed(store, state_of(db), goal, sign, commit=commit, limits=LIMITS)


def write(fact: Fact) -> str:
    return f"{fact[0]}({', '.join(map(str, fact[1]))})"


Changes = frozenset[tuple[str, Fact]]


def apply(base: set[Fact], changes: Changes) -> set[Fact]:
    removed = {fact for op, fact in changes if op == "-"}
    return (base - removed) | {fact for op, fact in changes if op == "+"}


@pytest.mark.parametrize("seed", range(examples(3, 8)))
def test_all_subsets_agree(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    program, base = random_program(random), random_facts(random, DOMAIN)
    new = set(random.sample(sorted(random_facts(random, DOMAIN) - base), 2))
    gone = set(random.sample(sorted(base), 2))
    changes: Changes = frozenset((*(("+", f) for f in new), *(("-", f) for f in gone)))
    with corollary.open(tmp_path / "w") as db:
        db.load(text=program.text("virtual" if seed % 3 == 2 else ""))
        for facts, removed in ((base, set[Fact]()), (new, gone)):
            with db.transaction() as tx:
                for name in BASES:
                    tx.insert(name, [row for relation, row in facts if relation == name])
                    tx.delete(name, [row for relation, row in removed if relation == name])
        before, after = (program.evaluate(each, DOMAIN) for each in (base, apply(base, changes)))
        questions = [(State.ADDED, fact) for fact in sorted(after - before)]
        questions += [(State.REMOVED, fact) for fact in sorted(before - after)]
        for sign, fact in random.sample(questions, min(5, len(questions))):

            def does(
                chosen: Changes, fact: Fact = fact, is_wanted: bool = sign is State.ADDED
            ) -> bool:
                return (fact in program.evaluate(apply(base, chosen), DOMAIN)) is is_wanted

            found = explain(db, write(fact), sign, 3)
            cause = frozenset(
                (each.change.op, (each.change.relation, each.change.row)) for each in found.cause
            )
            assert does(cause)
            assert not any(does(cause - {each}) for each in cause)
            assert found.smallest
            every = chain.from_iterable(combinations(changes, n) for n in range(len(cause)))
            assert not any(does(frozenset(each)) for each in every)
            for each in found.cause:
                change = each.change.op, (each.change.relation, each.change.row)
                assert each.necessary is not does(changes - {change})
            if sign is State.ADDED:
                assert isinstance(found.before, Absence)
                assert isinstance(found.after, Proof)
                assert (found.before.commit, found.after.commit) == (2, 3)
                proof = found.after
            else:
                assert isinstance(found.before, Proof)
                assert isinstance(found.after, Absence)
                assert (found.before.commit, found.after.commit) == (2, 3)
                proof = found.before
            check_marks(proof, sign, before, program.evaluate(apply(base, cause), DOMAIN))


def check_marks(proof: Proof, sign: State, before: set[Fact], after: set[Fact]) -> None:
    """Check that marked nodes are those that the cause changes."""
    assert proof.holds
    other = before if sign is State.ADDED else after
    mark, opposite = ("+", "-") if sign is State.ADDED else ("-", "+")
    for node in proof.nodes:
        if node.kind in ("base", "derived"):
            assert node.sign == ("" if (node.relation, node.row) in other else mark)
        elif node.kind == "absent":
            assert node.sign == (opposite if (node.relation, node.row) in other else "")


NETWORK = """
.decl cable(x: symbol, y: symbol)
.decl down(x: symbol)
.decl link(x: symbol, y: symbol)
link(x, y) :- cable(x, y), !down(x).
link(x, z) :- link(x, y), link(y, z).
"""


@pytest.fixture
def network(tmp_path: Path) -> corollary.Database:
    db = corollary.open(tmp_path / "w")
    db.load(text=NETWORK)
    with db.transaction() as tx:
        tx.insert("cable", [("a", "b"), ("b", "c")])
    with db.transaction() as tx:
        tx.insert("down", [("b",)])
    with db.transaction() as tx:
        tx.add_rule('link(x, "z") :- down(x).')
    return db


def test_a_rule_is_a_cause(network: corollary.Database) -> None:
    found = explain(network, 'link("a", "z")', State.ADDED)
    assert found.commit == 4
    (cause,) = found.cause
    assert (cause.change.op, cause.change.relation) == ("+", 'link(x, "z") :- down(x).')
    assert cause.necessary
    assert found.smallest
    assert isinstance(found.after, Proof)
    assert [(node.text, node.sign) for node in found.after.nodes if node.sign] == [
        ('link("a", "z")', "+"),
        ('link("b", "z")', "+"),
    ]


def test_an_insertion_may_remove(network: corollary.Database) -> None:
    found = explain(network, 'link("a", "c")', State.REMOVED)
    assert found.commit == 3
    assert [(each.change.op, each.change.row) for each in found.cause] == [("+", ("b",))]
    assert isinstance(found.before, Proof)
    assert '!down("b")' in {node.text for node in found.before.nodes if node.sign == "+"}


def test_the_last_commit_that_did_it_is_named(network: corollary.Database) -> None:
    with pytest.raises(corollary.InputError, match="Commit 2 has not removed") as error:
        explain(network, 'link("a", "c")', State.REMOVED, 2)
    assert "commit 3 has" in str(error.value)
    with pytest.raises(corollary.InputError, match="C1422"):
        explain(network, 'link("c", "a")', State.ADDED)


def test_facts_of_the_text_are_causes(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w") as db:
        text = ".decl p(x: number)\n.decl q(x: number)\nq(x) :- p(x).\np(x) :- q(x), x > 5.\n"
        db.load(text=text)
        db.load(text=f"{text}p(1). p(2).\n")
        db.load(text=f"{text}p(2).\n")
        added = explain(db, "q(1)", State.ADDED)
        assert (added.commit, [each.change.row for each in added.cause]) == (2, [(1,)])
        removed = explain(db, "q(1)", State.REMOVED)
        assert [(each.change.op, each.change.row) for each in removed.cause] == [("-", (1,))]
        assert removed.commit == 3


def test_what_triggers_did_is_among_the_causes(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w") as db:
        db.load(
            text=".decl order(x: number)\n.decl stock(x: number)\n.decl open(x: number)\n"
            "open(x) :- stock(x).\n+stock(x) :- +order(x).\n"
        )
        with db.transaction() as tx:
            tx.insert("order", [(7,)])
        found = explain(db, "open(7)", State.ADDED)
        assert [(each.change.op, each.change.relation) for each in found.cause] == [("+", "stock")]


SHOP = """
CREATE TABLE sale(item INT, shop STRING, price DECIMAL(8,2));
CREATE VIEW dear AS SELECT item, shop FROM sale WHERE price > 3;
"""


@pytest.mark.slow
def test_a_copy_of_a_row_is_a_cause(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w") as db:
        db.sql(SHOP)
        db.sql("INSERT INTO sale VALUES (1, 'x', 2.50), (2, 'x', 4.00), (2, 'x', 4.00)")
        db.sql("INSERT INTO sale VALUES (3, 'y', 9.00)")
        db.sql("DELETE FROM sale WHERE item = 3")
        twice = explain(db, 'dear(2, "x")', State.ADDED, 2)
        (cause,) = twice.cause
        assert (cause.change.relation, cause.change.row[:2]) == ("sale", (2, "x"))
        assert not cause.necessary  # the other copy would have done
        (once,) = explain(db, 'dear(3, "y")', State.ADDED, 3).cause
        assert once.necessary
        removed = explain(db, 'dear(3, "y")', State.REMOVED, 4)
        assert [each.change.op for each in removed.cause] == ["-"]
