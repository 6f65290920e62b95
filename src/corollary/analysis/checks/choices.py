"""Choice domains: what cannot be a relation that chooses among its tuples."""

from collections.abc import Iterator

from corollary.analysis.grouped_recursion import grouped_recursion
from corollary.analysis.resolution import ResolvedProgram
from corollary.errors import Diagnostic


def choices(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield the relations with choice domains that are virtual, not sets of rows, or grouped."""
    chosen = [each for each in resolved.program.declarations if each.domains]
    grouped = grouped_recursion(resolved.clauses, resolved.events).keys if chosen else {}
    for declaration in chosen:
        name, span = declaration.name, declaration.span
        if declaration.is_equivalence or declaration.is_bag:
            word = "eqrel" if declaration.is_equivalence else "bag"
            yield Diagnostic(
                "C0240",
                f"`{name}` is `{word}`, and has a choice domain.",
                span,
                f"let a second relation choose: declare `{name}` without `choice-domain`",
            )
        if name in resolved.events:
            yield Diagnostic(
                "C0241",
                f"`{name}` is an event predicate, and has a choice domain.",
                span,
                "choose in a relation that is not an event, and read that",
            )
        if declaration.storage == "virtual":
            yield Diagnostic(
                "C0508",
                f"`{name}` is virtual, but with a choice domain it must be stored.",
                span,
                "leave out `virtual`",
            )
        if name in grouped:
            yield Diagnostic(
                "C0509",
                f"`{name}` has a choice domain and a count or sum through recursion.",
                span,
                "choose in another relation, which the recursion does not read",
            )
