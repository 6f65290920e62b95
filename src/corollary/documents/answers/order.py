"""The order of answers: which of them stand for which others.

An answer with unknown labels has a *range*: the answers without unknown labels that it stands for.
u ≤ u' iff u has the label of u', or `?`, at each place, and the range of u' is part of that of u:

| u        | is below                      | is not below                        |
|----------|-------------------------------|-------------------------------------|
| `?`      | everything                    |                                     |
| `?{a,b}` | `a`, `b`, `?{a}`, `?{a,b}`    | `c`, `?{a,c}`, `?`                  |

Several rows of relations may be one answer: `?{a}` and `?{b}` are both decoded as `?`, and its
range is that of both. Places of one class always have the same label, so one of each is looked at.
"""

from collections.abc import Iterable, Sequence

from corollary.documents.answers import unknown
from corollary.documents.queries.shape import QueryShape


class AnswerOrder:
    """The order of some answers.

    Args:
        rows: the answers, encoded as in relations.
        shape: the query.
        labels: all that a label may be, one that is mentioned nowhere among them, encoded; they may
            be left out if every unknown label is `?`.
    """

    def __init__(
        self, rows: Iterable[unknown.EncodedRow], shape: QueryShape, labels: Sequence[str] = ()
    ) -> None:
        self._labels = labels
        columns = [
            tuple(root.outputs[at] for root in shape.roots) for at in range(len(shape.outputs))
        ]
        places = [at for at, each in enumerate(columns) if each not in columns[:at]]
        self._rows: dict[unknown.Answer, list[unknown.EncodedRow]] = {}
        for row in rows:
            several = self._rows.setdefault(unknown.decode_row(row), [])
            several.append(tuple(row[at] for at in places))

    def most_general(self) -> frozenset[unknown.Answer]:
        """Return the minimal answers: those that no other one is more general than."""
        vague = [each for each in self._rows if unknown.ANY in each]
        return frozenset(
            each
            for each in self._rows
            if not any(other != each and self.is_below(other, each) for other in vague)
        )

    def most_specific(self) -> frozenset[unknown.Answer]:
        """Return the maximal answers: those that are more general than no other one."""
        return frozenset(
            each
            for each in self._rows
            if unknown.ANY not in each
            or not any(other != each and self.is_below(each, other) for other in self._rows)
        )

    def is_below(self, general: unknown.Answer, special: unknown.Answer) -> bool:
        """Whether an answer is more general than another one, or the same: u ≤ u'."""
        if not all(
            one in (unknown.ANY, other) for one, other in zip(general, special, strict=True)
        ):
            return False
        rows = self._rows[general]
        return all(self._is_covered(row, rows) for row in self._rows[special])

    def _is_covered(self, row: unknown.EncodedRow, rows: list[unknown.EncodedRow]) -> bool:
        """Whether the range of a row is part of those of others together."""
        near = [each for each in rows if _overlap(each, row)]
        if any(all(map(_contains, each, row)) for each in near):
            return True
        if len(near) < 2:
            return False
        # No single row covers it, but several may together: split one place into its labels.
        at = next(
            at for at, one in enumerate(row) if not all(_contains(each[at], one) for each in near)
        )
        labels = unknown.range_of(row[at])
        return all(
            self._is_covered((*row[:at], unknown.encode_one_of([label]), *row[at + 1 :]), near)
            for label in (self._labels if labels is None else labels)
        )


def _overlap(one: unknown.EncodedRow, other: unknown.EncodedRow) -> bool:
    return all(
        unknown.meet(left, right) is not None for left, right in zip(one, other, strict=True)
    )


def _contains(one: str, other: str) -> bool:
    """Whether a label can be whatever another one can be."""
    if unknown.UNKNOWN in (one, other):
        return one == unknown.UNKNOWN
    return _range(other) <= _range(one)


def _range(symbol: str) -> frozenset[str]:
    return (
        (unknown.range_of(symbol) or frozenset())
        if unknown.is_unknown(symbol)
        else frozenset({symbol})
    )
