"""Records on Spark: maintained in partitions as on the driver."""

from __future__ import annotations

import random
from typing import Any

import corollary

PROGRAM = """
.type Context = [last: number, before: number]
.type Value = None {} | Object {site: number, at: Context}
.decl calls(site: number, from: number, to: number)
.decl makes(site: number, m: number)
.decl reachable(m: number, c: Context)
reachable(0, [0, 0]).
reachable(to, [site, last]) :- reachable(m, [last, _]), calls(site, m, to).
.decl made(m: number, v: Value)
made(m, $Object(s, c)) :- reachable(m, c), makes(s, m).
made(m, $None) :- reachable(m, _), !makes(_, m).
.decl last_calls(site: number, n: number)
last_calls(s, n) :- calls(s, _, _), n = count : { made(_, $Object(_, [s, _])) }.
"""


def test_records_are_the_same_everywhere(spark: Any) -> None:
    chance = random.Random(7)
    calls = [(site, chance.randrange(30), chance.randrange(30)) for site in range(1, 90)]
    makes = [(1000 + n, chance.randrange(30)) for n in range(20)]
    with (
        corollary.open(None, engine="local") as here,
        corollary.open(None, spark=spark, placement="partitions") as there,
    ):
        for db in (here, there):
            db.load(text=PROGRAM)
            with db.transaction() as tx:
                tx.insert("calls", calls)
                tx.insert("makes", makes)
            with db.transaction() as tx:
                tx.delete("calls", calls[:20])
                tx.insert("calls", [(site + 200, to, start) for site, start, to in calls[:5]])
                tx.delete("makes", makes[:3])
        for name in ("reachable", "made", "last_calls"):
            found, wanted = (set(db.relation(name).rows()) for db in (there, here))
            assert found == wanted, name
            assert len(wanted) > 10
