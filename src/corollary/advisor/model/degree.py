"""Closures and degrees: how many variables determine others, hence how large a join can get.

    deg(T | S) = min |G| over sets G of variables of S, hidden ones included, with T ⊆ cl(G)

Each assignment to G gives at most one T-tuple, so the projection of the join of S on T has at most
N^deg tuples. Sets of variables are bit masks here.

| symbol | name here |
|---|---|
| F(S) | dependencies, as pairs of masks |
| cl(V) | `closure` |
| deg(T given S) | `degree` |
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

EXHAUSTIVE_MAX_VARIABLES = 16
"""With more variables that could help, the key is reduced greedily: a minimum key is NP-hard."""

Masks = tuple[tuple[int, int], ...]


def closure(known: int, dependencies: Iterable[tuple[int, int]]) -> int:
    """Return all variables that some variables determine.

    >>> bin(closure(0b001, [(0b001, 0b010), (0b011, 0b100)]))
    '0b111'
    """
    rules = list(dependencies)
    before = -1
    while known != before:
        before = known
        for left, right in rules:
            if left & known == left:
                known |= right
    return known


@lru_cache(maxsize=1 << 16)
def degree(target: int, dependencies: Masks) -> int:
    """Return the size of a smallest set of variables that determines the target.

    >>> degree(0b110, ((0b001, 0b110),))  # a hidden key
    1
    """
    return len(generators(target, dependencies))


@lru_cache(maxsize=1 << 16)
def generators(target: int, dependencies: Masks) -> tuple[int, ...]:
    """Return a smallest set of variables, each a mask, that determines the target."""
    useful = tuple((left, right & ~left) for left, right in dependencies if right & ~left)
    if not useful:
        return bits(target)
    lefts = rights = 0
    for left, right in useful:
        lefts, rights = lefts | left, rights | right
    # What is on no right side can only determine itself, so it is in every generating set.
    core = target & ~rights
    known = closure(core, useful)
    missing = target & ~known
    if not missing:
        return bits(core)
    pool = bits((lefts | missing) & ~known)
    if len(pool) > EXHAUSTIVE_MAX_VARIABLES:
        return bits(_reduce(target, useful))
    for size in range(1, missing.bit_count()):
        for chosen in combinations(pool, size):
            if not missing & ~closure(core | sum(chosen), useful):
                return (*bits(core), *chosen)
    return (*bits(core), *bits(missing))


def _reduce(target: int, dependencies: Masks) -> int:
    """Remove what the others determine: an irreducible set, though perhaps not a smallest one."""
    kept = target
    for each in bits(target):
        if not target & ~closure(kept & ~each, dependencies):
            kept &= ~each
    return kept


def bits(mask: int) -> tuple[int, ...]:
    """Return the single bits of a mask.

    >>> bits(0b101)
    (1, 4)
    """
    found = []
    while mask:
        low = mask & -mask
        found.append(low)
        mask ^= low
    return tuple(found)
