"""Instances of rules, as rows of the relations that pipelines derive."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from corollary.core.arrow import single_array, to_python
from corollary.core.arrow_buffers import fixed_values, index_array
from corollary.core.logic import Value, Variable
from corollary.core.types import Type
from corollary.provenance.nodes import Row

if TYPE_CHECKING:
    import pyarrow as pa

Fact = tuple[str, Row]
"""A relation in normal form, and one of its tuples."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a rule.

    Attributes:
        step: the number of the rule.
        premises: the tuples of its positive literals.
        ranks: the ranks of these, None where there is none.
        values: of the variables of the rule, in the order of `RuleReader.variables`.
    """

    step: int
    premises: tuple[Fact, ...]
    ranks: tuple[int | None, ...]
    values: Row


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tuple whose instances are wanted.

    Attributes:
        fact: the tuple.
        height: premises that give it a greater height do not matter; None if all do.
    """

    fact: Fact
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The instances of a tuple.

    Attributes:
        total: how many there are, without those whose premises are too high.
    """

    instances: tuple[Instance, ...]
    total: int

    @property
    def is_cut(self) -> bool:
        """Whether some were left out."""
        return len(self.instances) < self.total


@dataclass(frozen=True, slots=True)
class RuleReader:
    """Reads the instances of one rule from the relation that a pipeline derives.

    Attributes:
        step: the number of the rule.
        target: the relation.
        variables: of the rule.
        types: of these.
        premises: for each premise its relation, and what makes its tuple of a row.
        ranked: for each premise the place of its rank in a row.
        least: for each premise, what its height is at least, and what to add to a rank for that.
        weights: what the step adds to the height of each premise.
    """

    step: int
    target: str
    variables: tuple[Variable, ...]
    types: tuple[Type, ...]
    premises: tuple[tuple[str, Callable[[Row], Row]], ...]
    ranked: tuple[int | None, ...]
    least: tuple[tuple[int, int | None], ...]
    weights: tuple[int, ...]
    constants: Row

    def instance(self, row: Row) -> Instance:
        """Return the instance of a row."""
        wide = (*row, *self.constants)
        return Instance(
            self.step,
            tuple((name, make(wide)) for name, make in self.premises),
            tuple(None if at is None else rank_of(row[at]) for at in self.ranked),
            row[1 : 1 + len(self.variables)],
        )


def rank_of(value: Value) -> int:
    """Return a rank that was read."""
    assert isinstance(value, int)
    return value


def select_instances(
    rules: Sequence[RuleReader],
    tables: "Sequence[pa.Table]",
    wanted: Mapping[int, Wanted],
    most: int,
) -> Iterator[tuple[int, Found]]:
    """Yield the instances of each tuple: those that can matter, with the smallest guesses first."""
    bounds = {number: each.height for number, each in wanted.items() if each.height is not None}
    parts = [
        _guesses(rule, at, table, bounds)
        for at, (rule, table) in enumerate(zip(rules, tables, strict=True))
        if table.num_rows
    ]
    chosen: dict[int, list[tuple[int, int]]] = {number: [] for number in wanted}
    totals = dict.fromkeys(wanted, 0)
    if parts:
        rows = np.concatenate(parts, axis=1)
        rows = rows[:, np.lexsort(rows[::-1])]
        ids = rows[0]
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if ids.size else ids
        counts = np.diff(np.r_[starts, ids.size])
        totals |= dict(zip(ids[starts].tolist(), counts.tolist(), strict=True))
        within = np.arange(ids.size) - np.repeat(starts, counts) < most
        for number, rule, row in rows[:, within][(0, 3, 4), :].T.tolist():
            chosen[number].append((rule, row))
    made = _read_rows(rules, tables, chosen.values())
    for number, places in chosen.items():
        yield number, Found(tuple(made[place] for place in places), totals[number])


def _guesses(
    rule: RuleReader, at: int, table: "pa.Table", bounds: Mapping[int, int]
) -> "np.ndarray[Any, Any]":
    """Return columns of the instances that can matter.

    They are the number of the tuple, the largest guess of a premise, the sum of the guesses, the
    rule and the row.
    """
    ids = _integers(table, 0)
    largest = np.zeros_like(ids)
    total = np.zeros_like(ids)
    height = np.zeros_like(ids)
    for place, (least, offset), weight in zip(rule.ranked, rule.least, rule.weights, strict=True):
        guess = np.full_like(ids, least) if place is None else _integers(table, place) + 1
        largest, total = np.maximum(largest, guess), total + guess
        bound = np.full_like(ids, least)
        if offset is not None:
            bound = np.maximum(bound, guess - 1 + offset)
        height = np.maximum(height, bound + weight)
    rows = np.arange(ids.size)
    if bounds:
        known = np.array(sorted(bounds))
        heights = np.array([bounds[number] for number in known.tolist()])
        places = np.minimum(np.searchsorted(known, ids), known.size - 1)
        keep = (known[places] != ids) | (height <= heights[places])
        ids, largest, total, rows = ids[keep], largest[keep], total[keep], rows[keep]
    return np.stack([ids, largest, total, np.full_like(ids, at), rows])


def _integers(table: "pa.Table", column: int) -> "np.ndarray[Any, Any]":
    return fixed_values(single_array(table.column(column)), "i8")


def _read_rows(
    rules: Sequence[RuleReader],
    tables: "Sequence[pa.Table]",
    chosen: Iterable[Sequence[tuple[int, int]]],
) -> dict[tuple[int, int], Instance]:
    """Return the instances at some rows of the tables."""
    rows: dict[int, list[int]] = {}
    for places in chosen:
        for rule, place in places:
            rows.setdefault(rule, []).append(place)
    found: dict[tuple[int, int], Instance] = {}
    for rule, numbers in rows.items():
        taken = tables[rule].take(index_array(np.array(numbers)))
        for number, row in zip(numbers, to_python(taken), strict=True):
            found[rule, number] = rules[rule].instance(row)
    return found
