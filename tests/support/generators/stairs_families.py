"""Families of programs with subsumption or min and max in recursion, on random graphs.

Each is maintained through random transactions; after each, the relations are those of the oracle
(naive iteration over the best tuples), and the stairs keep their invariants.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import Database, state_of
from corollary.errors import CorollaryError
from corollary.provenance.nodes import ProofKind
from corollary.provenance.query_state import query_state
from corollary.provenance.why import prove
from oracles.evaluation import OracleLimit, evaluate, typed_rows
from support.stairs_check import check_stairs

Edge = tuple[int, int, int]

ROUNDS = 300
"""The oracle needs fewer on small graphs, unless values improve without end."""


class Family(NamedTuple):
    """A program over `edge(x, y, w)`, the bounds of its weights, and whether edges lead upwards.

    A program that has no text is made of random rules.
    """

    text: str
    least: int
    greatest: int
    is_acyclic: bool = False


EDGE = ".decl edge(x: number, y: number, w: number)\n"

FAMILIES: dict[str, Family] = {
    "shortest paths of one source": Family(
        EDGE
        + """
.decl d(y: number, c: number)
d(0, 0).
d(y, c + w) :- d(x, c), edge(x, y, w), w >= 0.
d(y, c1) <= d(y, c2) :- c2 <= c1.
""",
        0,
        3,
    ),
    "shortest paths": Family(
        EDGE
        + """
.decl sp(x: number, y: number, d: number)
sp(x, y, w) :- edge(x, y, w).
sp(x, z, d + w) :- sp(x, y, d), edge(y, z, w).
sp(x, y, d1) <= sp(x, y, d2) :- d2 < d1.
.decl far(x: number, y: number)
far(x, y) :- sp(x, y, d), d > 3.
.decl near(x: number, n: number)
near(x, n) :- sp(x, _, _), n = count : { sp(x, _, d), d <= 3 }.
""",
        0,
        4,
    ),
    "shortest paths, non-linear": Family(
        EDGE
        + """
.decl sp(x: number, y: number, d: number)
sp(x, y, w) :- edge(x, y, w).
sp(x, z, d + w) :- sp(x, y, d), sp(y, z, w).
sp(x, y, d1) <= sp(x, y, d2) :- d2 <= d1.
""",
        0,
        4,
    ),
    "widest paths": Family(
        EDGE
        + """
.decl wp(x: number, y: number, d: number)
wp(x, y, w) :- edge(x, y, w).
wp(x, z, min(d, w)) :- wp(x, y, d), wp(y, z, w).
wp(x, y, d1) <= wp(x, y, d2) :- d2 >= d1.
""",
        0,
        4,
    ),
    "least labels": Family(
        EDGE
        + """
.decl l(x: number, m: number)
l(x, x) :- edge(x, _, _). l(x, x) :- edge(_, x, _).
l(y, m) :- edge(_, y, _), m = min n : { l(x, n), edge(x, y, _) }.
l(y, m) :- edge(y, _, _), m = min n : { l(x, n), edge(y, x, _) }.
""",
        0,
        1,
    ),
    "values pumped to a bound": Family(
        EDGE
        + """
.decl f(x: number, v: number)
f(0, v) :- edge(0, _, v).
f(y, min(9, v + w)) :- f(x, v), edge(x, y, w).
f(x, a) <= f(x, b) :- b >= a.
""",
        0,
        3,
    ),
    "cost and hops": Family(
        EDGE
        + """
.decl p(y: number, c: number, h: number)
p(0, 0, 0).
p(y, c + w, h + 1) :- p(x, c, h), edge(x, y, w), h < 6.
p(y, c1, h1) <= p(y, c2, h2) :- c2 <= c1, h2 <= h1.
""",
        0,
        4,
    ),
    "lexicographic": Family(
        EDGE
        + """
.decl p(y: number, c: number, h: number)
p(0, 0, 0).
p(y, c + w, h + 1) :- p(x, c, h), edge(x, y, w).
p(y, c1, h1) <= p(y, c2, h2) :- c2 < c1.
p(y, c, h1) <= p(y, c, h2) :- h2 < h1.
""",
        0,
        3,
    ),
    "intervals and hulls": Family(
        EDGE
        + """
.decl i(x: number, lo: number, hi: number)
i(x, w, w) :- edge(x, x, w).
i(y, max(-8, lo - w), min(8, hi + w)) :- i(x, lo, hi), edge(x, y, w).
i(y, min(a, c), max(b, e)) :- i(y, a, b), i(y, c, e).
i(x, a, b) <= i(x, c, e) :- c <= a, e >= b.
""",
        0,
        2,
    ),
    "negative weights": Family(
        EDGE
        + """
.decl d(y: number, c: number)
d(0, 0).
d(y, c + w) :- d(x, c), edge(x, y, w).
d(y, a) <= d(y, b) :- b <= a.
""",
        -1,
        3,
    ),
    "two orders and a plain relation": Family(
        EDGE
        + """
