"""Partial answers: the unknown label `?`, how labels are encoded in relations, and joins of rows.

A label that begins with `?` gets another `?` in relations, so that none is taken for an unknown. An
unknown of which it is known that it is one of some labels is encoded as `?{…}`, with the labels as
JSON: that is what a function with a type brings, or one that answers once.

Rows are joined by compat(x, y, z) of the specification: (a, a, a), (?, a, a), (a, ?, a), (?, ?, ?):
`?` meets anything and becomes it.

The order of answers: which of them stand for which others.

An answer with unknown labels has a *range*: the answers without unknown labels that it stands for.
u ≤ u' iff u has the label of u', or `?`, in each column, and the range of u' is part of that of u:

| u        | is below                      | is not below                        |
|----------|-------------------------------|-------------------------------------|
| `?`      | everything                    |                                     |
| `?{a,b}` | `a`, `b`, `?{a}`, `?{a,b}`    | `c`, `?{a,c}`, `?`                  |

Several rows of relations may be one answer: `?{a}` and `?{b}` are both decoded as `?`, and its
range is that of both. Places of one class always have the same label, so one of each is looked at.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from corollary.documents.queries.shape import QueryShape

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
    if not left or not right:
        return NO_ROWS
    if not right_columns and columns == left_columns:
        return left
    if not left_columns and columns == right_columns:
        return right
    shared = [
        (left_columns.index(each), at)
        for at, each in enumerate(right_columns)
        if each in left_columns
    ]
    own = [
        (True, left_columns.index(each))
        if each in left_columns
        else (False, right_columns.index(each))
        for each in columns
    ]
    found = set()
    for one, other in join_pairs(left, left_columns, right, right_columns):
        row = one
        for at, position in shared:
            if row[at] != other[position]:
                both = meet(row[at], other[position])
                if both is None:
                    break
                row = (*row[:at], both, *row[at + 1 :])
        else:
            found.add(tuple(row[at] if is_left else other[at] for is_left, at in own))
    return frozenset(found)


def join_pairs(
    left: Iterable[EncodedRow],
    left_columns: Sequence[str],
    right: Iterable[EncodedRow],
    right_columns: Sequence[str],
) -> Iterator[tuple[EncodedRow, EncodedRow]]:
    """Yield the pairs of rows that may join: a hash join, where rows with unknowns meet all.

    Rows may be longer than their columns.
    """
    shared = [
        (left_columns.index(name), right_columns.index(name))
        for name in left_columns
        if name in right_columns
    ]
    by_key: dict[tuple[str, ...], list[EncodedRow]] = {}
    vague: list[EncodedRow] = []
    everything: list[EncodedRow] = []
    for row in right:
        key = tuple(row[at] for _, at in shared)
        everything.append(row)
        (vague if any(map(_is_vague, key)) else by_key.setdefault(key, [])).append(row)
    for row in left:
        key = tuple(row[at] for at, _ in shared)
        partners = everything
        if not any(map(_is_vague, key)):
            partners = [*by_key.get(key, ()), *vague]
        yield from ((row, other) for other in partners)


def _is_vague(symbol: str) -> bool:
    """Whether a symbol may be equal to one that is spelled differently."""
    return symbol[:1] == UNKNOWN and symbol[1:2] != UNKNOWN


# --- the order of answers ------------------------------------------------------------------------


class AnswerOrder:
    """The order of some answers.

    Args:
        rows: the answers, encoded as in relations.
        shape: the query.
        labels: all that a label may be, one that is mentioned nowhere among them, encoded; they may
            be left out if every unknown label is `?`.
    """

    def __init__(
        self, rows: Iterable[EncodedRow], shape: QueryShape, labels: Sequence[str] = ()
    ) -> None:
        self._labels = labels
        columns = [
            tuple(root.outputs[at] for root in shape.roots) for at in range(len(shape.outputs))
        ]
        positions = [at for at, each in enumerate(columns) if each not in columns[:at]]
        self._rows: dict[Answer, list[EncodedRow]] = {}
        for row in rows:
            several = self._rows.setdefault(decode_row(row), [])
            several.append(tuple(row[at] for at in positions))

    def most_general(self) -> frozenset[Answer]:
        """Return the minimal answers: those that no other one is more general than."""
        vague = [each for each in self._rows if ANY in each]
        return frozenset(
            each
            for each in self._rows
            if not any(other != each and self.is_below(other, each) for other in vague)
        )

    def most_specific(self) -> frozenset[Answer]:
        """Return the maximal answers: those that are more general than no other one."""
        return frozenset(
            each
            for each in self._rows
            if ANY not in each
            or not any(other != each and self.is_below(each, other) for other in self._rows)
        )

    def is_below(self, general: Answer, special: Answer) -> bool:
        """Whether an answer is more general than another one, or the same: u ≤ u'."""
        if not all(one in (ANY, other) for one, other in zip(general, special, strict=True)):
            return False
        rows = self._rows[general]
        return all(self._is_covered(row, rows) for row in self._rows[special])

    def _is_covered(self, row: EncodedRow, rows: list[EncodedRow]) -> bool:
        """Whether the range of a row is part of those of others together."""
        near = [each for each in rows if None not in map(meet, each, row)]
        if any(all(map(_contains, each, row)) for each in near):
            return True
        if len(near) < 2:
            return False
        # No single row covers it, but several may together: split one column into its labels.
        at = next(
            at for at, one in enumerate(row) if not all(_contains(each[at], one) for each in near)
        )
        labels = range_of(row[at])
        return all(
            self._is_covered((*row[:at], encode_one_of([label]), *row[at + 1 :]), near)
            for label in (self._labels if labels is None else labels)
        )


def _contains(one: str, other: str) -> bool:
    """Whether a label can be whatever another one can be."""
    if UNKNOWN in (one, other):
        return one == UNKNOWN
    return _range(other) <= _range(one)


def _range(symbol: str) -> frozenset[str]:
    return (range_of(symbol) or frozenset()) if is_unknown(symbol) else frozenset({symbol})
