"""`.plan`: the order of a rule's atoms names each of them once."""

from collections.abc import Iterator

from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import conjunctions
from corollary.core.logic import Atom
from corollary.errors import Diagnostic, Severity


def query_plans(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the plans that do not fit their rule: they change nothing."""
    for clause in resolved.clauses:
        if not clause.plan:
            continue
        counts = {sum(isinstance(i, Atom) for i in body) for body in conjunctions(clause.body)}
        for version, order in clause.plan:
            if order and any(sorted(order) != list(range(1, each + 1)) for each in counts):
                count = max(counts)
                example = ", ".join(map(str, range(1, count + 1)))
                yield Diagnostic(
                    "C0709",
                    f"The plan {version} does not name each atom of this rule once; "
                    "it changes nothing.",
                    clause.span,
                    f"write the numbers 1 to {count} in some order, as in "
                    f"`.plan {version}:({example})`",
                    severity=Severity.WARNING,
                )
