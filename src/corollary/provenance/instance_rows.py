"""Instances of rules, as rows of the relations that pipelines derive."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corollary.core.arrow import single_array, to_python
from corollary.core.arrow_buffers import fixed_values, index_array
from corollary.core.logic import Value, Variable
from corollary.core.types import Type
from corollary.data_class import dataclass
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
        rank: if there is one, an instance is enough whose premises of the same stratum have smaller
            ranks.
    """

    fact: Fact
    height: int | None = None
    rank: int | None = None


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
        own: whether each premise is of the same stratum as the head.
        constants: of its premises, which follow each row.
    """

    step: int
    target: str
    variables: tuple[Variable, ...]
    types: tuple[Type, ...]
    premises: tuple[tuple[str, Callable[[Row], Row]], ...]
    ranked: tuple[int | None, ...]
    least: tuple[tuple[int, int | None], ...]
    weights: tuple[int, ...]
    own: tuple[bool, ...]
    constants: Row

    def least_height(self, row: Row) -> int:
        """Return what the height of the head is at least, by what those of the premises are."""
        height = 0
        for place, (least, offset), weight in zip(
            self.ranked, self.least, self.weights, strict=True
        ):
            if place is not None and offset is not None:
                least = max(least, rank_of(row[place]) + offset)
            height = max(height, least + weight)
        return height

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


FEW_INSTANCES = 16
"""A tuple with no more instances keeps them all, even where one is enough."""


def select_instances(
    rules: Sequence[RuleReader],
    tables: "Sequence[pa.Table]",
    wanted: Mapping[int, Wanted],
    most: int,
) -> Iterator[tuple[int, Found]]:
    """Yield the instances of each tuple: those that can matter, with the smallest guesses first."""
    if sum(table.num_rows for table in tables) <= min(FEW_INSTANCES, most):
        yield from _all_instances(rules, tables, wanted)
        return
    bounds = {number: each.height for number, each in wanted.items() if each.height is not None}
    ranks = {number: each.rank for number, each in wanted.items() if each.rank is not None}
    parts = [
        _guesses(rule, at, table, bounds, ranks)
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
        first, count = np.repeat(starts, counts), np.repeat(counts, counts)
        keep = np.arange(ids.size) - first < most
        if ranks:  # one instance is enough: of the best ones, which only values tell apart
            is_best = (rows[1:5] == rows[1:5, first]).all(axis=0)
            keep &= is_best | (count <= FEW_INSTANCES)
        for number, rule, row in rows[:, keep][(0, 4, 5), :].T.tolist():
            chosen[number].append((rule, row))
    made = _read_rows(rules, tables, chosen.values())
    for number, places in chosen.items():
        yield number, Found(tuple(made[place] for place in places), totals[number])


def _all_instances(
    rules: Sequence[RuleReader], tables: "Sequence[pa.Table]", wanted: Mapping[int, Wanted]
) -> Iterator[tuple[int, Found]]:
    """Yield the instances of each tuple that can matter, where there are few."""
    found: dict[int, list[Instance]] = {number: [] for number in wanted}
    for rule, table in zip(rules, tables, strict=True):
        for row in to_python(table) if table.num_rows else ():
            number = rank_of(row[0])
            bound = wanted[number].height
            if bound is None or rule.least_height(row) <= bound:
                found[number].append(rule.instance(row))
    for number, instances in found.items():
        yield number, Found(tuple(instances), len(instances))


def _guesses(
    rule: RuleReader,
    at: int,
    table: "pa.Table",
    bounds: Mapping[int, int],
    ranks: Mapping[int, int],
) -> "np.ndarray[Any, Any]":
    """Return columns of the instances that can matter.

    They are the number of the tuple, whether a premise of its stratum has no smaller rank, the
    largest guess of a premise, the sum of the guesses, the rule and the row.
    """
    ids = _integers(table, 0)
    largest, total, height, is_circular = (np.zeros_like(ids) for _ in range(4))
    own_rank = _looked_up(ranks, ids)
    for place, (least, offset), weight, is_own in zip(
        rule.ranked, rule.least, rule.weights, rule.own, strict=True
    ):
        guess = np.full_like(ids, least) if place is None else _integers(table, place) + 1
        largest, total = np.maximum(largest, guess), total + guess
        bound = np.full_like(ids, least)
        if offset is not None:
            bound = np.maximum(bound, guess - 1 + offset)
        height = np.maximum(height, bound + weight)
        if is_own:
            is_circular |= guess > own_rank
    columns = np.stack(
        [ids, is_circular, largest, total, np.full_like(ids, at), np.arange(ids.size)]
    )
    return columns[:, height <= _looked_up(bounds, ids)] if bounds else columns


def _looked_up(values: Mapping[int, int], ids: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the values of some numbers, the largest integer for those that have none."""
    none = np.iinfo(np.int64).max
    known = np.array([*sorted(values), none])
    found = np.array([*(values[number] for number in known[:-1].tolist()), none])
    places = np.searchsorted(known, ids)
    return np.where(known[places] == ids, found[places], none)


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
