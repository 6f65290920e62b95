"""What the trees of a grammar can bring: which patterns they match, with which labels of classes.

Joins become labels: for every choice of a label for each class of a pattern, sat(A, H, D) says
whether a tree of the grammar matches it. Labels that neither the grammar nor the pattern mentions
are all alike, so a choice has *strangers* for them:

| class                                  | in a row                                              |
|----------------------------------------|-------------------------------------------------------|
| its label is asked for                 | the label                                             |
| chosen is a label that is mentioned    | `?{label}`                                            |
| chosen is a stranger of its own        | `?`: any label does                                   |
| chosen is a stranger shared by classes | `?{label}` for each label there is: they are the same |
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from corollary.documents.pattern import Axis
from corollary.documents.plain import Plain, classes_in, expansions, fixed_in, labelled, labels_in
from corollary.documents.satisfiable import Satisfiable
from corollary.documents.shape import Node
from corollary.documents.tuples import Tuples
from corollary.documents.types import Grammar, labels_of
from corollary.documents.unknown import UNKNOWN, one_of, stored

Choice = Mapping[str, str]
"""Labels of classes."""
Demand = tuple[Plain, bool]
"""A pattern, and whether it is to match strictly below the root of a tree, or at it."""


class TooManyError(Exception):
    """There are more choices, or more sets of patterns, than may be gone through."""


def rows_of_stream(grammar: Grammar, node: Node, labels: Sequence[str], limit: int) -> Tuples:
    """Return the rows of a query node that the trees of a grammar can bring, each by itself.

    Args:
        grammar: the types.
        node: the query node.
        labels: all that a class may have to have.
        limit: so many choices of labels at most.

    Raises:
        TooManyError: there are more.
    """
    found: set[tuple[str, ...]] = set()
    sat = Satisfiable(grammar)
    for plain in expansions(node):
        choices = _Choices(grammar, sat, _demands(plain), limit)
        for choice in choices:
            if choices.met(choice):
                found |= {_row(plain, symbols) for symbols in choices.symbols(choice, labels)}
                if choices.is_free(choice):
                    break
    return frozenset(found)


def offers_once(
    grammar: Grammar, nodes: Iterable[Node], labels: Sequence[str], limit: int
) -> Iterator[dict[int, Tuples]]:
    """Yield the largest sets of rows that one tree of a grammar brings together, by query node.

    Args:
        grammar: the types.
        nodes: the query nodes.
        labels: all that a class may have to have.
        limit: so many choices of labels, and sets of patterns for each, at most.

    Raises:
        TooManyError: there are more.
    """
    sat = Satisfiable(grammar)
    demands = [each for node in nodes for plain in expansions(node) for each in _demands(plain)]
    choices = _Choices(grammar, sat, demands, limit)
    seen = set()
    for choice in choices:
        asked = choices.met(choice)
        together = list(_largest(list(asked), sat, limit))
        for chosen in together:
            for symbols in choices.symbols(choice, labels):
                offer: dict[int, frozenset[tuple[str, ...]]] = {}
                for each in chosen:
                    plain = asked[each]
                    before = offer.get(plain.node.number, frozenset())
                    offer[plain.node.number] = before | {_row(plain, symbols)}
                if (key := frozenset(offer.items())) not in seen:
                    seen.add(key)
                    yield offer
        if choices.is_free(choice) and [*map(len, together)] == [len(demands)]:
            break


def _demands(plain: Plain) -> list[Demand]:
    is_deep = plain.node.axis is Axis.DESCENDANT
    return [(plain, False), (plain, True)] if is_deep else [(plain, False)]


def _row(plain: Plain, symbols: Mapping[str, str]) -> tuple[str, ...]:
    known = {name: stored(label) for name, label in fixed_in(plain)}
    return tuple(known.get(name, symbols[name]) for name in plain.node.columns)


def _largest(demands: list[Demand], sat: Satisfiable, limit: int) -> Iterator[frozenset[Demand]]:
    """Yield the sets of demands that one tree meets together, and that are part of no other."""
    found: list[frozenset[Demand]] = []
    stack: list[tuple[tuple[Demand, ...], int]] = [((), 0)]
    steps = 0
    while stack:
        chosen, at = stack.pop()
        steps += 1
        if steps > limit:
            raise TooManyError
        everything = frozenset((*chosen, *demands[at:]))
        if any(everything <= each for each in found):
            continue
        if sat.meets(everything):
            found.append(everything)
            continue
        stack.append((chosen, at + 1))
        if sat.meets((*chosen, demands[at])):
            stack.append(((*chosen, demands[at]), at + 1))
    yield from found


class _Choices:
    """The choices of labels for the classes of some patterns, those of strangers first.

    A stranger has the number of a class: the first one that it is chosen for.
    """

    def __init__(
        self, grammar: Grammar, sat: Satisfiable, demands: list[Demand], limit: int
    ) -> None:
        self._sat = sat
        self._demands = [(each, frozenset(classes_in(each[0]))) for each in demands]
        names = sorted(frozenset[str]().union(*(classes for _, classes in self._demands)))
        mentioned = labels_of(grammar).union(*(labels_in(plain) for plain, _ in demands))
        blank = " " * (1 + max(map(len, mentioned), default=0))  # longer than any label
        self._strangers = {name: f"{blank}{at}" for at, name in enumerate(names)}
        self._options: dict[str, list[str]] = {}
        for at, name in enumerate(names):
            options = [each for each in sorted(mentioned) if self._can_be(name, each)]
            if self._can_be(name, self._strangers[name]):
                before = [self._strangers[each] for each in names[:at]]
                options = [self._strangers[name], *options, *before]
            if options:
                self._options[name] = options
        if prod(map(len, self._options.values())) > limit:
            raise TooManyError

    def __iter__(self) -> Iterator[Choice]:
        for chosen in product(*self._options.values()):
            choice = dict(zip(self._options, chosen, strict=True))
            shared = [name for name, each in self._strangers.items() if each in chosen]
            if all(choice.get(name) == self._strangers[name] for name in shared):
                yield choice

    def met(self, choice: Choice) -> dict[Demand, Plain]:
        """Return the demands that one tree can meet, each by itself; their labels are chosen."""
        found = {}
        for (plain, is_deep), classes in self._demands:
            chosen = labelled(plain, choice) if classes <= choice.keys() else None
            if chosen is not None and self._sat.meets([(chosen, is_deep)]):
                found[chosen, is_deep] = plain
        return found

    def is_free(self, choice: Choice) -> bool:
        """Whether any label does for each class."""
        return choice == self._strangers

    def symbols(self, choice: Choice, labels: Sequence[str]) -> Iterator[dict[str, str]]:
        """Yield what rows have for classes."""
        uses = Counter(choice.values())
        alone = {each for each in self._strangers.values() if uses[each] == 1}
        shared = [each for each in self._strangers.values() if uses[each] > 1]
        for chosen in product(labels, repeat=len(shared)):
            meant = dict(zip(shared, chosen, strict=True))
            yield {
                name: UNKNOWN if each in alone else one_of([stored(meant.get(each, each))])
                for name, each in choice.items()
            }

    def _can_be(self, name: str, label: str) -> bool:
        """Whether a tree meets one of the demands with a class if it has a label."""
        for (plain, is_deep), classes in self._demands:
            chosen = labelled(plain, {name: label}) if name in classes else None
            if chosen is not None and self._sat.meets([(chosen, is_deep)]):
                return True
        return False
