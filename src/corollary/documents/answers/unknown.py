"""Partial answers: the unknown label `?`, how labels are encoded in relations, and joins of rows.

A label that begins with `?` gets another `?` in relations, so that none is taken for an unknown. An
unknown of which it is known that it is one of some labels is encoded as `?{…}`, with the labels as
JSON: that is what a function with a type brings, or one that answers once.

Rows are joined by compat(x, y, z) of the specification: (a, a, a), (?, a, a), (a, ?, a), (?, ?, ?):
`?` meets anything and becomes it.
"""

import json
from collections.abc import Iterable, Sequence

UNKNOWN = "?"
EncodedRow = tuple[str, ...]
"""Labels as relations have them."""
Tuples = frozenset[EncodedRow]
NO_ROWS: Tuples = frozenset()
UNIT_ROWS: Tuples = frozenset({()})
"""The one row without columns: it matches, and there is nothing more to say."""


def encode_label(label: str) -> str:
    """Return a label as relations have it.

    >>> encode_label("?"), encode_label("a")
    ('??', 'a')
    """
    return UNKNOWN + label if label.startswith(UNKNOWN) else label


def encode_one_of(labels: Iterable[str]) -> str:
    """Return the symbol of an unknown that is one of some labels.

    >>> encode_one_of({"b", "a"})
    '?{["a", "b"]}'
    """
    return f"?{{{json.dumps(sorted(labels))}}}"


def range_of(symbol: str) -> frozenset[str] | None:
    """Return the labels that an unknown may be; None if it may be any."""
    return None if symbol == UNKNOWN else frozenset(json.loads(symbol[2:-1]))


def is_unknown(symbol: str) -> bool:
    """Whether a symbol of a relation stands for an unknown label."""
    return symbol == UNKNOWN or symbol.startswith("?{")


class Unknown:
    """A label that is not known yet; two of one class are the same label.

    >>> Unknown()
    ?
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return UNKNOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown)

    def __hash__(self) -> int:
        return hash(Unknown)


ANY = Unknown()
Answer = tuple[str | Unknown, ...]


def decode_label(symbol: str) -> str | Unknown:
    """Return the label that a symbol of a relation stands for.

    >>> decode_label("?"), decode_label("??"), decode_label("a")
    (?, '?', 'a')
    """
    if is_unknown(symbol):
        return ANY
    return symbol[1:] if symbol.startswith(UNKNOWN) else symbol


def decode_row(row: EncodedRow) -> Answer:
    """Return the answer that a row of a relation stands for."""
    return tuple(map(decode_label, row))


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
        return encode_one_of(both) if both else None
    if is_unknown(one):
        one, other = other, one
    return one if is_unknown(other) and one in (range_of(other) or ()) else None


def join(
    left: Tuples,
    left_columns: Sequence[str],
    right: Tuples,
    right_columns: Sequence[str],
    columns: Sequence[str],
) -> Tuples:
    """Return the natural join of two sets of rows, with some of its columns.

    >>> sorted(join({("?",), ("b",)}, ("x",), {("a", "c")}, ("x", "y"), ("x", "y")))
    [('a', 'c')]
    """
    if not left_columns and not right_columns:
        return UNIT_ROWS if left and right else NO_ROWS
    merged = (
        _merge(dict(zip(left_columns, one, strict=True)), right_columns, other)
        for one in left
        for other in right
    )
    return frozenset(tuple(row[name] for name in columns) for row in merged if row is not None)


def _merge(row: dict[str, str], names: Iterable[str], values: EncodedRow) -> dict[str, str] | None:
    for name, value in zip(names, values, strict=True):
        both = meet(row[name], value) if name in row else value
        if both is None:
            return None
        row[name] = both
    return row
