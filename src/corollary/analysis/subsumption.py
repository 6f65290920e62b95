"""Subsumption as rules: `p(A) <= p(B) :- body.` stands for a rule of the tuples that go.

    p.dominated(A) :- p(A), p(B), body.

So all checks see it as a rule; `rewrite/subsumption.py` makes of it what is evaluated. `min` and
`max` over the stratum of a rule's own head are subsumption too:

    dist(y, d) :- node(y), d = min c + w : { dist(x, c), edge(x, y, w) }.

    dist(y, c + w) :- node(y), dist(x, c), edge(x, y, w).
    dist(y, d1) <= dist(y, d2) :- d2 <= d1.
"""

from collections.abc import Mapping
from dataclasses import replace

from corollary.analysis import traverse
from corollary.analysis.scopes import rename_apart
from corollary.core.graph import strongly_connected_components
from corollary.core.logic import (
    AggregateTerm,
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Term,
    Variable,
    Wildcard,
)
from corollary.core.program import Declaration, Program
from corollary.core.syntax import EXTREMES
from corollary.data_class import dataclass

DOMINATED_SUFFIX = ".dominated"

_BETTER = {"min": "<=", "max": ">="}


def dominated_name(relation: str) -> str:
    """Return the relation of the tuples that other tuples of a relation dominate."""
    return relation + DOMINATED_SUFFIX


def with_subsumption(program: Program) -> Program:
    """Return a program in which rules say which tuples are dominated."""
    declared = {each.name: each for each in program.declarations}
    program = _without_recursive_extremes(program, declared)
    names = {each.dominating.relation for each in program.clauses if each.dominating is not None}
    if not names:
        return program
    known = declared.keys()
    declarations = tuple(
        replace(
            declared[name],
            name=dominated_name(name),
            key=(),
            storage="virtual",
            is_equivalence=False,
            is_bag=False,
        )
        for name in sorted(names & known)
        if dominated_name(name) not in known
    )
    clauses = tuple(_as_rule(each, declared) for each in program.clauses)
    return replace(program, declarations=(*program.declarations, *declarations), clauses=clauses)


def _as_rule(clause: Clause, declared: Mapping[str, Declaration]) -> Clause:
    if clause.dominating is None:
        return clause
    items = (*clause.heads, *clause.body, clause.dominating)
    taken = {each.name for each in traverse.all_variables_in(items)}
    fresh = (name for number in range(10**6) if (name := f"_{number}") not in taken)

    def named(atom: Atom) -> Atom:
        arguments = (
            Variable(next(fresh), span=each.span) if isinstance(each, Wildcard) else each
            for each in atom.arguments
        )
        return replace(atom, arguments=tuple(arguments))

    head, dominating = named(clause.heads[0]), named(clause.dominating)
    body = (head, dominating, *clause.body)
    found = declared.get(head.relation)
    if found is None or len(found.columns) != len(head.arguments):
        return replace(clause, heads=(), body=body, dominating=None)
    made = replace(head, relation=dominated_name(head.relation))
    return replace(clause, heads=(made,), body=body, dominating=dominating)


# --- aggregates over their own stratum ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecursiveAggregate:
    """An aggregate that reads the stratum of the head of its rule.

    Attributes:
        number: of the clause in the program.
        head: the relation of the rule.
        reads: the atoms inside that belong to the stratum.
    """

    number: int
    head: str
    term: AggregateTerm
    reads: tuple[Atom, ...]


def recursive_aggregates(program: Program) -> list[RecursiveAggregate]:
    """Return the aggregates of a program that read the stratum of their own head."""
    uses = [tuple(traverse.atom_uses(clause)) for clause in program.clauses]
    if not any(use.is_aggregated for each in uses for use in each):
        return []
    component = _components(program, uses)
    found: list[RecursiveAggregate] = []
    for number, clause in enumerate(program.clauses):
        if not any(use.is_aggregated for use in uses[number]):
            continue
        for head in clause.heads:
            if head.sign or head.state is not None:
                continue
            for term in traverse.aggregates_of((*clause.heads, *clause.body)):
                reads = tuple(
                    use.atom
                    for use in traverse.atom_uses(Clause((), term.body))
                    if component.get(use.atom.relation, -1) == component.get(head.relation, -2)
                )
                if reads:
                    found.append(RecursiveAggregate(number, head.relation, term, reads))
    return found


