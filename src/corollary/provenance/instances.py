"""Instances: for a set of tuples, the instances of rules that derive them.

For each rule one query (`rule_query`), led by the tuples. Where ranks are valid they are read with
the premises: of `p(x, z) :- p(x, y), q(y, z)`

    p•wanted(number, x, z) → q(y, z) → p•rank(x, y, rank)  ⇒  (number, x, z, y, rank)

The answers are cut, by vectors, to what can matter: instances whose premises are too high are
dropped, and of the others those with the smallest guesses are taken, a number for each tuple.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core import logic
from corollary.core.arrow import single_array, to_python
from corollary.core.arrow_buffers import fixed_values, index_array
from corollary.core.program import Relation
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.maintain.draft import Draft
from corollary.maintain.payload import rank_relation
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import RuleQueries, RuleQuery, membership_query
from corollary.provenance.steps import ProofStep, ProofSteps

BATCH_MIN_TUPLES, BATCH_MAX_INSTANCES = 64, 10_000
"""Tuples are expanded this many at a time, and more as long as they have few instances."""

FEW_INSTANCES = 16
"""A tuple with no more instances keeps them all, even where one is enough."""

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
    """Reads the instances of one rule from the answers of its query.

    Attributes:
        step: the number of the rule.
        variables: of the rule.
        premises: for each premise its relation, and what makes its tuple of a row.
        ranked: for each premise the column of its rank in a row.
        least: for each premise, what its height is at least, and what to add to a rank for that.
        weights: what the step adds to the height of each premise.
        is_recursive: whether each premise is of the same stratum as the head.
        constants: of its premises, which follow each row.
    """

    step: int
    variables: tuple[logic.Variable, ...]
    premises: tuple[tuple[str, Callable[[Row], Row]], ...]
    ranked: tuple[int | None, ...]
    least: tuple[tuple[int, int | None], ...]
    weights: tuple[int, ...]
    is_recursive: tuple[bool, ...]
    constants: Row

    def least_height(self, row: Row) -> int:
        """Return what the height of the head is at least, by what those of the premises are."""
        height = 0
        for column, (least, offset), weight in zip(
            self.ranked, self.least, self.weights, strict=True
        ):
            if column is not None and offset is not None:
                least = max(least, _rank_of(row[column]) + offset)
            height = max(height, least + weight)
        return height

    def instance(self, row: Row) -> Instance:
        """Return the instance of a row."""
        wide = (*row, *self.constants)
        return Instance(
            self.step,
            tuple((name, make(wide)) for name, make in self.premises),
            tuple(None if at is None else _rank_of(row[at]) for at in self.ranked),
            row[1 : 1 + len(self.variables)],
        )


class InstanceFinder:
    """Finds instances in one state; its working relations are in the engine until it is closed."""

    def __init__(self, asked: QueryState, steps: ProofSteps) -> None:
        self.asked = asked
        self.steps = steps
        self._readers: dict[str, list[RuleReader]] = {}
        self._queries: dict[tuple[str, str], RuleQueries] = {}

    def close(self) -> None:
        """Drop what is in the engine."""
        for each in self._queries.values():
            each.close()
        self._queries = {}

    def variables(self, step: int) -> tuple[logic.Variable, ...]:
        """Return the variables of a rule whose instances were found, in their order."""
        relation = self.steps.program.rules[step].head.relation
        return next(each for each in self._rules(relation) if each.step == step).variables

    def rank(self, fact: Fact) -> tuple[bool, int | None]:
        """Return whether a tuple is there, and its rank if it has one."""
        relation, row = fact
        found = self._open(relation, "membership", self._membership_queries).run({0: row})
        ranks = to_python(found[1]) if 1 in found else []
        return 0 in found, _rank_of(ranks[0][1]) if ranks else None

    def find(self, wanted: Mapping[int, Wanted], allowance: Allowance) -> dict[int, Found]:
        """Return the instances of some tuples, by their numbers."""
        by_relation: dict[str, dict[int, Wanted]] = {}
        for number, each in wanted.items():
            by_relation.setdefault(each.fact[0], {})[number] = each
        found: dict[int, Found] = {}
        for relation, some in by_relation.items():
            if self.steps.is_derived(relation):
                found |= self._find(relation, some, allowance)
        return found

    def find_in_batches(
        self, wanted: Mapping[int, Wanted], allowance: Allowance
    ) -> Iterator[tuple[int, Found]]:
        """Yield the instances of some tuples, so many at a time that the limits can be kept.

        Raises:
            WorkLimitError: the work is over.
        """
        numbers, size = list(wanted), BATCH_MIN_TUPLES
        while numbers:
            batch, numbers = numbers[:size], numbers[size:]
            allowance.take(len(batch))
            found = self.find({number: wanted[number] for number in batch}, allowance)
            yield from found.items()
            if sum(len(each.instances) for each in found.values()) < BATCH_MAX_INSTANCES:
                size *= 2

    def _find(
        self, relation: str, wanted: Mapping[int, Wanted], allowance: Allowance
    ) -> dict[int, Found]:
        queries = self._open(
            relation,
            "instances",
            lambda name, draft: [self._query(each, draft) for each in self._rules(name)],
        )
        rows = {number: each.fact[1] for number, each in wanted.items()}
        tables = queries.run(rows, allowance)
        readers = [self._rules(relation)[at] for at in tables]
        most = allowance.limits.instances
        selected = dict(_select_instances(readers, list(tables.values()), wanted, most))
        allowance.count_instances(sum(len(each.instances) for each in selected.values()))
        return selected

    # --- queries -------------------------------------------------------------------------------

    def _open(
        self, relation: str, role: str, queries: Callable[[str, Draft], list[RuleQuery]]
    ) -> RuleQueries:
        """Return queries for tuples of a relation, which are made once."""
        key = relation, role
        if key not in self._queries:
            draft = self.asked.draft()
            types = self.asked.program.relations[relation].types
            self._queries[key] = RuleQueries(
                self.asked, f"{relation} {role}", types, queries(relation, draft), draft
            )
        return self._queries[key]

    def _membership_queries(self, relation: str, draft: Draft) -> list[RuleQuery]:
        """Return the queries for which tuples are there, and for their ranks if they have any."""
        held = membership_query(self.asked, relation)
        if not self._has_ranks(relation):
            return [held]
        rank = logic.Variable("•rank", NUMBER)
        beside = logic.Literal(rank_relation(draft, relation), (*held.wanted, rank))
        return [held, RuleQuery(held.wanted, (self.asked.goal(beside),), (rank,))]

    def _query(self, reader: RuleReader, draft: Draft) -> RuleQuery:
        """Return the query for the instances of a rule; premises are read with their ranks.

        Of subsumption, an instance whose head is better says that a tuple is at least as good.
        """
        step = self.steps.steps[reader.step]
        rule = step.rule
        wanted, covers = self._covered_head(rule)
        goals, ranks = [], list[logic.Variable]()
        has_rank = dict(zip(step.premises, reader.ranked, strict=True))
        for at, literal in enumerate(rule.literals):
            if has_rank.get(at) is not None:
                ranks.append(logic.Variable(f"•rank{at}", NUMBER))
                beside = rank_relation(draft, literal.relation)
                literal = logic.Literal(beside, (*literal.slots, ranks[-1]))
            goals.append(self.asked.goal(literal))
        outputs = (*reader.variables, *ranks)
        conditions = (*rule.conditions, *covers)
        return RuleQuery(wanted, tuple(goals), outputs, conditions, rule.origin, rule.is_lenient)

    def _covered_head(
        self, rule: logic.Rule
    ) -> tuple[tuple[logic.Slot, ...], tuple[logic.Condition, ...]]:
        """Return a head with other variables for its values, and that it covers such a tuple."""
        name, arguments = rule.head.relation, logic.head_arguments(rule)
        order = self.asked.program.subsumption.get(name)
        if order is None or not self._has_ranks(name):
            return arguments, ()
        types = self.asked.program.relations[name].types
        compared = {each.position for each in order.values}
        covered = tuple(
            logic.Variable(f"•covered{at}", types[at]) if at in compared else argument
            for at, argument in enumerate(arguments)
        )
        return covered, order.covers(arguments, covered)

    def _has_ranks(self, relation: str) -> bool:
        return relation in self.asked.ranked and bool(self.steps.stratum(relation))

    # --- readers -------------------------------------------------------------------------------

    def _rules(self, relation: str) -> list[RuleReader]:
        """Return what reads the instances of the rules of a relation."""
        if relation not in self._readers:
            numbers = self.steps.by_head.get(relation, ())
            self._readers[relation] = [self._rule_reader(number) for number in numbers]
        return self._readers[relation]

    def _rule_reader(self, number: int) -> RuleReader:
        step = self.steps.steps[number]
        literals = [step.rule.literals[at] for at in step.premises]
        types = _variable_types(step, self.asked.program.relations)
        # A row: the number of the tuple, the variables, the ranks; the constants follow it.
        columns = {name: at for at, name in enumerate(types, 1)}
        ranked: list[int | None] = []
        width = 1 + len(types)
        for literal in literals:
            has_rank = self._has_ranks(literal.relation)
            ranked.append(width if has_rank else None)
            width += has_rank
        premises: list[tuple[str, Callable[[Row], Row]]] = []
        constants: list[logic.Value] = []
        for literal in literals:
            places: list[int] = []
            for slot in literal.slots:
                if isinstance(slot, logic.Variable):
                    places.append(columns[slot.name])
                else:
                    assert isinstance(slot, logic.Constant)
                    places.append(width + len(constants))
                    constants.append(slot.value)
            premises.append((literal.relation, _maker(places)))
        members = self.steps.stratum(step.rule.head.relation)
        return RuleReader(
            number,
            tuple(logic.Variable(name, type_) for name, type_ in types.items()),
            tuple(premises),
            tuple(ranked),
            tuple(self._least(each.relation) for each in literals),
            step.weights,
            tuple(each.relation in members for each in literals),
            tuple(constants),
        )

    def _least(self, relation: str) -> tuple[int, int | None]:
        """Return what the height of a tuple is at least, and what to add to a rank for that."""
        is_exact = relation in self.asked.exact and self._has_ranks(relation)
        offset = self.steps.rank_offsets.get(relation) if is_exact else None
        return self.steps.least_height(relation), offset


def _variable_types(step: ProofStep, relations: Mapping[str, Relation]) -> dict[str, Type]:
    """Return the types of the variables of a rule, in the order of its text."""
    rule = step.rule
    found: dict[str, Type] = {}
    for literal in (*(each for each in rule.literals if not each.negated), rule.head):
        for slot, type_ in zip(literal.slots, relations[literal.relation].types, strict=True):
            if isinstance(slot, logic.Variable):
                known = found.setdefault(slot.name, type_)
                found[slot.name] = known.with_null(known.nullable or type_.nullable)
    for condition in rule.conditions:
        for side in (condition.left, condition.right):
            for variable in logic.variables_of(side):
                if variable.name not in found:
                    assert variable.type is not None
                    found[variable.name] = variable.type.with_null(True)
    return found


def _maker(places: Sequence[int]) -> Callable[[Row], Row]:
    """Return the function from a row to the tuple of some of its values."""
    if len(places) == 1:
        (place,) = places
        return lambda row: (row[place],)
    if not places:
        return lambda _: ()
    get: Callable[[Row], Any] = itemgetter(*places)
    return get


def _rank_of(value: logic.Value) -> int:
    """Return a rank that was read."""
    assert isinstance(value, int)
    return value


# --- the instances that can matter ---------------------------------------------------------------


def _select_instances(
    rules: Sequence[RuleReader], tables: Sequence[pa.Table], wanted: Mapping[int, Wanted], most: int
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
    rules: Sequence[RuleReader], tables: Sequence[pa.Table], wanted: Mapping[int, Wanted]
) -> Iterator[tuple[int, Found]]:
    """Yield the instances of each tuple that can matter, where there are few."""
    found: dict[int, list[Instance]] = {number: [] for number in wanted}
    for rule, table in zip(rules, tables, strict=True):
        for row in to_python(table) if table.num_rows else ():
            number = _rank_of(row[0])
            bound = wanted[number].height
            if bound is None or rule.least_height(row) <= bound:
                found[number].append(rule.instance(row))
    for number, instances in found.items():
        yield number, Found(tuple(instances), len(instances))


def _guesses(
    rule: RuleReader, at: int, table: pa.Table, bounds: Mapping[int, int], ranks: Mapping[int, int]
) -> np.ndarray[Any, Any]:
    """Return columns of the instances that can matter.

    They are the number of the tuple, whether a premise of its stratum has no smaller rank, the
    largest guess of a premise, the sum of the guesses, the rule and the row.
    """
    ids = _integers(table, 0)
    largest, total, height, is_circular = (np.zeros_like(ids) for _ in range(4))
    own_rank = _looked_up(ranks, ids)
    for column, (least, offset), weight, is_recursive in zip(
        rule.ranked, rule.least, rule.weights, rule.is_recursive, strict=True
    ):
        guess = np.full_like(ids, least) if column is None else _integers(table, column) + 1
        largest, total = np.maximum(largest, guess), total + guess
        bound = np.full_like(ids, least)
        if offset is not None:
            bound = np.maximum(bound, guess - 1 + offset)
        height = np.maximum(height, bound + weight)
        if is_recursive:
            is_circular |= guess > own_rank
    columns = np.stack(
        [ids, is_circular, largest, total, np.full_like(ids, at), np.arange(ids.size)]
    )
    return columns[:, height <= _looked_up(bounds, ids)] if bounds else columns


def _looked_up(values: Mapping[int, int], ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values of some numbers, the largest integer for those that have none."""
    none = np.iinfo(np.int64).max
    known = np.array([*sorted(values), none])
    found = np.array([*(values[number] for number in known[:-1].tolist()), none])
    places = np.searchsorted(known, ids)
    return np.where(known[places] == ids, found[places], none)


def _integers(table: pa.Table, column: int) -> np.ndarray[Any, Any]:
    return fixed_values(single_array(table.column(column)), "i8")


def _read_rows(
    rules: Sequence[RuleReader],
    tables: Sequence[pa.Table],
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
