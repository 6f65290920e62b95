"""Rows with assumptions: what the one tree of a function that answers once has to be for them.

Such a tree matters only through the label l(f) of its root, or, with a grammar, through which of
its offers it is. Instead of trying every vector of them, a match carries what it assumes:

| what `f` brings at the root of its tree | assumption        | in the column of its class |
|-----------------------------------------|-------------------|----------------------------|
| a node with the label `a`               | l(f) = a          | `a`                        |
| a node `*` whose label is class x       | l(f) is anything  | `?@f`, the symbol of l(f)  |
| a node `*`, or one after `//`           | none              |                            |
| the rows of its offer i                 | l(f) = i          | as the offer says          |

Rows join if their labels agree and their assumptions do: `?@f` meets `a`, and l(f) = a from there
on; `?@f` meets `?@g`, and both have one label. A row at the root of the document is a match for
some vector of labels, and every such match has a row. Only labels that meet come up; of rows that
differ only in what they assume, those that assume more are dropped.

For `/r[a][b]` on `r[!f]`, `f` gives `a` with l(f) = a and `b` with l(f) = b: nothing joins.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from json import dumps, loads

from corollary.data_class import dataclass
from corollary.documents.answers.matching import RowAlgebra
from corollary.documents.answers.unknown import (
    UNKNOWN,
    EncodedRow,
    Tuples,
    decode_label,
    encode_one_of,
    is_unknown,
    join_pairs,
    meet,
    range_of,
)
from corollary.documents.queries.shape import Root
from corollary.engines.budget import WorkBudget

ROOT_LABEL = "?@"
"""What the symbol of the root label of a function begins with."""
NO_ASSUMPTION = ""
GROUP_MAX_ROWS = 256
"""Up to this number of rows that agree in all columns, those that assume more are looked for."""
Assumption = dict[str, str]
"""For functions: a label, an unknown with its range, or the symbol of another function."""


def root_label(function: str) -> str:
    """Return the symbol of the label of the root that a function brings."""
    return ROOT_LABEL + function


def assume(function: str, symbol: str) -> str:
    """Return the assumption that the root of a function's tree is something, as rows have it."""
    return dumps([[function, symbol]])


def lift(rows: Iterable[EncodedRow], assumption: str = NO_ASSUMPTION) -> Tuples:
    """Return plain rows as rows with an assumption: it is after the columns."""
    return frozenset((*row, assumption) for row in rows)


@lru_cache(maxsize=4096)
def _pairs(assumption: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, symbol) for name, symbol in loads(assumption)) if assumption else ()


@dataclass(frozen=True, slots=True)
class AssumingRows(RowAlgebra):
    """The algebra of rows with assumptions."""

    budget: WorkBudget

    @property
    def unit(self) -> Tuples:
        """The one row without columns, which assumes nothing."""
        return frozenset({(NO_ASSUMPTION,)})

    def of_row(self, row: EncodedRow) -> Tuples:
        """Return a row as the only one; it assumes nothing."""
        return frozenset({(*row, NO_ASSUMPTION)})

    def project(self, rows: Tuples, positions: Sequence[int]) -> Tuples:
        """Return rows with some of their columns; they assume the same."""
        return _least({(*(row[at] for at in positions), row[-1]) for row in rows})

    def join(
        self,
        left: Tuples,
        left_columns: Sequence[str],
        right: Tuples,
        right_columns: Sequence[str],
        columns: Sequence[str],
    ) -> Tuples:
        """Return the natural join of rows whose labels and assumptions agree."""
        found: set[EncodedRow] = set()
        for one, other in join_pairs(left, left_columns, right, right_columns):
            self.budget.spend()
            row = _join_rows(one, left_columns, other, right_columns, columns)
            if row is not None:
                found.add(row)
        return _least(found)


def _join_rows(
    one: EncodedRow,
    one_columns: Sequence[str],
    other: EncodedRow,
    other_columns: Sequence[str],
    columns: Sequence[str],
) -> EncodedRow | None:
    assumed = dict(_pairs(one[-1]))
    values = dict(zip(one_columns, one[:-1], strict=True))
    if other[-1] != one[-1]:
        for name, _ in _pairs(other[-1]):
            assumed.setdefault(name, UNKNOWN)
        for name, symbol in _pairs(other[-1]):
            if _unify(root_label(name), symbol, assumed) is None:
                return None
    for name, symbol in zip(other_columns, other[:-1], strict=True):
        both = _same_column(values[name], symbol, assumed) if name in values else symbol
        if both is None:
            return None
        values[name] = both
    settled = sorted((name, _resolve(root_label(name), assumed)) for name in assumed)
    ended = [
        [name, assumed[name] if symbol == root_label(name) else symbol] for name, symbol in settled
    ]
    assumption = dumps(ended) if ended else NO_ASSUMPTION
    return (*(values[name] for name in columns), assumption)


def _same_column(one: str, other: str, assumed: Assumption) -> str | None:
    """Return the symbol of a class of which two parts are known; None if they differ.

    A label of the document or the query is known; what is only assumed of a tree stays unknown.
    """
    both = _unify(one, other, assumed)
    if both is None or not (one.startswith(ROOT_LABEL) or other.startswith(ROOT_LABEL)):
        return both
    linked, plain = (one, other) if one.startswith(ROOT_LABEL) else (other, one)
    return linked if plain.startswith(ROOT_LABEL) or is_unknown(plain) else plain


