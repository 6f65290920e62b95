"""How the time of the advisor grows with a program: the number of clauses, and of literals in each.

The bodies are chains of random relations between the two columns of the query, so that clauses have
parts in common, and every literal but the outer ones can be folded.
"""

import random
import time
from collections.abc import Iterator
from itertools import pairwise

from bench.figure import Figure
from corollary.advisor.advise import advise
from corollary.advisor.consultation import DEFAULT_OPTIONS
from corollary.advisor.model.scheme import Scheme, WorkloadQuery
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.analysis.check import check
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

RELATIONS = 6
SHAPES = ((4, 4), (14, 4), (12, 8), (24, 8))
"""Clauses, and literals in each."""
MOST_SECONDS = 10.0


def chains(clauses: int, literals: int, seed: int = 1) -> str:
    """Return a program whose query has clauses that are chains."""
    dice = random.Random(seed)
    lines = [f".decl r{at}(a: number, b: number)" for at in range(RELATIONS)]
    lines.append(".decl q(x: number, y: number) virtual")
    names = ["X", *(f"V{at}" for at in range(literals - 1)), "Y"]
    for _ in range(clauses):
        pairs = pairwise(names)
        body = [f"r{dice.randrange(RELATIONS)}({one}, {other})" for one, other in pairs]
        lines.append(f"q(X, Y) :- {', '.join(body)}.")
    return "\n".join(lines)


def scheme_of(text: str) -> Scheme:
    """Return the scheme of a program, with the query `q`."""
    program = parse(SourceFile("program", text))
    return read_scheme(program, check(program), [WorkloadQuery("q")])


def run(scale: float) -> Iterator[Figure]:
    """Yield the seconds of advice for each shape; below scale 0.1, for small ones only."""
    for clauses, literals in SHAPES if scale >= 0.1 else SHAPES[:2]:
        scheme = scheme_of(chains(clauses, literals))
        began = time.perf_counter()
        found = advise(scheme, DEFAULT_OPTIONS).queries["q"]
        seconds = time.perf_counter() - began
        about = f"N^{found.before.left_deep} -> N^{found.after.left_deep}"
        yield Figure(f"{clauses} clauses of {literals}", seconds, "s", MOST_SECONDS, about)
