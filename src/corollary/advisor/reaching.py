"""The exponent of a query with all rules that it needs: its own are not all that is computed.

Derived relations that are kept are looked up; the rules of others run when the query is asked. The
largest exponent among them is the query's *global* one.
"""

from collections.abc import Callable, Iterable

from corollary.advisor.advice import Advice
from corollary.advisor.drafting import as_they_are
from corollary.advisor.rewriting import Rewriter
from corollary.core.rules import Atom, Clause


def global_exponents(advice: Advice, query: str) -> tuple[int, int]:
    """Return the global exponents of a query, before and after."""
    rewriter = advice.predicates[query].rewriter
    plain = Rewriter(rewriter.shapes, rewriter.forms)

    def before(name: str) -> tuple[int, Iterable[str]]:
        if name in advice.predicates:
            found = advice.predicates[name]
            return found.before.left_deep, _read(found.originals)
        return _as_it_is(name)

    def after(name: str) -> tuple[int, Iterable[str]]:
        if name in advice.predicates:
            found = advice.predicates[name]
            return found.after.left_deep, _read(found.rewritten)
        if name in advice.views:
            view = advice.views[name]
            return (view.build, _read(view.clauses)) if view.is_virtual else (0, ())
        return _as_it_is(name)

    def _as_it_is(name: str) -> tuple[int, Iterable[str]]:
        clauses = advice.scheme.clauses[name]
        return plain.cost(as_they_are(clauses), frozenset()), advice.scheme.reads(name)

    return _largest(advice, query, before), _largest(advice, query, after)


def _largest(advice: Advice, query: str, look: Callable[[str], tuple[int, Iterable[str]]]) -> int:
    """Return the largest exponent of the rules that run when a query is asked."""
    worst, open_, seen = 0, [query], {query}
    while open_:
        exponent, below = look(open_.pop())
        worst = max(worst, exponent)
        for name in below:
            if name not in seen and _is_run(advice, name):
                open_.append(name)
            seen.add(name)
    return worst


def _is_run(advice: Advice, name: str) -> bool:
    relation = advice.scheme.relations.get(name)
    if relation is None:
        return name in advice.views
    return name in advice.scheme.clauses and not (relation.is_stored or relation.is_kept)


def _read(clauses: Iterable[Clause]) -> list[str]:
    return [item.relation for each in clauses for item in each.body if isinstance(item, Atom)]
