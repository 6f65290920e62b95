"""Stratification: no relation depends on its own negation or on an aggregate over itself."""

from collections.abc import Iterator
from itertools import pairwise

from corollary.analysis.dependencies import Dependencies, dependencies
from corollary.analysis.survey import Survey
from corollary.analysis.traverse import Reading
from corollary.analysis.wording import places
from corollary.core.graph import shortest_path
from corollary.errors import Diagnostic


def stratification(survey: Survey) -> Iterator[Diagnostic]:
    """Yield a shortest cycle through negation and one through an aggregate per component."""
    graph = dependencies(survey)
    seen: set[tuple[int, bool]] = set()
    for (head, body, _), reading in graph.strict.items():
        if graph.is_recursive(head, body):
            kind = (graph.component[head], reading.is_negated)
            if kind not in seen:
                seen.add(kind)
                yield _cycle(graph, head, body, reading)


def _cycle(graph: Dependencies, head: str, body: str, reading: Reading) -> Diagnostic:
    inside = graph.component[head]
    arcs = {
        name: [target for target in targets if graph.component[target] == inside]
        for name, targets in graph.reads.items()
        if graph.component[name] == inside
    }
    back = [body] if head == body else shortest_path(arcs, body, head)
    first = f"!`{body}`" if reading.is_negated else f"aggregate over `{body}`"
    shown = " → ".join([f"`{head}`", first, *(f"`{name}`" for name in back[1:])])
    links = [(reading, head, body)]
    links += [(graph.reads[one][two], one, two) for one, two in pairwise(back)]
    related = places(*((link.atom.span, f"`{one}` reads `{two}`") for link, one, two in links))
    what = "its own negation" if reading.is_negated else "an aggregate over itself"
    return Diagnostic(
        "C0501" if reading.is_negated else "C0502",
        f"`{head}` depends on {what}: {shown}.",
        reading.atom.span,
        "break the cycle: let one of these rules read a relation that does not depend on it",
        related[1:],
    )
