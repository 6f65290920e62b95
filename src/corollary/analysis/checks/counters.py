"""`autoinc()`: outside of aggregates, and not in a rule that depends on its own numbers."""

from collections.abc import Iterator

from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import aggregates_of
from corollary.core.functors.conversions import COUNTER
from corollary.core.graph import component_numbers
from corollary.core.logic import Clause, Comparison, applies_functor
from corollary.errors import Diagnostic


def counters(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the rules in which `autoinc()` has no meaning."""
    counting = [
        (clause, uses)
        for clause, uses in zip(resolved.clauses, resolved.uses, strict=True)
        if applies_functor(clause, (COUNTER,))
    ]
    if not counting:
        return
    reads: dict[str, list[str]] = {name: [] for name in resolved.schemas}
    for clause, uses in zip(resolved.clauses, resolved.uses, strict=True):
        for head in clause.heads:
            reads.setdefault(head.relation, []).extend(use.atom.relation for use in uses)
    group = component_numbers(reads)
    for clause, uses in counting:
        if _counts_in_aggregate(clause):
            yield Diagnostic(
                "C0247",
                "`autoinc()` cannot be inside of an aggregate.",
                clause.span,
                "number the rows in a rule of their own, and aggregate those",
            )
        own = {group[head.relation] for head in clause.heads}
        if any(group.get(use.atom.relation) in own for use in uses):
            yield Diagnostic(
                "C0247",
                "This rule uses `autoinc()`, and depends on its own numbers.",
                clause.span,
                "number the rows in a rule that does not depend on them",
            )


def _counts_in_aggregate(clause: Clause) -> bool:
    found = aggregates_of((*clause.heads, *clause.body))
    inside = (Clause((), (Comparison("=", each, each),)) for each in found)
    return any(applies_functor(each, (COUNTER,)) for each in inside)
