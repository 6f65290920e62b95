"""The instances of rules that come nearest to deriving tuples which are not there.

For a rule `h :- P1, …, Pn` and a tuple t that its head fits: the least k such that some values make
all parts true but k, and these values. Found set at a time, for many tuples at once:

1. Parts that cannot hold whatever the values are: those that t decides, and positive literals that
   nothing matches even alone. They are in every set F of failing parts.
2. For k = 1, 2, 3: for each F of k parts with those of step 1, the components of the rest
   (`rule_parts`), each by one pipeline led by the wanted tuples. A component that several F leave
   over is evaluated once. F has an instance if each component has; their number is the product.
3. If k > 3: the longest beginning of the body that has instances.

All of F fails in such an instance, since otherwise a smaller F would have had one.

| symbol | name here |
|---|---|
| the tuples t, numbered | `wanted` |
| the values of a component's variables | `i•part` |
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations, islice, product
from math import prod

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import sort_rows, to_python
from corollary.core.logic import Literal, Rule, Value, Variable, type_of, variable_names
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.budget import WorkLimitError
from corollary.provenance.absences.rule_parts import Component, RuleParts, known_draft, known_values
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import match_head, run_queries

MAX_DISTANCE = 3
"""The largest number of failing parts for which all sets are tried."""

SHOWN_INSTANCES = 3
"""The number of instances that are shown of each rule."""


@dataclass(frozen=True, slots=True)
class NearInstance:
    """Values with which a rule almost derives a tuple.

    Attributes:
        failing: the numbers of the parts that fail.
        bindings: the values of variables, with their types; those of free variables are left out.
    """

    failing: tuple[int, ...]
    bindings: Mapping[str, tuple[Value, Type]]


@dataclass(frozen=True, slots=True)
class NearestInstances:
    """The nearest instances of a rule for one tuple.

    Attributes:
        distance: how many parts fail; one more than `MAX_DISTANCE` if more do.
        count: the number of instances; of the beginning, if it is given.
        shown: the first ones.
        beginning: if more than `MAX_DISTANCE` parts fail, how many parts hold together, in their
            order; what fails first is in `shown`.
    """

    rule: Rule
    distance: int
    count: int
    shown: tuple[NearInstance, ...]
    beginning: int | None = None


@dataclass(slots=True)
class _ComponentRows:
    """The instances of a component, by the number of the wanted tuple."""

    counts: dict[int, int] = field(default_factory=dict)
    first: dict[int, list[Row]] = field(default_factory=dict)


def nearest_instances(
    asked: QueryState,
    relation: str,
    rows: Sequence[Row],
    allowance: Allowance,
    rules: Sequence[Rule] | None = None,
) -> tuple[list[list[NearestInstances]], bool]:
    """Return for each tuple the nearest instances of each rule, and whether that is all.

    Args:
        asked: the state in which the tuples are not there.
        relation: the relation of the tuples, in the normal program.
        rows: the tuples.
        allowance: what is left of the limits.
        rules: with heads that have the columns of the relation; its own if they are not given.
    """
    found: list[list[NearestInstances]] = [[] for _ in rows]
    if not rows:
        return found, True
    try:
        heads = [rule for rule in asked.program.rules if rule.head.relation == relation]
        for rule in heads if rules is None else rules:
            search = _AttemptSearch(asked, rule, relation, rows, allowance)
            for number, nearest in search.run():
                found[number].append(nearest)
    except WorkLimitError:
        return found, False
    return found, True


class _AttemptSearch:
    """The search for the nearest instances of one rule."""

    def __init__(
        self,
        asked: QueryState,
        rule: Rule,
        relation: str,
        rows: Sequence[Row],
        allowance: Allowance,
    ) -> None:
        self._asked = asked
        self._rule = rule
        self._relation = relation
        self._types = asked.program.relations[relation].types
        self._rows = rows
        self._allowance = allowance
        self._parts = RuleParts(rule)
        self._known: dict[tuple[int, ...], _ComponentRows] = {}

    def run(self) -> Iterator[tuple[int, NearestInstances]]:
        """Yield the nearest instances, each with the number of the wanted tuple."""
        left = self._certain_failures()
        for distance in range(1, MAX_DISTANCE + 1):
            sets = {
                number: list(self._failing_sets(must, distance)) for number, must in left.items()
            }
            self._evaluate(
                component
                for failing in {each for every in sets.values() for each in every}
                for component in self._components(failing)
            )
            for number, every in sets.items():
                nearest = self._nearest(number, distance, every)
                if nearest is not None:
                    del left[number]
                    yield number, nearest
        for number, must in left.items():
            yield number, self._longest_beginning(number, must)

    # --- step 1 --------------------------------------------------------------------------------

    def _certain_failures(self) -> dict[int, frozenset[int]]:
        """Return for each wanted tuple that the head fits which parts cannot hold."""
        parts = self._parts
        tested = [
            at
            for at, part in enumerate(parts.parts)
            if at in parts.decided or (isinstance(part, Literal) and not part.negated)
        ]
        alone = [self._component_of(at) for at in tested]
        fits = Component((), ())
        self._evaluate((fits, *alone))
        return {
            number: frozenset(
                at
                for at, component in zip(tested, alone, strict=True)
                if number not in self._known[component.parts].counts
            )
            for number in self._known[()].counts
        }

    def _component_of(self, at: int) -> Component:
        found = self._parts.components((at,))
        return found[0] if found else Component((at,), ())

    # --- step 2 --------------------------------------------------------------------------------

    def _failing_sets(self, must: frozenset[int], distance: int) -> Iterator[tuple[int, ...]]:
        """Yield the sets of failing parts of a size, those that must fail included."""
        others = [at for at in self._parts.free if at not in must]
        if len(must) <= distance:
            for more in combinations(others, distance - len(must)):
                yield tuple(sorted((*must, *more)))

    def _components(self, failing: Iterable[int]) -> list[Component]:
        return self._parts.components(set(self._parts.free) - set(failing))

    def _nearest(
        self, number: int, distance: int, sets: Sequence[tuple[int, ...]]
    ) -> NearestInstances | None:
        """Return the instances of a wanted tuple that fail in one of some sets, if any does."""
        count = 0
        shown: list[NearInstance] = []
        for failing in sorted(sets):
            components = self._components(failing)
            several = self._count(number, components)
            count += several
            if several:
                wanted = SHOWN_INSTANCES - len(shown)
                combined = islice(self._bindings(number, components), wanted)
                shown += (NearInstance(failing, bindings) for bindings in combined)
        if not count:
            return None
        return NearestInstances(self._rule, distance, count, tuple(shown))

    def _count(self, number: int, components: Iterable[Component]) -> int:
        return prod(self._known[each.parts].counts.get(number, 0) for each in components)

    def _bindings(
        self, number: int, components: Sequence[Component]
    ) -> Iterator[dict[str, tuple[Value, Type]]]:
        """Yield the first combinations of the instances of components, with the head's values."""
        types = dict(zip(self._rule.head.slots, self._types, strict=True))
        slots = {slot.name: slot for slot in types if isinstance(slot, Variable)}
        values = match_head(self._rule.head, self._rows[number])
        head = {name: (value, types[slots[name]]) for name, value in values.items()}
        firsts = (self._known[each.parts].first[number] for each in components)
        for rows in product(*firsts):
            bindings = dict(head)
            for component, row in zip(components, rows, strict=True):
                for variable, value in zip(component.variables, row, strict=True):
                    bindings[variable.name] = value, type_of(variable)
            yield bindings

    # --- step 3 --------------------------------------------------------------------------------

    def _longest_beginning(self, number: int, must: frozenset[int]) -> NearestInstances:
        """Return how far the parts of the body hold together for a wanted tuple."""
        order = _order_of_tests(self._parts)
        length, components = 0, list[Component]()
        for at in order:
            if at in must:
                break
            longer = self._parts.components(order[: length + 1])
            self._evaluate(longer)
            if not self._count(number, longer):
                break
            length, components = length + 1, longer
        bindings = next(self._bindings(number, components))
        shown = NearInstance((order[length],), bindings)
        count = self._count(number, components)
        return NearestInstances(self._rule, MAX_DISTANCE + 1, count, (shown,), length)

    # --- evaluation ----------------------------------------------------------------------------

    def _evaluate(self, components: Iterable[Component]) -> None:
        """Evaluate components that are not evaluated yet, for all wanted tuples, in one run."""
        new = {each.parts: each for each in components if each.parts not in self._known}
        if not new:
            return
        asked, every = self._asked, list(new.values())
        ranging = [variable for component in every for variable in component.ranging]
        values = [
            (value, type_)
            for row in self._rows
            for value, type_ in zip(row, self._types, strict=True)
        ]
        with known_values(asked, map(type_of, ranging), values, self._allowance):
            queries = [self._parts.query(asked, each) for each in every]
            draft = known_draft(asked, ranging)
            found = run_queries(
                asked, self._relation, self._rows, queries, self._allowance, draft=draft
            )
        for at, parts in enumerate(new):
            self._known[parts] = _rows_of(found[at]) if at in found else _ComponentRows()


