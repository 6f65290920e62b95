"""Stratification: no relation depends on its own negation or on an aggregate over itself."""

from collections.abc import Iterator
from itertools import pairwise

from corollary.analysis.dependencies import DependencyGraph, dependency_graph
from corollary.analysis.grouped_recursion import grouped_recursion
from corollary.analysis.phrases import related_spans
from corollary.analysis.resolution import ResolvedProgram
from corollary.analysis.traverse import AtomUse
from corollary.core.graph import shortest_path
from corollary.errors import Diagnostic


def stratification(resolved: ResolvedProgram) -> Iterator[Diagnostic]:
    """Yield a shortest cycle through negation and one through an aggregate per component."""
    graph = dependency_graph(resolved)
    grouped = grouped_recursion(resolved.clauses, resolved.events).keys
    seen: set[tuple[int, bool]] = set()
    for (head, body, _), use in graph.nonmonotonic.items():
        is_accepted = not use.is_negated and head in grouped  # the pass `groups` looks at these
        if graph.is_recursive(head, body) and not is_accepted:
            kind = (graph.component[head], use.is_negated)
            if kind not in seen:
                seen.add(kind)
                yield _cycle(graph, head, body, use)


def _cycle(graph: DependencyGraph, head: str, body: str, use: AtomUse) -> Diagnostic:
    inside = graph.component[head]
    arcs = {
        name: [target for target in targets if graph.component[target] == inside]
        for name, targets in graph.reads.items()
        if graph.component[name] == inside
    }
    path = [body] if head == body else shortest_path(arcs, body, head)
    first = f"!`{body}`" if use.is_negated else f"aggregate over `{body}`"
    shown = " → ".join([f"`{head}`", first, *(f"`{name}`" for name in path[1:])])
    links = [(use, head, body)]
    links += [(graph.reads[one][two], one, two) for one, two in pairwise(path)]
    related = related_spans(
        *((link.atom.span, f"`{one}` reads `{two}`") for link, one, two in links)
    )
    what = "its own negation" if use.is_negated else "an aggregate over itself"
    return Diagnostic(
        "C0501" if use.is_negated else "C0502",
        f"`{head}` depends on {what}: {shown}.",
        use.atom.span,
        "break the cycle: let one of these rules read a relation that does not depend on it",
        related[1:],
    )
