"""Relations that hold constants of a program's rules; they change with the rules only."""

import hashlib
from collections.abc import Sequence

from corollary.core.logic import Constant, Value
from corollary.core.program import Relation
from corollary.core.types import Type


def constant_relation(
    rows: Sequence[tuple[Constant, ...]],
) -> tuple[Relation, tuple[tuple[Value, ...], ...]]:
    """Return a relation for some rows of constants, and its tuples.

    Its name is a digest of the tuples, so that equal ones share a relation and it stays the same
    when other rules change.
    """
    types: list[Type] = []
    for constant in rows[0]:
        assert constant.type is not None
        types.append(constant.type.with_null(False))
    digest = hashlib.blake2b(repr([*map(str, types), *rows]).encode(), digest_size=8)
    relation = Relation(
        f"constants {digest.hexdigest()}",
        tuple(f"c{at}" for at in range(len(types))),
        tuple(types),
        is_derived=False,
        is_declared=False,
    )
    return relation, tuple(tuple(constant.value for constant in row) for row in rows)
