"""Counts and sums through recursion: which relations have groups, and the columns of their keys.

    need(p, n) :- part(p), n = sum q * m : { uses(p, s, q), need(s, m) }.

The head has a *group* for each value of its key columns, `p`; the other columns hold what the
aggregate makes. `need(s, m)` is a *recursive literal*: it reads the group of `s`, and which groups
a group reads is known from lower relations alone (`part`, `uses`).
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from corollary.analysis import traverse
from corollary.core import logic
from corollary.core.graph import component_numbers
from corollary.data_class import dataclass

GROUPED_OPERATORS = ("count", "sum")
"""The aggregates that may read their own stratum, group by group."""


@dataclass(frozen=True, slots=True)
class GroupedRecursion:
    """The strata of a program in which counts or sums are recursive.

    Attributes:
        keys: for each relation of such a stratum, the columns that hold the key of a group.
        component: the number of each relation's strongly connected component.
    """

    keys: Mapping[str, tuple[int, ...]]
    component: Mapping[str, int]

    def is_recursive(self, head: str, relation: str) -> bool:
        """Whether a relation and one that it reads depend on each other."""
        return self.component.get(head, -1) == self.component.get(relation, -2)

    def reads_groups(self, head: str, aggregate: logic.AggregateTerm) -> bool:
        """Whether an aggregate in a rule of `head` has a recursive literal."""
        return head in self.keys and any(
            self.is_recursive(head, atom.relation) for atom in atoms_of(aggregate.body)
        )

    def is_recursive_item(self, head: str, item: logic.BodyItem) -> bool:
        """Whether a literal of a rule of `head` has a value only when recursive literals have."""
        match item:
            case logic.Atom(relation=relation) | logic.Negation(logic.Atom(relation=relation)):
                return self.is_recursive(head, relation)
            case logic.Comparison(left=left, right=right):
                return any(
                    self.reads_groups(head, aggregate)
                    for term in (left, right)
                    for aggregate in traverse.aggregates_in(term)
                )
            case _:
                return False


def atoms_of(items: Iterable[logic.BodyItem]) -> Iterator[logic.Atom]:
    """Yield the positive atoms of a body, those in disjunctions too, not those in aggregates."""
    return (item for item in logic.literals_of(tuple(items)) if isinstance(item, logic.Atom))


def grouped_recursion(
    clauses: Sequence[logic.Clause], events: Container[str] = ()
) -> GroupedRecursion:
    """Return which relations have groups: all recursive aggregates of their stratum are such.

    Args:
        clauses: of the program; triggers define nothing.
        events: the event predicates, which have no groups.
    """
    reads: dict[str, set[str]] = {}
    definitions = [(clause, head) for clause in clauses for head in clause.heads if not head.sign]
    for clause, head in definitions:
        below = (use.atom.relation for use in traverse.atom_uses(clause))
        reads.setdefault(head.relation, set()).update(below)
    component = component_numbers(reads)
    every = GroupedRecursion(
        {head.relation: tuple(range(len(head.arguments))) for _, head in definitions}, component
    )
    grouped: set[int] = set()
    refused: set[int] = {component[name] for name in component if name in events}
    for clause, head in definitions:
        for aggregate in clause_aggregates(clause, head):
            if every.reads_groups(head.relation, aggregate):
                is_grouped = aggregate.operator in GROUPED_OPERATORS
                (grouped if is_grouped else refused).add(component[head.relation])
            if _has_nested(aggregate, head.relation, every):
                refused.add(component[head.relation])
    keys = {
        name: columns
        for name, columns in every.keys.items()
        if component[name] in grouped - refused
    }
    for clause, head in definitions:
        for items in traverse.conjunctions(clause.body) if head.relation in keys else ():
            if any(every.is_recursive(head.relation, each.relation) for each in atoms_of(items)):
                continue  # refused: it reads its stratum beside the aggregates, too
            made = _made_columns(head, items, every)
            keys[head.relation] = tuple(at for at in keys[head.relation] if at not in made)
    # A group without a key is the whole relation, which would always read itself.
    whole = {component[name] for name, columns in keys.items() if not columns}
    return GroupedRecursion(
        {name: columns for name, columns in keys.items() if component[name] not in whole}, component
    )


def clause_aggregates(clause: logic.Clause, head: logic.Atom) -> Iterator[logic.AggregateTerm]:
    """Return the outermost aggregates of a clause with one of its heads."""
    return traverse.aggregates_of((head, *clause.body))


def _has_nested(aggregate: logic.AggregateTerm, head: str, recursion: GroupedRecursion) -> bool:
    """Whether an aggregate has a recursive literal inside another aggregate."""
    of_target = () if aggregate.target is None else traverse.aggregates_in(aggregate.target)
    return any(
        recursion.reads_groups(head, inner) or _has_nested(inner, head, recursion)
        for inner in (*traverse.aggregates_of(aggregate.body), *of_target)
    )


def _made_columns(
    head: logic.Atom, items: tuple[traverse.Item, ...], recursion: GroupedRecursion
) -> set[int]:
    """Return the columns of a head that are not known before its recursive aggregates are."""
    bound = lower_variables(head.relation, items, recursion)
    return {
        column
        for column, term in enumerate(head.arguments)
        if any(recursion.reads_groups(head.relation, each) for each in traverse.aggregates_in(term))
        or not {variable.name for variable in logic.variables_of(term)} <= bound
    }


def lower_variables(
    head: str,
    items: Iterable[logic.BodyItem],
    recursion: GroupedRecursion,
    known: Iterable[str] = (),
) -> set[str]:
    """Return the variables of a conjunction that its literals of lower relations bind."""
    lower = [item for item in items if not recursion.is_recursive_item(head, item)]
    bound = set(known)
    bound |= {
        argument.name
        for atom in atoms_of(lower)
        for argument in atom.arguments
        if isinstance(argument, logic.Variable)
    }
    return traverse.bound_by_equations(bound, lower)