def _resolve(symbol: str, assumed: Assumption) -> str:
    """Return a symbol as it is under an assumption: a label, if that is known."""
    while symbol.startswith(ROOT_LABEL):
        meant = assumed[symbol.removeprefix(ROOT_LABEL)]
        if is_unknown(meant):
            return symbol
        symbol = meant
    return symbol


def _unify(one: str, other: str, assumed: Assumption) -> str | None:
    """Return what two symbols are if they are the same, and assume that; None if they differ."""
    one, other = _resolve(one, assumed), _resolve(other, assumed)
    if one == other:
        return one
    if not one.startswith(ROOT_LABEL):
        one, other = other, one
    if not one.startswith(ROOT_LABEL):
        return meet(one, other)
    function = one.removeprefix(ROOT_LABEL)
    if other.startswith(ROOT_LABEL):
        function, same = sorted((function, other.removeprefix(ROOT_LABEL)))
        both = meet(assumed[function], assumed[same])
        if both is None:
            return None
        assumed[same] = root_label(function)
        assumed[function] = both
        return root_label(function)
    both = meet(assumed[function], other)
    if both is None:
        return None
    assumed[function] = both
    return one if is_unknown(both) else both


def _least(rows: set[EncodedRow]) -> Tuples:
    """Return rows without those that assume more than another one with the same labels."""
    groups: dict[EncodedRow, list[str]] = {}
    for row in rows:
        groups.setdefault(row[:-1], []).append(row[-1])
    found = []
    for columns, assumptions in groups.items():
        if NO_ASSUMPTION in assumptions:
            assumptions = [NO_ASSUMPTION]
        elif 1 < len(assumptions) <= GROUP_MAX_ROWS:
            assumptions = _minimal(assumptions)
        found += [(*columns, each) for each in assumptions]
    return frozenset(found)


def _minimal(assumptions: Sequence[str]) -> list[str]:
    kept: list[tuple[frozenset[tuple[str, str]], str]] = []
    for pairs, each in sorted(
        ((frozenset(_pairs(each)), each) for each in assumptions), key=lambda each: len(each[0])
    ):
        if not any(other <= pairs for other, _ in kept):
            kept.append((pairs, each))
    return [each for _, each in kept]


def may_hold(root: Root, row: EncodedRow, budget: WorkBudget) -> bool:
    """Whether the comparisons of a query may hold for a row with assumptions.

    Unknowns with ranges are tried one by one; columns with one root label are one unknown.
    """
    assumed = dict(_pairs(row[-1]))
    values = dict(zip(root.node.columns, row[:-1], strict=True))
    names: dict[str, str] = {}  # for each class, the unknown that it is
    ranges: dict[str, frozenset[str] | None] = {}
    for name in root.conditions.classes:
        symbol = _resolve(values[name], assumed)
        names[name] = symbol if symbol.startswith(ROOT_LABEL) else name
        meant = assumed[symbol.removeprefix(ROOT_LABEL)] if names[name] != name else symbol
        ranges[names[name]] = range_of(meant) if is_unknown(meant) else frozenset({meant})
    conditions = root.conditions.pin(names, {})
    if conditions is None:
        return False
    known = {name: sorted(each) for name, each in ranges.items() if each is not None}
    for chosen in product(*known.values()):
        budget.spend()
        labels: dict[str, str | None] = dict.fromkeys(ranges)
        labels |= {name: str(decode_label(each)) for name, each in zip(known, chosen, strict=True)}
        if conditions.may_hold(labels):
            return True
    return False


def plain_rows(rows: Tuples, labels: Sequence[str]) -> Iterator[EncodedRow]:
    """Yield the rows that rows with assumptions stand for.

    Args:
        rows: with assumptions.
        labels: all that a label may have to be, encoded: a root label that stands in two columns
            is the same label in both, so there is a row for each of them.
    """
    for row in rows:
        assumed = dict(_pairs(row[-1]))
        symbols = [_narrow(each, assumed) for each in row[:-1]]
        linked = [each for each in symbols if each.startswith(ROOT_LABEL)]
        several = [each for each in dict.fromkeys(linked) if linked.count(each) > 1]
        for chosen in product(*(_options(each, assumed, labels) for each in several)):
            meant = dict(zip(several, chosen, strict=True))
            yield tuple(_plain(each, assumed, meant) for each in symbols)


def _narrow(symbol: str, assumed: Assumption) -> str:
    """Return the symbol of a column; a root label that is assumed is the only one in its range."""
    meant = _resolve(symbol, assumed)
    is_assumed = symbol.startswith(ROOT_LABEL) and not meant.startswith(ROOT_LABEL)
    return encode_one_of([meant]) if is_assumed else meant


def _options(symbol: str, assumed: Assumption, labels: Sequence[str]) -> list[str]:
    allowed = range_of(assumed[symbol.removeprefix(ROOT_LABEL)])
    return [each for each in labels if allowed is None or each in allowed]


def _plain(symbol: str, assumed: Assumption, meant: Mapping[str, str]) -> str:
    if symbol in meant:
        return encode_one_of([meant[symbol]])
    return assumed[symbol.removeprefix(ROOT_LABEL)] if symbol.startswith(ROOT_LABEL) else symbol
