"""Counts and sums through recursion: the order of their groups is that of lower relations.

`need(p, n) :- part(p), n = sum q * m : { uses(p, s, q), need(s, m) }.` The literals beside the
recursive one bind its key `s`, so which groups a group reads does not depend on values of `need`.
"""

from collections.abc import Iterator

from corollary.analysis.grouped_recursion import (
    GroupedRecursion,
    atoms_of,
    clause_aggregates,
    grouped_recursion,
    lower_variables,
)
from corollary.analysis.phrases import term_text
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import atom_uses, conjunctions
from corollary.core import logic
from corollary.errors import Diagnostic


def groups(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield what keeps a recursive count or sum from being evaluated group by group."""
    recursion = grouped_recursion(resolved.clauses, resolved.events)
    for name, keys in recursion.keys.items():
        yield from _declared(name, keys, resolved)
    for clause in resolved.clauses:
        for head in clause.heads:
            if not head.sign and head.relation in recursion.keys:
                yield from _clause(clause, head, resolved, recursion)


def _declared(name: str, keys: tuple[int, ...], resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    schema = resolved.schemas.get(name)
    if schema is None or schema.declaration is None:
        return
    if schema.declaration.storage == "virtual":
        yield Diagnostic(
            "C0507",
            f"`{name}` is virtual, but with a recursive aggregate it must be stored.",
            schema.span,
            "leave out `virtual`",
        )
    for column in keys:
        type_ = schema.types[column] if column < len(schema.types) else None
        if type_ is not None and type_.nullable:
            yield Diagnostic(
                "C0505",
                f"An aggregate through recursion: the key `{schema.columns[column]}` of `{name}` "
                "may be null.",
                schema.span,
                f"declare `{schema.columns[column]}` without `?`",
            )


def _clause(
    clause: logic.Clause, head: logic.Atom, resolved: ResolvedProgram, recursion: GroupedRecursion
) -> Iterator[Diagnostic]:
    plain = next(
        (
            use.atom
            for use in atom_uses(clause)
            if not use.is_aggregated
            and not use.is_negated
            and recursion.is_recursive(head.relation, use.atom.relation)
        ),
        None,
    )
    if plain is not None:
        yield Diagnostic(
            "C0505",
            f"The order of `{head.relation}` depends on `{head.relation}` through "
            f"`{plain.relation}`.",
            plain.span,
            "a count or sum through recursion reads its own stratum inside its braces only: move "
            "the literal there, or read a relation that does not depend on it",
        )
        return
    recursive = [
        each
        for each in clause_aggregates(clause, head)
        if recursion.reads_groups(head.relation, each)
    ]
    if recursive and len(clause.heads) > 1:
        yield Diagnostic(
            "C0505",
            f"`{recursive[0].operator}` through recursion in a rule with several heads.",
            clause.span,
            "write a rule for each head",
        )
        return
    for aggregate in recursive:
        yield from _aggregate(aggregate, clause, head.relation, resolved, recursion)


def _aggregate(
    aggregate: logic.AggregateTerm,
    clause: logic.Clause,
    head: str,
    resolved: ResolvedProgram,
    recursion: GroupedRecursion,
) -> Iterator[Diagnostic]:
    """Yield the first key of a recursive literal that lower relations do not bind."""
    for outer in conjunctions(clause.body):
        known = lower_variables(head, outer, recursion)
        for inner in conjunctions(aggregate.body):
            bound = lower_variables(head, inner, recursion, known)
            for atom in atoms_of(inner):
                if not recursion.is_recursive(head, atom.relation):
                    continue
                for column in recursion.keys[atom.relation]:
                    term = atom.arguments[column]
                    names = {variable.name for variable in logic.variables_of(term)}
                    if isinstance(term, logic.Wildcard) or not names <= bound:
                        yield _unbound(aggregate, atom, column, resolved)
                        return


def _unbound(
    aggregate: logic.AggregateTerm, atom: logic.Atom, column: int, resolved: ResolvedProgram
) -> Diagnostic:
    term = atom.arguments[column]
    schema = resolved.schema_of(atom)
    is_named = isinstance(term, logic.Wildcard) and schema is not None
    name = schema.columns[column] if is_named and schema is not None else term_text(term)
    return Diagnostic(
        "C0505",
        f"`{aggregate.operator}` through recursion: the key `{name}` of `{atom.relation}` is not "
        "bound by lower relations.",
        atom.span,
        f"bind it inside the braces by a literal that does not depend on `{atom.relation}`",
    )
