"""Proofs that disqualify candidates: each holds in the state that it is about."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

import pytest

from corollary.core.states import State
from corollary.database.database import state_of
from corollary.provenance.changes.transaction_proofs import ROW_MAX_PROOFS, DisqualifiedProofs
from corollary.provenance.limits import ProofLimits
from oracles.provenance import Derivations
from support.maintained_database import apply, opened
from support.provenance.judge import ProofJudge

PROGRAM = """\
.decl edge(x: symbol, y: symbol)
.decl tc(x: symbol, y: symbol)
tc(x, y) :- edge(x, y).
tc(x, y) :- tc(x, w), edge(w, y).
.decl far(x: symbol, y: symbol)
far(x, y) :- tc(x, y), !edge(x, y).
.decl near(x: symbol, n: number)
near(x, n) :- edge(x, _), n = count : { edge(x, _) }.
"""
NODES = "abcdef"


@pytest.mark.slow
@pytest.mark.parametrize("virtual", [(), ("tc", "far")], ids=["stored", "virtual"])
@pytest.mark.parametrize("algorithm", ["epf", "pf", "dred", "ranked"])
def test_each_proof_is_one_of_its_state(algorithm: str, virtual: tuple[str, ...]) -> None:
    random, counts = Random(7), Counter[State]()
    pairs = [(x, y) for x in NODES for y in NODES]
    edges = set(random.sample(pairs, 12))
    db = opened(PROGRAM, algorithm, virtual)
    apply(db, ({"edge": edges}, {}))
    for _ in range(3):
        gone = set(random.sample(sorted(edges), 3))
        came = set(random.sample(sorted(set(pairs) - edges), 3))
        after = edges - gone | came
        proofs = DisqualifiedProofs()
        with db.transaction(is_traced=True) as tx:
            tx.inspect(partial(proofs.find, state_of(db)))
            tx.delete("edge", sorted(gone))
            tx.insert("edge", sorted(came))
        judges = {
            sign: ProofJudge(Derivations(PROGRAM, {"edge": base}))
            for sign, base in ((State.ADDED, edges), (State.REMOVED, after))
        }
        for row in tx.trace:
            found = proofs.of_row(row)
            assert row.sign is not None or not row.disqualified
            for proof in found:
                assert list(proof.nodes[0].row) in row.disqualified
                judges[row.sign].judge(proof, (row.relation, proof.nodes[0].row))
                assert proof.commit == db.commits - (row.sign is State.ADDED)
                counts[row.sign] += 1
            if row.stage in ("", "result"):  # an earlier stage may be wrong
                assert len(found) == min(len(row.disqualified), ROW_MAX_PROOFS)
        edges = after
    assert counts[State.REMOVED] > 5
    # Stages of `dred` and `ranked` derive what is new only.
    assert counts[State.ADDED] > 5 or algorithm in ("dred", "ranked")


def test_proofs_end_with_their_work() -> None:
    db = opened(PROGRAM, "epf", ())
    apply(db, ({"edge": {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}}, {}))
    proofs = DisqualifiedProofs()
    with db.transaction(is_traced=True) as tx:
        tx.inspect(partial(proofs.find, state_of(db), limits=ProofLimits(work=0)))
        tx.delete("edge", [("b", "d")])
    (row,) = (each for each in tx.trace if each.disqualified)
    assert (row.disqualified, proofs.of_row(row)) == ((["a", "d"],), [])
