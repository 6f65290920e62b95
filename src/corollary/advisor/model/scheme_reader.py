"""Reads a checked program into the scheme of the advisor.

Disjunctions are expanded, every head gets a clause of its own, `_` becomes a variable, and
duplicate literals of a body are dropped. Active rules are left out: they query, nothing queries
them. What the rules imply is added: the definitions of views, and inferred dependencies.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from corollary.advisor.model.aggregations import AggregationReader
from corollary.advisor.model.candidates import SchemeClause, output_variables
from corollary.advisor.model.clause_reader import read_clause
from corollary.advisor.model.scheme import (
    ComparisonMode,
    Scheme,
    SchemeDependency,
    SchemeRelation,
    ViewDefinition,
    WorkloadQuery,
)
from corollary.advisor.model.shapes import NodeShapes, VariableBits, closure
from corollary.analysis.bags import with_bags
from corollary.analysis.check import CheckedProgram
from corollary.analysis.traverse import atom_uses
from corollary.core.graph import component_numbers
from corollary.core.logic import Clause, Literal, Slot, Variable
from corollary.core.program import Program
from corollary.warehouse.sources.quarantine import QUARANTINE

INFERENCE_MAX_COLUMNS = 6
"""Dependencies of wider views are not inferred: all subsets of the columns are tried."""


def read_scheme(
    program: Program,
    checked: CheckedProgram,
    queries: Iterable[WorkloadQuery] = (),
    opaque: ComparisonMode = ComparisonMode.OPAQUE,
) -> Scheme:
    """Return the scheme of a program.

    Args:
        program: the program as written, so that what is printed looks like it.
        checked: the same, checked.
        queries: the query predicates.
        opaque: whether simple comparisons may move into candidates.
    """
    program = with_bags(program)  # as the checked one has them
    clauses = [each for each in program.clauses if not checked.is_active(each)]
    component = _components(clauses)
    types = {name: each.types for name, each in checked.signatures.items()}
    with_facts = {head.relation for each in clauses if not each.body for head in each.heads}
    with_facts |= {each.relation for each in program.directives if each.name == "input"}
    found: dict[str, list[SchemeClause]] = {}
    for clause in clauses:
        if clause.body:
            for head in clause.heads:
                parts = read_clause(
                    clause, head, component, types, absorbs=opaque == ComparisonMode.ABSORB
                )
                found.setdefault(head.relation, []).extend(parts)
    by_relation = {name: tuple(each) for name, each in found.items()}
    relations = _relations(program, checked, by_relation, with_facts)
    scheme = Scheme(relations, by_relation, tuple(queries))
    scheme = _add_implied(scheme, with_facts, component)
    written: dict[str, list[tuple[Clause, Clause]]] = {}
    for clause, typed in zip(program.clauses, checked.program.clauses, strict=True):
        if clause.body and not checked.is_active(clause):
            for head in clause.heads:
                if head.relation not in with_facts:
                    written.setdefault(head.relation, []).append((clause, typed))
    reader = AggregationReader(written, by_relation, scheme.relations, component, types)
    return replace(scheme, aggregations=dict(reader.read()))


def _components(clauses: Iterable[Clause]) -> dict[str, int]:
    """Return the number of the strongly connected component of each relation."""
    graph: dict[str, set[str]] = {}
    for clause in clauses:
        below = {each.atom.relation for each in atom_uses(clause)}
        for head in clause.heads:
            graph.setdefault(head.relation, set()).update(below)
    return component_numbers(graph)


def _relations(
    program: Program,
    checked: CheckedProgram,
    clauses: Mapping[str, tuple[SchemeClause, ...]],
    with_facts: set[str],
) -> dict[str, SchemeRelation]:
    declared = _declared_dependencies(program)
    found = {}
    for name, signature in checked.signatures.items():
        if signature.is_event:
            continue
        is_derived = signature.is_derived or name in clauses
        declaration = signature.declaration
        storage = declaration.storage if declaration else ""
        found[name] = SchemeRelation(
            name,
            len(signature.columns),
            declared.get(name, ()),
            is_stored=name != QUARANTINE.name
            and (not is_derived or (storage == "stored" and name not in with_facts)),
            is_materialised=storage != "virtual",
            is_inline=declaration is not None and "inline" in declaration.hints,
            enforced=()
            if is_derived
            else tuple(
                each
                for each in declared.get(name, ())
                if not any(signature.types[at].nullable for at in each.left)
            ),
        )
    return found


def _declared_dependencies(program: Program) -> dict[str, tuple[SchemeDependency, ...]]:
    columns = {each.name: [c.name for c in each.columns] for each in program.declarations}
    found: dict[str, list[SchemeDependency]] = {}
    for declaration in program.declarations:
        if declaration.key:
            key = frozenset(columns[declaration.name].index(name) for name in declaration.key)
            rest = frozenset(range(len(declaration.columns))) - key
            found.setdefault(declaration.name, []).append(SchemeDependency(key, rest))
    for each in program.dependencies:
        left, right = (
            frozenset(columns[each.relation].index(name) for name in names)
            for names in (each.determinants, each.dependents)
        )
        found.setdefault(each.relation, []).append(SchemeDependency(left, right - left))
    return {name: tuple(dependencies) for name, dependencies in found.items()}


# --- what the rules imply ------------------------------------------------------------------------


def _add_implied(scheme: Scheme, with_facts: set[str], component: Mapping[str, int]) -> Scheme:
    """Return the scheme with view definitions and inferred dependencies."""
    relations = dict(scheme.relations)
    # Components are numbered bottom up: what a view reads is complete before the view itself.
    for name in sorted(scheme.clauses, key=lambda each: component.get(each, 0)):
        relation, clauses = relations[name], scheme.clauses[name]
        is_recursive = any(
            component.get(each) == component.get(name) for each in scheme.body_relations(name)
        )
        if name in with_facts or is_recursive or not all(_is_plain(each) for each in clauses):
            continue
        if relation.is_materialised:
            relation = replace(relation, view=_view_definition(clauses))
        is_narrow = relation.arity <= INFERENCE_MAX_COLUMNS
        if not relation.is_stored and len(clauses) == 1 and is_narrow:
            shapes = NodeShapes(Scheme(relations, scheme.clauses))
            inferred = tuple(_infer_dependencies(clauses[0], shapes))
            relation = replace(relation, dependencies=(*relation.dependencies, *inferred))
        relations[name] = relation
    return Scheme(relations, scheme.clauses, scheme.queries)


def _is_plain(clause: SchemeClause) -> bool:
    """Whether the head has distinct variables, and literals alone bind them."""
    names = [each.name for each in clause.head.arguments if isinstance(each, Variable)]
    is_distinct = len(names) == len(set(names)) == len(clause.head.arguments)
    bound = output_variables(clause.literals)
    return is_distinct and not clause.has_aggregate and set(names) <= bound


def _view_definition(clauses: tuple[SchemeClause, ...]) -> ViewDefinition:
    columns = [each.name for each in clauses[0].head.arguments if isinstance(each, Variable)]
    bodies = []
    for number, clause in enumerate(clauses):
        own = [each.name for each in clause.head.arguments if isinstance(each, Variable)]
        renamed = dict(zip(own, columns, strict=True))

        def slot(each: Slot, renamed: dict[str, str] = renamed, number: int = number) -> Slot:
            if not isinstance(each, Variable):
                return each
            return Variable(renamed.get(each.name, f"{each.name}•{number}"))

        bodies.append(
            tuple(Literal(each.relation, tuple(map(slot, each.slots))) for each in clause.literals)
        )
    is_complete = not any(each.pinned or each.comparisons for each in clauses)
    return ViewDefinition(tuple(columns), tuple(bodies), is_complete)


def _infer_dependencies(clause: SchemeClause, shapes: NodeShapes) -> Iterator[SchemeDependency]:
    """Yield the dependencies among the columns of a view with one rule, smallest left sides first.

    A dependency that follows from a smaller left side is left out.
    """
    variable_bits = VariableBits()
    masks = variable_bits.masks(
        each for literal in clause.literals for each in shapes.shape_of(literal).dependencies
    )
    columns = [
        variable_bits.mask([each.name])
        for each in clause.head.arguments
        if isinstance(each, Variable)
    ]
    found: list[SchemeDependency] = []
    for size in range(len(columns)):
        for left in combinations(range(len(columns)), size):
            known = closure(sum(columns[at] for at in left), masks)
            right = frozenset(
                at for at, mask in enumerate(columns) if mask & known and at not in left
            )
            implied = {at for each in found if each.left <= set(left) for at in each.right}
            if right - implied:
                found.append(SchemeDependency(frozenset(left), right))
                yield found[-1]
