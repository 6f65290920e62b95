"""From clauses to plain rules: the passes that look at one clause at a time.

disjunctions   one conjunction per alternative, one head each
aggregates     become relations of their own
plain          expressions move out of atoms
negations      negated literals are fully bound
nulls          nullable join variables are tested
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from corollary.core.graph import components
from corollary.core.origin import Origin
from corollary.core.printer import print_clause
from corollary.core.program import Relation
from corollary.core.rules import Aggregation, Atom, Clause, Rule, walk
from corollary.core.terms import Constant, Value
from corollary.rewrite.aggregates import Lifting
from corollary.rewrite.conjunction import Conjunction, Names, all_variables
from corollary.rewrite.disjunctions import disjunctions
from corollary.rewrite.negations import Projections
from corollary.rewrite.nulls import nulls
from corollary.rewrite.plain import folded, plain


@dataclass(frozen=True, slots=True)
class Lowered:
    """Plain rules, and all relations: those that were known and those that were made.

    Attributes:
        facts: the tuples that clauses without a body state.
    """

    relations: dict[str, Relation]
    rules: tuple[Rule, ...]
    aggregations: tuple[Aggregation, ...]
    facts: Mapping[str, tuple[tuple[Value, ...], ...]]


def lower(
    clauses: Sequence[Clause], relations: Mapping[str, Relation], taken: Container[str]
) -> Lowered:
    """Return the rules that clauses become.

    Args:
        clauses: of a checked program.
        relations: those that the clauses name.
        taken: names that no relation may get.
    """
    lifting = Lifting(lambda name: relations[name].types, _recursion(clauses), taken)
    facts: dict[str, list[tuple[Value, ...]]] = {}
    rules: list[Rule] = []
    work: list[Conjunction] = []
    for clause in clauses:
        names = Names(variable.name for variable in all_variables((*clause.body, *clause.heads)))
        for head in clause.heads:
            row = _fact(head) if not clause.body else None
            if row is not None:
                facts.setdefault(head.relation, []).append(row)
            else:
                work.extend(_alternatives(clause, head, names))
    for conjunction in work:
        rules.extend(plain(each) for each in lifting.lift(conjunction))
        while lifting.bodies:
            rules.extend(plain(each) for each in lifting.lift(lifting.bodies.pop(0)))
    every = {**relations, **lifting.relations}
    projections = Projections(every)
    rules = [projections.negations(rule, every) for rule in rules]
    every |= projections.relations
    return Lowered(
        every,
        tuple(nulls(rule, every) for rule in (*rules, *projections.rules)),
        tuple(lifting.aggregations),
        {name: tuple(rows) for name, rows in facts.items()},
    )


def _alternatives(clause: Clause, head: Atom, names: Names) -> Iterator[Conjunction]:
    origin = Origin(print_clause(clause), clause.span)
    for items in disjunctions(clause.body):
        yield Conjunction(head, items, origin, names)


def _fact(head: Atom) -> tuple[Value, ...] | None:
    values: list[Value] = []
    for argument in head.arguments:
        term = folded(argument)
        if not isinstance(term, Constant):
            return None
        values.append(term.value)
    return tuple(values)


def _recursion(clauses: Sequence[Clause]) -> Callable[[str, Iterable[str]], bool]:
    """Return a test whether a head and one of some relations depend on each other."""
    graph: dict[str, set[str]] = {}
    for clause in clauses:
        below = {item.relation for item in walk(clause.body) if isinstance(item, Atom)}
        for head in clause.heads:
            graph.setdefault(head.relation, set()).update(below)
    for below in list(graph.values()):
        for name in below:
            graph.setdefault(name, set())
    component = {name: index for index, names in enumerate(components(graph)) for name in names}

    def is_recursive(head: str, relations: Iterable[str]) -> bool:
        return any(component.get(name) == component.get(head, -1) for name in relations)

    return is_recursive
