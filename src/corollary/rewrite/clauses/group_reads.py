"""Recursive counts and sums: the keys of their groups, and which groups read which.

`need(p, n) :- part(p), n = sum q * m : { uses(p, s, q), need(s, m) }.` becomes

    need.keys1(p)              :- part(p).
    need.reads(p, s)           :- need.keys1(p), uses(p, s, q).
    need.body1(p, q, s, m, v)  :- need.keys1(p), uses(p, s, q), need(s, m), v = q * m.
    need.aggregate1(p, n)      sums v of need.body1 for each p
    need(p, n)                 :- part(p), need.aggregate1(p, n).
    need(p, n)                 :- part(p), !need.aggregate1(p, _), n = 0.

`need.reads` is of a lower stratum: which groups a group reads does not depend on values of `need`.
Every relation of the stratum besides `need` begins with the key of a group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from corollary.analysis.grouped_recursion import GroupedRecursion
from corollary.analysis.traverse import aggregates_in
from corollary.core import logic
from corollary.core.program import GroupReading
from corollary.rewrite.clauses import bindings
from corollary.rewrite.translation_unit import Conjunction, TranslationUnit


class GroupReads:
    """The groups of a program under rewriting.

    Attributes:
        relations: the relations that were made of aggregates over their own stratum.
    """

    def __init__(self, unit: TranslationUnit, recursion: GroupedRecursion) -> None:
        self._unit = unit
        self._recursion = recursion
        # The alternatives of a clause share its supply of variables, and the keys of its head.
        self._keys: dict[int, tuple[logic.Variable, ...]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self.relations: set[str] = set()
        for name, columns in recursion.keys.items():
            unit.relations[name] = replace(unit.relations[name], grouping=GroupReading(columns))

    def is_recursive(self, conjunction: Conjunction, aggregate: logic.AggregateTerm) -> bool:
        """Whether an aggregate of a conjunction is over its own stratum."""
        return self._recursion.reads_groups(conjunction.head.relation, aggregate)

    def key_of(self, conjunction: Conjunction) -> tuple[logic.Variable, ...]:
        """Return the variables that are the key of the head's group."""
        columns = self._recursion.keys[conjunction.head.relation]
        terms = (conjunction.head.arguments[column] for column in columns)
        return tuple(term for term in terms if isinstance(term, logic.Variable))

    def with_key_variables(self, conjunction: Conjunction) -> Conjunction:
        """Return a conjunction whose head has distinct variables as key, if it has groups."""
        head = conjunction.head
        terms = [*head.arguments]
        terms += [
            term for each in logic.literals_of(conjunction.items) for term in logic.terms_of(each)
        ]
        if not any(
            self.is_recursive(conjunction, aggregate)
            for term in terms
            for aggregate in aggregates_in(term)
        ):
            return conjunction
        arguments, items = list(head.arguments), list(conjunction.items)
        columns = self._recursion.keys[head.relation]
        types = self._unit.relations[head.relation].types
        supply = id(conjunction.fresh)
        if supply not in self._keys:
            self._keys[supply] = tuple(conjunction.fresh.variable(types[at]) for at in columns)
        seen: set[logic.Term] = set()
        for column, variable in zip(columns, self._keys[supply], strict=True):
            term = arguments[column]
            if not isinstance(term, logic.Variable) or term in seen:
                items.append(logic.Comparison("=", variable, term))
                arguments[column] = variable
            seen.add(term)
        return replace(
            conjunction, head=replace(head, arguments=tuple(arguments)), items=tuple(items)
        )

    def next_aggregate(self, conjunction: Conjunction) -> logic.AggregateTerm | None:
        """Return the aggregate to lift next: those over lower strata come first."""
        found = list(bindings.liftable_aggregates(conjunction))
        lower = (each for each in found if not self.is_recursive(conjunction, each))
        return next(lower, found[0] if found else None)

    def lower_items(self, items: tuple[logic.BodyItem, ...]) -> tuple[logic.BodyItem, ...]:
        """Return a body without the literals of aggregates over their own stratum."""
        return tuple(item for item in items if _relation(item) not in self.relations)

    def reads(
        self,
        rest: Conjunction,
        bodies: Sequence[tuple[logic.BodyItem, ...]],
        guard: tuple[logic.BodyItem, ...],
    ) -> Iterator[Conjunction]:
        """Yield what derives the groups that the head's group reads, for each recursive literal.

        Args:
            rest: the rule of the head, without the aggregate.
            bodies: the alternatives of the aggregate's body.
            guard: the literal with the outer bindings.
        """
        head = rest.head.relation
        for items in bodies:
            lower = tuple(
                item for item in items if not self._recursion.is_recursive_item(head, item)
            )
            known = bindings.independent((*guard, *lower))
            for item in items:
                if isinstance(item, logic.Atom) and self._recursion.is_recursive(
                    head, item.relation
                ):
                    columns = self._recursion.keys[item.relation]
                    read = (item.arguments[column] for column in columns)
                    pairs = logic.Atom(
                        self._pairs(head, item.relation), (*self.key_of(rest), *read)
                    )
                    origin = rest.origin.with_pass("aggregates")
                    yield Conjunction(pairs, known, origin, rest.fresh, True, rest.is_null_safe)

    def _pairs(self, head: str, relation: str) -> str:
        """Return the relation of the groups of `head` and those of `relation` that they read."""
        if (head, relation) not in self._names:
            unit = self._unit
            suffix = "" if head == relation else f".{relation}"
            name = unit.unused_name(f"{head}.reads{suffix}")
            self._names[head, relation] = name
            sides = ((head, ""), (relation, "read_"))
            columns = [
                (f"{prefix}{unit.relations[owner].columns[at]}", unit.relations[owner].types[at])
                for owner, prefix in sides
                for at in self._recursion.keys[owner]
            ]
            unit.declare(name, [each for each, _ in columns], [type_ for _, type_ in columns])
            grouping = unit.relations[head].grouping
            assert grouping is not None
            grouping = replace(grouping, reads=(*grouping.reads, (relation, name)))
            unit.relations[head] = replace(unit.relations[head], grouping=grouping)
        return self._names[head, relation]


def _relation(item: logic.BodyItem) -> str:
    match item:
        case logic.Atom(relation=relation) | logic.Negation(logic.Atom(relation=relation)):
            return relation
        case _:
            return ""
