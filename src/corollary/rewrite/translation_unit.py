"""What passes work on: the program under rewriting, its conjunctions, and names not yet taken."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from corollary.core import logic
from corollary.core.program import Declaration, NormalProgram, Relation, SubsumptionOrder
from corollary.core.types import Type
from corollary.data_class import dataclass


def unused_name(name: str, *taken: Container[str]) -> str:
    """Return the name, with a number appended where it is taken.

    >>> unused_name("t.base", {"t.base"})
    't.base2'
    """
    candidate, number = name, 1
    while any(candidate in names for names in taken):
        number += 1
        candidate = f"{name}{number}"
    return candidate


class FreshVariables:
    """Makes variables that do not occur in a clause yet; its alternatives share one supply."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._count = 0

    def variable(self, type_: Type | None) -> logic.Variable:
        """Return a new variable of a type."""
        while True:
            self._count += 1
            name = f"_{self._count}"
            if name not in self._taken:
                self._taken.add(name)
                return logic.Variable(name, type_)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """One alternative of a clause on its way to a rule."""

    head: logic.Atom
    items: tuple[logic.BodyItem, ...]
    origin: logic.Origin
    fresh: FreshVariables = field(compare=False, repr=False)
    is_lenient: bool = False
    is_null_safe: bool = False

    def with_items(self, items: Iterable[logic.BodyItem], by: str) -> "Conjunction":
        """Return the conjunction with other items and the pass `by` in its origin."""
        return replace(self, items=tuple(items), origin=self.origin.with_pass(by))


@dataclass(slots=True)
class TranslationUnit:
    """A program on its way to normal form; every pass changes it in place.

    Attributes:
        clauses: what is rewritten.
        relations: the relations that the clauses name, and those that passes make.
        reserved: further names that no relation of a pass may get.
        declarations: those of the program, with their `eqrel` and `bag`.
        inputs: the relations with an `.input`.
        before: the program in force until now, if there is one.
        has_words: whether numbers are words of 32 bits.
        has_rounds: whether subsumption that says no order is evaluated in rounds.
        conjunctions: the clauses by head and alternative; an iterator is consumed by the next pass.
        facts: the tuples that clauses without a body state.
        bases: for each derived relation with base tuples, the relation that holds them.
        bags: for each relation with copies, the relation of its counts.
        recursive_bodies: the bodies of aggregates over their own stratum.
        counters: for each relation of numbered rows, the relation of the rows.
        subsumption: the orders of recursive relations of which only the best tuples count.
    """

    clauses: Sequence[logic.Clause]
    relations: dict[str, Relation]
    reserved: Container[str]
    declarations: tuple[Declaration, ...] = ()
    inputs: frozenset[str] = frozenset()
    before: NormalProgram | None = None
    has_words: bool = False
    has_rounds: bool = False
    conjunctions: Iterable[Conjunction] = ()
    rules: list[logic.Rule] = field(default_factory=list)
    aggregations: list[logic.AnyAggregation] = field(default_factory=list)
    facts: dict[str, list[tuple[logic.Value, ...]]] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    bags: Mapping[str, str] = field(default_factory=dict)
    recursive_bodies: set[str] = field(default_factory=set)
    counters: dict[str, str] = field(default_factory=dict)
    subsumption: dict[str, SubsumptionOrder] = field(default_factory=dict)

    @property
    def keys(self) -> dict[str, tuple[int, ...]]:
        """The columns of the keys of base relations; of a derived one, of its base part."""
        found = {}
        for each in self.declarations:
            name = self.bases.get(each.name, each.name)
            if each.key and name in self.relations and not self.relations[name].is_derived:
                columns = [column.name for column in each.columns]
                found[name] = tuple(map(columns.index, each.key))
        return found

    def unused_name(self, name: str) -> str:
        """Return the name, with a number appended where a relation has it."""
        return unused_name(name, self.relations, self.reserved)

    def declare(self, name: str, columns: Sequence[str], types: Sequence[Type]) -> None:
        """Add a derived relation that the user did not declare."""
        self.relations[name] = Relation(
            name, tuple(columns), tuple(types), is_derived=True, is_declared=False
        )


def outer_variables(items: Iterable[logic.BodyItem]) -> Iterator[logic.Variable]:
    """Yield the variables of a body that occur outside of aggregates."""
    for item in logic.literals_of(tuple(items)):
        for term in logic.terms_of(item):
            yield from logic.variables_of(term)
