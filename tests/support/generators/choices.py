"""Random transactions on programs with choice domains, and whether a choice is a valid one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from support.maintained_database import ALGORITHMS, Judged, Row

MATCHING = """
.decl edge(x: number, y: number)
.decl pair(x: number, y: number) choice-domain x, y
pair(x, y) :- edge(x, y).
pair(y, x) :- edge(x, y), x < y.
.decl free(x: number)
free(x) :- edge(x, _), !pair(x, _).
"""

TREE = """
.decl edge(x: number, y: number)
.decl tree(x: number, y: number) choice-domain y
tree(0, 0) :- edge(0, _).
tree(x, y) :- tree(_, x), edge(x, y).
.decl leaves(n: number)
leaves(n) :- n = count : { tree(_, y), !tree(y, _) }.
"""

MIXED_STRATUM = """
.decl edge(x: number, y: number)
.decl step(x: number, y: number, k: number) choice-domain (x, y), k
.decl seen(x: number)
seen(0) :- edge(0, _).
seen(y) :- step(_, y, _).
step(x, y, x + y) :- seen(x), edge(x, y).
"""

LEAST = """
.decl edge(x: number, y: number)
.decl first(x: number, y: number, z: number) choice-domain x
first(x, y, z) :- edge(x, y), edge(y, z), !edge(z, x).
first(y, x, 0) :- edge(x, y), x > 1.
.decl ends(z: number, n: number)
ends(z, n) :- first(_, _, z), n = count : { first(_, _, z) }.
"""

PROGRAMS = (
    (MATCHING, "pair", ((0,), (1,))),
    (TREE, "tree", ((1,),)),
    (MIXED_STRATUM, "step", ((0, 1), (2,))),
    (LEAST, "first", ((0,),)),
)


def candidates(relation: str, chosen: set[Row], edges: set[Row]) -> set[Row]:
    """Return what the rules of a relation derive from what was chosen."""
    if relation == "first":
        joined = {(x, y, z) for x, y in edges for at, z in edges if at == y and (z, x) not in edges}
        return joined | {(y, x, 0) for x, y in edges if x > 1}
    if relation == "pair":
        return edges | {(y, x) for x, y in edges if x < y}
    if relation == "tree":
        reached = {y for _, y in chosen}
        roots = {(0, 0) for x, _ in edges if x == 0}
        return roots | {(x, y) for x, y in edges if x in reached}
    seen = {y for _, y, _ in chosen} | {0 for x, _ in edges if x == 0}
    return {(x, y, x + y) for x, y in edges if x in seen}


def check_valid(chosen: set[Row], found: set[Row], domains: Iterable[tuple[int, ...]]) -> None:
    """Assert that Soufflé allows a choice: derived, unique, and as large as possible."""
    assert chosen <= found, "what was chosen is derived"
    for domain in domains:
        keys = Counter(tuple(row[at] for at in domain) for row in chosen)
        assert all(count == 1 for count in keys.values()), "two tuples agree on a domain"
    for row in found - chosen:
        assert any(
            all(row[at] == one[at] for at in domain) for domain in domains for one in chosen
        ), f"{row} could be chosen, too"


def judge_choices(number: int, count: int = 20) -> Counter[str]:
    """Maintain a program through random changes of its edges, and judge each state."""
    generator = random.Random(number)
    text, relation, domains = PROGRAMS[number % len(PROGRAMS)]
    judged = Judged(text, ALGORITHMS[number // len(PROGRAMS) % len(ALGORITHMS)], seed=number)
    nodes = generator.randint(3, 7)
    for _ in range(count):
        size = generator.choice((1, 1, 2, 5))
        edges = {(generator.randrange(nodes), generator.randrange(nodes)) for _ in range(size)}
        present = set(judged.base["edge"])
        judged.step(({"edge": edges - present}, {"edge": edges & present}))
        chosen = set(judged.db.relation(relation).rows())
        check_valid(chosen, candidates(relation, chosen, present ^ edges), domains)
    return judged.counts