def _components(program: Program, uses: list[tuple[traverse.AtomUse, ...]]) -> dict[str, int]:
    """Return the number of each relation's component; subsumption defines nothing."""
    graph: dict[str, set[str]] = {}
    for clause, read in zip(program.clauses, uses, strict=True):
        if clause.dominating is None:
            for head in clause.heads:
                if not head.sign:
                    graph.setdefault(head.relation, set()).update(e.atom.relation for e in read)
    return {
        name: number
        for number, names in enumerate(strongly_connected_components(graph))
        for name in names
        if len(names) > 1 or name in graph.get(name, ())
    }


def _without_recursive_extremes(program: Program, declared: Mapping[str, Declaration]) -> Program:
    """Return a program whose recursive `min` and `max` are rules and subsumption."""
    clauses = list(program.clauses)
    orders: dict[Clause, None] = {}
    by_clause: dict[int, list[RecursiveAggregate]] = {}
    for each in recursive_aggregates(program):
        by_clause.setdefault(each.number, []).append(each)
    for number, found in by_clause.items():
        clause = clauses[number]
        if len(found) > 1 or found[0].term.operator not in EXTREMES:
            continue
        declaration = declared.get(found[0].head)
        made = _unfold(clause, found[0], declaration)
        if made is not None and declaration is not None:
            clauses[number], position = made
            orders[_order_clause(declaration, position, found[0].term)] = None
    if not orders:
        return program
    return replace(program, clauses=(*orders, *clauses))


def _unfold(
    clause: Clause, found: RecursiveAggregate, declaration: Declaration | None
) -> tuple[Clause, int] | None:
    """Return a rule whose head has the aggregated term, and the column; None for another form."""
    if declaration is None or len(clause.heads) != 1 or found.term.target is None:
        return None
    if len(declaration.columns) != len(clause.heads[0].arguments):
        return None
    clause = rename_apart(clause)
    items = list(clause.body)
    arguments = list(clause.heads[0].arguments)
    position = next(
        (
            at
            for at, each in enumerate(arguments)
            if isinstance(each, AggregateTerm) and each.span == found.term.span
        ),
        None,
    )
    found_at = _equation(items, found.term)
    if found_at is None:
        return None if position is None else _in_head(clause, position)
    at, result, term = found_at
    del items[at]
    assert term.target is not None
    positions = [at for at, each in enumerate(arguments) if each == result]
    others = [term, *(each for each in arguments if each != result)]
    taken = {each.name for other in others for each in traverse.all_variables(other)}
    outside = {each.name for each in traverse.all_variables_in(tuple(items))}
    keys = {each.name for other in others[1:] for each in traverse.all_variables(other)}
    # Keys that only the aggregate has are not bound by it: the check of safety refuses them.
    if len(positions) != 1 or result.name in taken | outside or not keys <= outside:
        return None
    arguments[positions[0]] = term.target
    return _unfolded(clause, arguments, (*items, *term.body)), positions[0]


def _equation(
    items: list[BodyItem], wanted: AggregateTerm
) -> tuple[int, Variable, AggregateTerm] | None:
    """Return where a body has `m = min e : { … }`, with both sides."""
    for at, item in enumerate(items):
        if isinstance(item, Comparison) and item.operator == "=":
            for one, other in ((item.left, item.right), (item.right, item.left)):
                is_wanted = isinstance(other, AggregateTerm) and other.span == wanted.span
                if is_wanted and isinstance(one, Variable):
                    assert isinstance(other, AggregateTerm)
                    return at, one, other
    return None


def _in_head(clause: Clause, position: int) -> tuple[Clause, int]:
    arguments = list(clause.heads[0].arguments)
    term = arguments[position]
    assert isinstance(term, AggregateTerm)
    assert term.target is not None
    arguments[position] = term.target
    return _unfolded(clause, arguments, (*clause.body, *term.body)), position


def _unfolded(clause: Clause, arguments: list[Term], body: tuple[BodyItem, ...]) -> Clause:
    head = replace(clause.heads[0], arguments=tuple(arguments))
    return replace(clause, heads=(head,), body=body)


def _order_clause(declaration: Declaration, position: int, term: AggregateTerm) -> Clause:
    """Return `p(x, d1) <= p(x, d2) :- d2 <= d1.` for a column."""
    columns = [column.name for column in declaration.columns]
    one, other = (_fresh(f"{columns[position]}{number}", columns) for number in (1, 2))

    def atom(value: str) -> Atom:
        names = [*columns[:position], value, *columns[position + 1 :]]
        return Atom(declaration.name, tuple(Variable(name) for name in names), span=term.span)

    body = (Comparison(_BETTER[term.operator], Variable(other), Variable(one), term.span),)
    return Clause((atom(one),), body, term.span, dominating=atom(other))


def _fresh(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "'"
    return name
