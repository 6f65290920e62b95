"""Nullability: the variables of a clause that may be null when it holds.

A variable is null only if it comes from a nullable column and nothing tests it. It is tested by a
second body position (an atom, a negated atom, an aggregate's body) and by any comparison, since
those do not hold for null. Each position is a point of evidence, a test or a not-null column is
two, an alternative counts for what its weakest branch gives; with two points it is not null.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from corollary.analysis.phrases import related_spans, term_text
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import aggregates_in, all_variables, atom_uses
from corollary.core import logic
from corollary.core.types import Type
from corollary.errors import Diagnostic

Nullability = Mapping[str, tuple[bool, ...]]
"""For each relation, which of its columns may be null."""

_NOT_NULL_POINTS = 2


def nullable_columns(resolved: ResolvedProgram) -> Nullability:
    """Return which columns may be null, those of undeclared event predicates included."""
    found = {
        name: tuple(type_ is not None and type_.nullable for type_ in schema.types)
        for name, schema in resolved.schemas.items()
    }
    undeclared = {name for name, schema in resolved.schemas.items() if schema.declaration is None}
    pending = deque(sorted({n for name in undeclared for n in resolved.definitions[name]}))
    readers: defaultdict[str, list[int]] = defaultdict(list)
    for number in pending:
        for use in resolved.uses[number]:
            readers[use.atom.relation].append(number)
    while pending:
        clause = resolved.clauses[pending.popleft()]
        nullable = nullable_variables(clause, found)
        for head in clause.heads:
            old = found.get(head.relation, ())
            if head.relation not in undeclared or len(old) != len(head.arguments):
                continue
            new = tuple(
                was or is_nullable(term, nullable)
                for was, term in zip(old, head.arguments, strict=True)
            )
            if new != old:
                found[head.relation] = new
                pending += readers[head.relation]
    return found


def is_nullable(term: logic.Term, nullable: frozenset[str]) -> bool:
    """Whether a term may be null, given the variables that may."""
    return any(
        part.name in nullable
        if isinstance(part, logic.Variable)
        else isinstance(part, logic.Constant) and part.value is None
        for part in logic.subterms(term)
    )


def nullable_variables(clause: logic.Clause, columns: Nullability) -> frozenset[str]:
    """Return the variables that may be null when the clause holds, those of aggregates too."""
    points = _evidence(clause.body, columns)
    for head in clause.heads:
        for term in head.arguments:
            for aggregate in aggregates_in(term):
                points.update(_evidence(aggregate.body, columns))
    return frozenset(name for name, found in points.items() if found < _NOT_NULL_POINTS)


def _evidence(items: Iterable[logic.BodyItem], columns: Nullability) -> Counter[str]:
    points: Counter[str] = Counter()
    partial: dict[str, int] = {}
    for item in items:
        match item:
            case logic.Atom():
                points.update(_evidence_of_atom(item, columns, 2))
            case logic.Negation(atom=atom):
                points.update(_evidence_of_atom(atom, columns, 1))
            case logic.Comparison(left=left, right=right):
                for term in (left, right):
                    points.update(_evidence_of_term(term, columns))
            case logic.Disjunction(alternatives=alternatives):
                branches = [_evidence(branch, columns) for branch in alternatives]
                for name in {name for branch in branches for name in branch}:
                    points[name] += min(branch[name] for branch in branches)
                    partial[name] = min(branch[name] for branch in branches if name in branch)
            case logic.Truth():
                pass
            case _:
                assert_never(item)
    # A variable that occurs in some branches only, and nowhere else, belongs to those branches.
    return points + Counter({name: least for name, least in partial.items() if not points[name]})


def _evidence_of_atom(atom: logic.Atom, columns: Nullability, not_null: int) -> Counter[str]:
    points: Counter[str] = Counter()
    nullable = columns.get(atom.relation, ())
    for position, term in enumerate(atom.arguments):
        if isinstance(term, logic.Variable):
            may_be_null = position < len(nullable) and nullable[position]
            points[term.name] += 1 if may_be_null else not_null
        else:
            points.update(_evidence_of_term(term, columns))
    return points


def _evidence_of_term(term: logic.Term, columns: Nullability) -> Counter[str]:
    """Return the evidence of a term that is compared: all its variables have a value."""
    points: Counter[str] = Counter()
    inner = list(aggregates_in(term))
    for aggregate in inner:
        points.update(_evidence(aggregate.body, columns))
    if not isinstance(term, logic.AggregateTerm):
        inside = {v.name for aggregate in inner for v in all_variables(aggregate)}
        names = (v.name for v in all_variables(term) if v.name not in inside)
        points.update(dict.fromkeys(names, _NOT_NULL_POINTS))
    return points


def null_heads(
    resolved: ResolvedProgram, clauses: Iterable[logic.Clause], nullability: Nullability
) -> Iterator[Diagnostic]:
    """Yield the arguments of typed heads that may be null where the column is not nullable."""
    for clause in clauses:
        for head in clause.heads:
            yield from _nulls_in(resolved, head, nullability)


def null_literals(
    resolved: ResolvedProgram, clauses: Iterable[logic.Clause], nullability: Nullability
) -> Iterator[Diagnostic]:
    """Yield the literals `null` that bodies ask for in columns that are not nullable."""
    for clause in clauses:
        for use in atom_uses(clause):
            arguments = tuple(
                term if isinstance(term, logic.Constant) else logic.Wildcard()
                for term in use.atom.arguments
            )
            yield from _nulls_in(resolved, replace(use.atom, arguments=arguments), nullability)


def _nulls_in(
    resolved: ResolvedProgram, atom: logic.Atom, nullability: Nullability
) -> Iterator[Diagnostic]:
    schema = resolved.schema_of(atom)
    if schema is None:
        return
    for position, term in enumerate(atom.arguments):
        column, type_ = schema.columns[position], schema.types[position]
        if nullability[schema.name][position] or type_ is None:
            continue
        what = "may be null"
        match term:
            case logic.Constant(value=None):
                what = "is null"
                cure = f"declare it nullable: `{column}: {type_}?`"
            case (logic.Variable(type=Type(nullable=True))) | logic.Functor(
                type=Type(nullable=True)
            ):
                cure = "test it, as in `x = x`, or declare the column nullable with `?`"
            case _:
                continue
        declared = schema.declaration.columns[position].span if schema.declaration else None
        yield Diagnostic(
            "C0307",
            f"`{term_text(term)}` {what}, but column `{column}` of `{schema.name}` "
            "is not nullable.",
            term.span,
            cure,
            related_spans((declared, f"`{column}` is declared here")),
        )
