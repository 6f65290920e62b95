"""Why events happened: changes, both states, other events, triggers."""

from pathlib import Path

import pytest

import corollary
from corollary.core.states import State
from corollary.database.database import state_of, store_of
from corollary.database.warehouse_store import WarehouseStore
from corollary.provenance.changes.why_changed import why_changed
from corollary.provenance.changes.why_event import why_event
from corollary.provenance.limits import ProofLimits
from corollary.provenance.proof import Proof

NETWORK = """
.decl cable(x: symbol, y: symbol)
.decl link(x: symbol, y: symbol) {storage}
link(x, y) :- cable(x, y).
link(x, z) :- link(x, y), cable(y, z).
.decl home(x: symbol)
home("h1"). home("h2").
.decl lost(x: symbol, y: symbol)
lost(x, y) :- -link(x, y), home(y), !home(x).
.decl twice(x: symbol)
twice(x) :- lost(x, y), lost(x, z), y < z, link@old(x, y).
.alert lost "{{y}} is cut off from {{x}}"
.decl ticket(x: symbol)
+ticket(y) :- lost("r", y), lost(_, y).
.decl opened(x: symbol)
opened(x) :- +ticket(x).
.alert opened "ticket for {{x}}"
"""


def ask(db: corollary.Database, goal: str, commit: int | None = None) -> Proof:
    store = store_of(db)
    assert isinstance(store, WarehouseStore)
    limits = ProofLimits(seconds=60.0)
    return why_event(store, state_of(db), goal, commit=commit, limits=limits)


@pytest.fixture(params=["stored", "virtual"])
def network(request: pytest.FixtureRequest, tmp_path: Path) -> corollary.Database:
    db = corollary.open(tmp_path / "w")
    db.load(text=NETWORK.format(storage=request.param))
    with db.transaction() as tx:
        tx.insert("cable", [("r", "a"), ("a", "h1"), ("a", "h2")])
    with db.transaction() as tx:
        tx.delete("cable", [("r", "a")])
    with db.transaction() as tx:
        tx.insert("cable", [("r", "a")])
    return db


def drawn(proof: Proof) -> dict[str, tuple[str, list[str], list[str]]]:
    """Return each node: its kind, and the texts of its premises and notes."""
    text = {node.id: node.text for node in proof.nodes}
    return {
        f"{node.text}{' ' * bool(node.sign)}{node.sign}": (
            str(node.kind),
            [text[at] for at in node.premises],
            [text[at] for at in node.notes],
        )
        for node in proof.nodes
    }


def test_a_lost_link_is_proved_before_the_commit(network: corollary.Database) -> None:
    proof = ask(network, 'lost("r", "h1")', 3)
    assert (proof.holds, proof.commit, proof.height) == (True, 3, 3)
    assert proof.rules[3].text == "lost(x, y) :- -link(x, y), home(y), !home(x)."
    assert drawn(proof) == {
        'lost("r", "h1")': ("derived", ['link("r", "h1")', 'home("h1")'], ['!home("r")']),
        'link("r", "h1") -': ("change", ['link("r", "h1")'], []),
        'home("h1")': ("base", [], []),
        '!home("r")': ("absent", [], []),
        'link("r", "h1")': ("derived", ['link("r", "a")', 'cable("a", "h1")'], []),
        'link("r", "a")': ("derived", ['cable("r", "a")'], []),
        'cable("a", "h1")': ("base", [], []),
        'cable("r", "a") -': ("base", [], []),
    }


def test_events_of_events_and_the_state_before(network: corollary.Database) -> None:
    found = drawn(ask(network, 'twice("r")', 3))
    assert found['twice("r")'] == (
        "derived",
        ['lost("r", "h1")', 'lost("r", "h2")', 'link("r", "h1")'],
        ['"h1" < "h2"'],
    )
    assert found['link("r", "h2") -'] == ("change", ['link("r", "h2")'], [])


def test_a_trigger_is_a_change_with_its_rule(network: corollary.Database) -> None:
    proof = ask(network, "opened(x)", 3)
    assert (proof.goal, proof.answers, len(proof.others)) == ('opened("h1")', 2, 1)
    change = proof.nodes[1]
    assert (change.kind, change.text, change.sign) == ("change", 'ticket("h1")', "+")
    assert change.rule is not None
    assert proof.rules[change.rule].text == '+ticket(y) :- lost("r", y), lost(_, y).'
    assert [proof.nodes[at].text for at in change.premises] == ['lost("r", "h1")']


def test_an_event_that_did_not_happen(network: corollary.Database) -> None:
    with pytest.raises(corollary.InputError, match="C1423"):
        ask(network, 'lost("r", "h1")')
    with pytest.raises(corollary.InputError, match="has not happened in commit 3"):
        ask(network, 'lost("a", "h1")', 3)


def test_nodes_are_breadth_first_and_acyclic(network: corollary.Database) -> None:
    proof = ask(network, 'twice("r")', 3)
    met, seen = [0], {0}
    for at in met:
        node = proof.nodes[at]
        assert node.id == at
        assert all(proof.nodes[below].height <= node.height for below in node.premises)
        for below in (*node.premises, *node.notes):
            if below not in seen:
                seen.add(below)
                met.append(below)
    assert met == list(range(len(proof.nodes)))


def test_a_recursive_event_is_well_founded(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w") as db:
        db.load(
            text='.decl e(x: number, y: number)\n.decl new(x: number)\n.alert new "{x}"\n'
            "new(y) :- +e(0, y).\nnew(y) :- new(x), e(x, y).\n"
        )
        with db.transaction() as tx:
            tx.insert("e", [(0, 1), (1, 2), (2, 1)])
        found = drawn(ask(db, "new(2)"))
        assert found["new(2)"][1] == ["new(1)", "e(1, 2)"]
        assert found["new(1)"][1] == ["e(0, 1)"]


def test_a_tuple_that_a_trigger_added_has_its_rule(network: corollary.Database) -> None:
    store = store_of(network)
    assert isinstance(store, WarehouseStore)
    limits = ProofLimits(seconds=60.0)
    found = why_changed(store, state_of(network), 'ticket("h1")', State.ADDED, limits=limits)
    assert (found.commit, [each.change.relation for each in found.cause]) == (3, ["ticket"])
    assert isinstance(found.after, Proof)
    root = found.after.nodes[0]
    assert (root.kind, root.text, root.sign) == ("change", 'ticket("h1")', "+")
    assert root.rule is not None
    assert found.after.rules[root.rule].text.startswith("+ticket(y) :-")
    assert [found.after.nodes[at].text for at in root.premises] == ['lost("r", "h1")']
