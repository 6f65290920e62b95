"""Sets of tuples: difference and intersection, on the driver where both are there."""

from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.immutable_sets import ImmutableSet, Pieces, Tuples


def minus(pieces: Pieces, one: Tuples, other: Tuples) -> Tuples:
    """Return the tuples of one that are not in the other."""
    if not len(one) or not len(other):
        return one
    if one.is_local and other.is_local:
        return _picked(pieces, one, other, is_wanted=False)
    found, _ = pieces.run(
        _without(one, other, pieces.small),
        one.types,
        "difference",
        len(one) + len(other),
        expected=len(one),
    )
    return found


def common(pieces: Pieces, one: Tuples, other: Tuples) -> Tuples:
    """Return the tuples of one that are in the other."""
    if not len(one) or not len(other):
        return Tuples(one.types)
    if one.is_local and other.is_local:
        return _picked(pieces, one, other, is_wanted=True)
    types = one.types
    query = sql.select(sql.columns_of(types, "l"), sql.of(one.query(), "l"))
    on = sql.all_same(types, "l", "r", _both(one, other))
    query = sql.joined(query, sql.of(other.query(), "r"), on, "SEMI")
    expected = min(len(one), len(other))
    found, _ = pieces.run(query, types, "intersection", len(one) + len(other), expected=expected)
    return found


def _both(one: Tuples, other: Tuples) -> list[bool]:
    """Return which columns have a null on both sides."""
    return [left and right for left, right in zip(one.nulls, other.nulls, strict=True)]


def _without(one: Tuples, other: Tuples, small: int) -> sql.Node:
    """Return a query for the tuples of one that are not in the other.

    When few are looked up among many, those that match are fetched first: then the many need not
    be moved.
    """
    types, nulls = one.types, _both(one, other)
    away = other.query()
    if len(one) <= small < len(other):
        away = sql.select(sql.columns_of(types, "b"), sql.of(away, "b"))
        on = sql.all_same(types, "b", "k", nulls)
        away = sql.joined(away, sql.of(one.query(), "k"), on, "SEMI")
    kept = sql.select(sql.columns_of(types, "l"), sql.of(one.query(), "l"))
    return sql.joined(kept, sql.of(away, "r"), sql.all_same(types, "l", "r", nulls), "ANTI")


def folded(pieces: Pieces, tuples: Tuples) -> Tuples:
    """Return tuples with those on the driver in one piece."""
    local = [each for each in tuples.pieces if each.table is not None]
    if len(local) < 2 or sum(each.size for each in local) > pieces.small:
        return tuples
    table = Tuples(tuples.types, local).table()
    rest = [each for each in tuples.pieces if each.table is None]
    return Tuples(tuples.types, [*rest, ImmutableSet(pieces, tuples.types, table.num_rows, table)])


def merged(pieces: Pieces, tuples: Tuples, about: str) -> Tuples:
    """Return tuples in one piece."""
    if len(tuples.pieces) < 2:
        return tuples
    size = len(tuples)
    found, _ = pieces.run(tuples.query(), tuples.types, about, size, expected=size)
    return found


def _picked(pieces: Pieces, one: Tuples, other: Tuples, *, is_wanted: bool) -> Tuples:
    known = set(other.rows())
    mask = [(row in known) is is_wanted for row in one.rows()]
    if all(mask):
        return one
    return pieces.of_table(one.table().filter(mask), one.types)