.decl a(x: number, v: number)
.decl b(x: number, v: number)
.decl r(x: number)
a(x, w) :- edge(x, x, w).
b(y, max(v + w, 5)) :- a(x, v), edge(x, y, w).
a(y, min(v, 3)) :- b(x, v), edge(x, y, _), r(x).
r(x) :- edge(x, _, _), b(x, v), v > 4.
r(y) :- r(x), edge(x, y, _).
a(x, u) <= a(x, v) :- v >= u.
b(x, u) <= b(x, v) :- v >= u.
""",
        0,
        4,
    ),
    "two orders": Family(
        EDGE
        + """
.decl a(x: number, v: number)
.decl b(x: number, v: number)
a(x, w) :- edge(x, x, w).
b(y, max(v + w, 5)) :- a(x, v), edge(x, y, w).
a(y, min(v, 7)) :- b(x, v), edge(x, y, _).
a(x, u) <= a(x, v) :- v >= u.
b(x, u) <= b(x, v) :- v >= u.
""",
        0,
        4,
    ),
    "grammars": Family(
        EDGE
        + """
.decl g(x: number, v: unsigned)
g(x, to_unsigned(w)) :- edge(x, x, w).
g(x, a + b + 1u) :- edge(x, y, _), edge(x, z, _), g(y, a), g(z, b), y < z.
g(x, u) <= g(x, v) :- v <= u.
""",
        0,
        4,
    ),
    "best products": Family(
        EDGE
        + """
.decl p(x: number, y: number, v: float)
p(x, y, to_float(w) / 4.0) :- edge(x, y, w), w <= 4.
p(x, z, v * u) :- p(x, y, v), edge(y, z, w), u = to_float(w) / 4.0, u >= 0.0, u <= 1.0, v >= 0.0.
p(x, y, u) <= p(x, y, v) :- v >= u.
""",
        0,
        4,
    ),
    "three values": Family(
        EDGE
        + """
.decl p(y: number, c: number, h: number, m: number)
p(0, 0, 0, 9).
p(y, c + w, h + 1, min(m, w)) :- p(x, c, h, m), edge(x, y, w), h < 5.
p(y, c1, h1, m1) <= p(y, c2, h2, m2) :- c2 <= c1, h2 <= h1, m2 >= m1.
""",
        0,
        3,
    ),
    "hops": Family(
        EDGE
        + """
.decl h(x: number, y: number, n: unsigned)
h(x, x, 0u) :- edge(x, _, _).
h(x, z, n + 1u) :- h(x, y, n), edge(y, z, w), w > 0.
h(x, y, m) <= h(x, y, n) :- n <= m.
""",
        0,
        2,
    ),
    "longest paths of a DAG": Family(
        EDGE
        + """
.decl far(x: number, d: number)
far(x, 0) :- edge(x, _, _).
far(y, d) :- edge(_, y, _), d = max c + w : { far(x, c), edge(x, y, w) }.
""",
        -1,
        4,
        is_acyclic=True,
    ),
    "gaps, in rounds": Family(
        '.pragma "subsumption" "rounds"\n'
        + EDGE
        + """
.decl d(y: number, c: number)
d(0, 0).
d(y, c + w) :- d(x, c), edge(x, y, w), c < 6.
d(y, a) <= d(y, b) :- b + 2 <= a.
.decl far(y: number)
far(y) :- d(y, c), c > 3.
""",
        0,
        3,
    ),
    "a clause that reads, in rounds": Family(
        '.pragma "subsumption" "rounds"\n'
        + EDGE
        + """
.decl r(x: number, y: number)
r(x, y) :- edge(x, y, _).
r(x, z) :- r(x, y), edge(y, z, w), w > 0.
r(x, y) <= r(x, z) :- edge(y, z, _), y < z.
""",
        0,
        2,
    ),
    "random rules": Family("", -2, 3),
    "choices and recursion above": Family(
        EDGE
        + """
.decl d(y: number, c: number)
d(0, 0).
d(y, c + w) :- d(x, c), edge(x, y, w), w >= 0.
d(y, a) <= d(y, b) :- b <= a.
.decl one(c: number, y: number) choice-domain c
one(c, y) :- d(y, c).
.decl chain(x: number, y: number)
chain(x, y) :- one(x, y).
chain(x, z) :- chain(x, y), one(y, z).
.decl left(y: number)
left(y) :- d(y, c), !one(c, y).
""",
        0,
        3,
    ),
    "negation below and above": Family(
        EDGE
        + """
