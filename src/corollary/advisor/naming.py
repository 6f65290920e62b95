"""Names of new views; candidates of the same form share one, whichever query they serve."""

from collections.abc import Iterator
from dataclasses import dataclass

from corollary.advisor.candidates import Candidate
from corollary.advisor.canonical import canonical_view
from corollary.advisor.printing import Positions, in_text_order
from corollary.advisor.rewriting import Forms
from corollary.advisor.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Named:
    """A candidate with a name, its variables in order, and where its literals stand in the text."""

    name: str
    node: Candidate
    order: tuple[str, ...]
    positions: Positions


class Naming:
    """Gives names that no relation of the program has.

    A candidate that is a view of the program which is kept already gets the name of that.
    """

    def __init__(self, scheme: Scheme, forms: Forms) -> None:
        self._forms = forms
        self._taken = set(scheme.relations)
        self._made: dict[str, Named] = {}
        self._known: dict[str, tuple[str, tuple[int, ...]]] = {}
        asked = {each.relation for each in scheme.queries}
        for name, relation in scheme.relations.items():
            view = relation.view
            if view is not None and view.is_whole and name not in asked:
                key, order = canonical_view(view.variables, view.bodies)
                places = tuple(view.variables.index(each) for each in order)
                self._known.setdefault(key, (name, places))

    def of(self, node: Candidate, query: str, positions: Positions) -> tuple[str, tuple[str, ...]]:
        """Return the name of a candidate's view, and its variables in the order of the columns.

        Args:
            node: the candidate.
            query: the predicate that it is for.
            positions: where the literals of its clause stand in the text.
        """
        key, canonical = self._forms.key(node), self._forms.order(node)
        if key in self._known:
            name, places = self._known[key]
            by_place = dict(zip(places, canonical, strict=True))
            return name, tuple(by_place[at] for at in range(len(places)))
        if key not in self._made:
            order = in_text_order(node, positions)
            self._made[key] = Named(self._fresh(query), node, order, positions)
        name, first, order = self._made[key].name, self._made[key].node, self._made[key].order
        by_first = dict(zip(self._forms.order(first), canonical, strict=True))
        return name, tuple(by_first[each] for each in order)

    def made(self) -> Iterator[Named]:
        """Yield the views that got a name."""
        yield from self._made.values()

    def _fresh(self, query: str) -> str:
        stem, number = f"mv_{query.replace('.', '_')}", 1
        while f"{stem}_{number}" in self._taken:
            number += 1
        name = f"{stem}_{number}"
        self._taken.add(name)
        return name
