"""Partial answers as sets of rows, and their join: `?` meets anything and becomes it.

compat(x, y, z) of the specification: (a, a, a), (?, a, a), (a, ?, a), (?, ?, ?).
"""

from collections.abc import Iterable

from corollary.documents.shape import Columns
from corollary.documents.unknown import UNKNOWN, is_unknown, one_of, range_of

Tuples = frozenset[tuple[str, ...]]
NOTHING: Tuples = frozenset()
YES: Tuples = frozenset({()})
"""The one row without columns: it matches, and there is nothing more to say."""


def meet(one: str, other: str) -> str | None:
    """Return the label that two are, if they can be the same.

    >>> meet("?", "a"), meet("a", "b"), meet('?{["a", "b"]}', "a"), meet('?{["a"]}', "b")
    ('a', None, 'a', None)
    """
    if other in (one, UNKNOWN):
        return one
    if one == UNKNOWN:
        return other
    if is_unknown(one) and is_unknown(other):
        both = (range_of(one) or frozenset()) & (range_of(other) or frozenset())
        return one_of(both) if both else None
    if is_unknown(one):
        one, other = other, one
    return one if is_unknown(other) and one in (range_of(other) or ()) else None


def join(
    left: Tuples, left_columns: Columns, right: Tuples, right_columns: Columns, columns: Columns
) -> Tuples:
    """Return the rows that agree with each other, with the columns that are asked for.

    >>> sorted(join({("?",), ("b",)}, ("x",), {("a", "c")}, ("x", "y"), ("x", "y")))
    [('a', 'c')]
    """
    if not left_columns and not right_columns:
        return YES if left and right else NOTHING
    made = (
        _met(dict(zip(left_columns, one, strict=True)), right_columns, other)
        for one in left
        for other in right
    )
    return frozenset(tuple(row[name] for name in columns) for row in made if row is not None)


def _met(row: dict[str, str], names: Iterable[str], values: Iterable[str]) -> dict[str, str] | None:
    for name, value in zip(names, values, strict=True):
        both = meet(row[name], value) if name in row else value
        if both is None:
            return None
        row[name] = both
    return row