def _rows_of(table: pa.Table) -> _ComponentRows:
    """Return how many rows there are of each wanted tuple, and the first ones in order."""
    found = _ComponentRows()
    numbers = table.column(0)
    if pc.count_distinct(numbers).as_py() <= 1:
        if table.num_rows:
            number = numbers[0].as_py()
            found.counts[number] = table.num_rows
            ordered = sort_rows(table) if table.num_columns > 1 else table
            found.first[number] = _without_number(ordered.slice(0, SHOWN_INSTANCES))
        return found
    ordered = sort_rows(table)
    counted = pc.value_counts(ordered.column(0))
    start = 0
    for number, count in sorted(
        zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    ):
        found.counts[number] = count
        found.first[number] = _without_number(ordered.slice(start, min(count, SHOWN_INSTANCES)))
        start += count
    return found


def _without_number(table: pa.Table) -> list[Row]:
    return [row[1:] for row in to_python(table)]


def _order_of_tests(parts: RuleParts) -> tuple[int, ...]:
    """Return the parts in the order of the body, a test as soon as its variables have values."""
    bound = set(parts.head_names)
    waiting = list(range(len(parts.parts)))
    order: list[int] = []

    def is_positive(at: int) -> bool:
        part = parts.parts[at]
        return isinstance(part, Literal) and not part.negated

    def place(is_next: Callable[[int], bool]) -> bool:
        at = next((each for each in waiting if is_next(each)), None)
        if at is None:
            return False
        waiting.remove(at)
        order.append(at)
        bound.update(variable_names(parts.parts[at]))
        return True

    while waiting:
        is_placed = place(lambda at: not is_positive(at) and _is_test(parts, at, bound))
        if not is_placed and not place(is_positive):
            place(lambda _: True)
    return tuple(order)


def _is_test(parts: RuleParts, at: int, bound: set[str]) -> bool:
    """Whether a condition or negated literal can be decided when some variables have values."""
    part = parts.parts[at]
    unbound = variable_names(part) - bound
    if isinstance(part, Literal) or part.operator not in ("=", "is"):
        return not unbound
    is_assignment = any(
        isinstance(side, Variable) and unbound == {side.name} for side in (part.left, part.right)
    )
    return not unbound or is_assignment