.decl stop(x: number)
stop(x) :- edge(x, x, _).
.decl d(y: number, c: number)
d(0, 0).
d(y, c + w) :- d(x, c), edge(x, y, w), !stop(x), w >= 0.
d(y, a) <= d(y, b) :- b <= a.
.decl far(y: number)
far(y) :- d(y, c), c > 3.
.decl n(k: number)
n(k) :- k = count : { d(_, _) }.
""",
        0,
        4,
    ),
}


def random_rules(rng: random.Random) -> str:
    """Return a program of random monotone rules over relations of bounded values, and plain ones.

    A premise whose order is the other one comes in with a minus sign.
    """
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    is_greater = {name: rng.random() < 0.5 for name in names}
    lines = [EDGE, ".decl r(x: number)"]
    for name in names:
        sign = ">=" if is_greater[name] else "<="
        lines.append(f".decl {name}(x: number, v: number)")
        lines.append(f"{name}(x, u) <= {name}(x, v) :- v {sign} u.")
        lines.append(f"{name}(x, w) :- edge(x, {rng.choice('xy')}, w), w {rng.choice('<>')} 1.")
    for _ in range(rng.randint(2, 5)):
        head = rng.choice(names)
        keys = rng.choice([("x", "y"), ("x", "x")])
        premises = [rng.choice(names) for _ in keys[: rng.randint(1, 2)]]
        body = [
            f"{name}({key}, v{at})"
            for at, (name, key) in enumerate(zip(premises, keys, strict=False))
        ]
        values = [
            f"v{at}" if is_greater[name] == is_greater[head] else f"({rng.randint(0, 3)} - v{at})"
            for at, name in enumerate(premises)
        ]
        value = rng.choice(["{} + {}", "min({}, {})", "max({}, {})"]).format(
            values[0], rng.choice([*values[1:], "w", str(rng.randint(0, 4))])
        )
        if rng.random() < 0.3:
            better = ">" if is_greater[premises[0]] else "<"
            body.append(f"v0 {better} {rng.randint(-3, 3)}")
        body += ["r(x)"] if rng.random() < 0.3 else []
        body.append("edge(x, y, w)")
        lines.append(f"{head}(y, max(-5, min(5, {value}))) :- {', '.join(body)}.")
    name = rng.choice(names)
    better = ">" if is_greater[name] else "<"
    lines.append("r(y) :- r(x), edge(x, y, _).")
    lines.append(f"r(x) :- {name}(x, v), v {better} {rng.randint(-3, 3)}.")
    return "\n".join(lines)


def run_family(
    name: str, seed: int, transactions: int = 8, algorithm: str = "ranked"
) -> Counter[str]:
    """Maintain a program of a family; return how many transactions and stairs were judged.

    Raises:
        AssertionError: a relation is not that of the oracle, or an invariant does not hold.
    """
    family, rng = FAMILIES[name], random.Random(f"{name} {seed}")
    nodes = rng.choice([3, 4, 5])
    counts: Counter[str] = Counter()
    db = corollary.open(None, engine="local", algorithm=algorithm)
    text = family.text or random_rules(rng)
    db.load(text="// corollary: allow C0706\n" + text)
    edges: set[Edge] = set()
    before = evaluate(text, {"edge": set()}, rounds=ROUNDS)
    for _ in range(transactions):
        added = {
            (rng.randrange(nodes), rng.randrange(nodes), rng.randint(family.least, family.greatest))
            for _ in range(rng.choice([0, 1, 1, 2, 6]))
        }
        if family.is_acyclic:
            added = {(*sorted((x, y)), w) for x, y, w in added if x != y}
        removed = set(rng.sample(sorted(edges), min(len(edges), rng.choice([0, 1, 1, 2, 4]))))
        try:
            wanted = evaluate(text, {"edge": (edges - removed) | added}, rounds=ROUNDS)
        except OracleLimit:
            wanted = {}
        try:
            with db.transaction() as tx:
                tx.delete("edge", sorted(removed))
                tx.insert("edge", sorted(added))
        except CorollaryError as error:
            if wanted or "C0812" not in str(error):
                raise AssertionError(f"{name}, seed {seed}: {error}") from None
            counts["endless"] += 1
        else:
            assert wanted, f"{name}, seed {seed}: values improve without end, and it was not seen"
            edges = (edges - removed) | added
        counts["transactions"] += 1
        for relation, rows in wanted.items():
            found = to_python(db.relation(relation).arrow())
            assert typed_rows(found) == typed_rows(rows), f"{name}, seed {seed}: {relation}"
            change, was = tx.changes[relation], before.get(relation, set())
            for part, of in ((change.added, rows - was), (change.removed, was - rows)):
                assert typed_rows(to_python(part)) == typed_rows(of), (
                    f"{name}, seed {seed}: change of {relation}"
                )
        before = wanted or before
        counts["stairs"] += check_stairs(db)
    counts["proofs"] = check_proofs(db, edges)
    db.close()
    return counts


def check_proofs(db: Database, edges: set[Edge]) -> int:
    """Assert that tuples of each relation have proofs that end in edges; return how many."""
    asked = query_state(state_of(db))
    known = {name for name, each in asked.program.relations.items() if each.is_declared}
    derived = known & {rule.head.relation for rule in asked.program.rules}
    goals = [(name, row) for name in sorted(derived) for row in db.relation(name).rows()[:2]]
    for name, row in goals:
        proof = prove(asked, name, row)
        assert proof.holds, f"{name}{row}"
        for node in proof.nodes:
            assert node.relation != "edge" or node.row in edges, f"{name}{row}: {node.text}"
            if node.kind is not ProofKind.DERIVED:
                continue
            weight = int(node.relation in asked.program.subsumption)
            below = max((proof.nodes[each].height for each in node.premises), default=-1)
            assert node.height >= weight + below, f"{name}{row}: {node.text}, {node.height}"
    return len(goals)
