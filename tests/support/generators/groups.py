"""Random transactions on programs whose counts and sums are recursive: bills, paths, cycles."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from support.maintained_database import MIXED, Judged, Row, Step

BILL = """
.decl part(p: number)
.decl uses(p: number, s: number, q: number)
.decl bought(p: number, price: number)
.decl need(p: number, n: number)
need(p, n) :- bought(p, n).
need(p, n) :- part(p), n = sum q * m : { uses(p, s, q), need(s, m) }.
"""

OWN_COST = """
.decl part(p: number)
.decl uses(p: number, s: number, q: number)
.decl bought(p: number, price: number)
.decl cost(p: number, c: number)
cost(p, own + c) :- bought(p, own), c = sum q * m : { uses(p, s, q), cost(s, m), m > 1 }.
.decl large(p: number)
large(p) :- cost(p, c), c > 9.
.decl small(p: number, n: number)
small(p, n) :- part(p), !large(p), n = count : { uses(p, s, _), large(s) }.
"""

PATHS = """
.decl part(p: number)
.decl uses(p: number, s: number, q: number)
.decl bought(p: number, price: number)
.decl paths(x: number, y: number, n: number)
paths(x, x, 1) :- part(x).
paths(x, y, n) :- part(x), part(y), n = sum m : { uses(x, z, _), paths(z, y, m) }.
"""

MUTUAL = """
.decl part(p: number)
.decl uses(p: number, s: number, q: number)
.decl bought(p: number, price: number)
.decl odd(p: number, n: number)
.decl even(p: number, n: number, k: number)
odd(p, n) :- part(p), n = count : { uses(p, s, q), even(s, m, _), m < q + 3 }.
even(p, n, k) :- part(p), n = sum m + q : { uses(p, s, q), odd(s, m) },
    k = count : { uses(p, s, q), q > 1, odd(s, m), even(s, _, m) }.
even(p, 2, q) :- bought(p, q).
"""

FILTERED = """
.decl part(p: number)
.decl uses(p: number, s: number, q: number)
.decl bought(p: number, price: number)
.decl h(q: number, p: number, n: number)
h(a, p, n) :- part(p), bought(p, a), n = count : { uses(p, s, q), q > 1, bought(s, b), h(b, s, m) },
    n < 3.
h(a + 1, p, n) :- bought(p, a), uses(p, _, 3),
    n = sum m : { uses(p, s, 1), h(a, s, m) ; uses(p, s, 2), h(a, s, m) }.
"""

PROGRAMS = (BILL, OWN_COST, PATHS, MUTUAL, FILTERED)


def transactions(seed: int, count: int) -> Iterator[Step]:
    """Yield steps: parts, quantities and prices come and go; links mostly lead to later parts.

    Now and then a link leads back: with those that are there it may close a cycle.
    """
    generator = random.Random(seed)
    nodes = generator.randint(3, 9)
    present: dict[str, set[Row]] = {"part": set(), "uses": set(), "bought": set()}
    for _ in range(count):
        inserts: dict[str, set[Row]] = {name: set() for name in present}
        deletes: dict[str, set[Row]] = {name: set() for name in present}
        for _ in range(generator.choice((1, 1, 2, 3, 8))):
            name = generator.choice(("part", "uses", "uses", "uses", "bought"))
            if present[name] and generator.random() < 0.4:
                deletes[name].add(generator.choice(sorted(present[name])))
                continue
            one, other = generator.sample(range(nodes), 2)
            if one > other and generator.random() > 0.12:
                one, other = other, one
            row: Row = (one,)
            if name == "uses":
                row = (one, one if generator.random() < 0.01 else other, generator.randint(1, 3))
            elif name == "bought":
                row = (one, generator.randint(0, 3))
            inserts[name].add(row)
        for name, rows in present.items():
            deletes[name] -= inserts[name]
            inserts[name] -= rows
        yield inserts, deletes
        for name, rows in present.items():
            present[name] = (rows - deletes[name]) | inserts[name]


def judge_groups(number: int, count: int = 30) -> Counter[str]:
    """Maintain a program through transactions, and judge each; return what was counted."""
    algorithms = ("ranked", "auto", MIXED)
    algorithm = algorithms[number // len(PROGRAMS) % len(algorithms)]
    judged = Judged(PROGRAMS[number % len(PROGRAMS)], algorithm, seed=number)
    for inserts, deletes in transactions(number, count):
        base = judged.base  # a transaction that was refused changed nothing
        judged.step(
            (
                {name: rows - set(base[name]) for name, rows in inserts.items()},
                {name: rows & set(base[name]) for name, rows in deletes.items()},
            )
        )
    return judged.counts
