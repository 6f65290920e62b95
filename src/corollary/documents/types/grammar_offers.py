"""What the trees of a grammar can bring: which patterns they match, with which labels of classes.

Joins become labels: for every choice of a label for each class of a pattern, sat(A, H, D) says
whether a tree of the grammar matches it. Labels that neither the grammar nor the pattern mentions
are all alike, so a choice has *strangers* for them:

| class                                  | in a row                                              |
|----------------------------------------|-------------------------------------------------------|
| its label is in the query              | the label                                             |
| chosen is a label that is mentioned    | `?{label}`                                            |
| chosen is a stranger of its own        | `?`: any label does                                   |
| chosen is a stranger shared by classes | `?{label}` for each label there is: they are the same |
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product

from corollary.documents.answers.unknown import UNKNOWN, Tuples, encode_label, encode_one_of
from corollary.documents.queries import shape
from corollary.documents.queries.pattern import Axis
from corollary.documents.types.function_types import Grammar, labels_of
from corollary.documents.types.satisfiability import Demand, Satisfiability
from corollary.engines.budget import WorkBudget

Assignment = Mapping[str, str]
"""Labels of classes."""


def stream_rows(
    grammar: Grammar, node: shape.Node, labels: Sequence[str], budget: WorkBudget
) -> Tuples:
    """Return the rows of a query node that the trees of a grammar can bring, each by itself."""
    found: set[tuple[str, ...]] = set()
    sat = Satisfiability(grammar, budget)
    for pattern in shape.expand_alternatives(node):
        choices = _DemandChoices(grammar, sat, _demands(pattern), budget)
        for choice in choices:
            if choices.met(choice):
                found |= {_row(pattern, symbols) for symbols in choices.symbols(choice, labels)}
                if choices.is_free(choice):
                    break
    return frozenset(found)


def single_offers(
    grammar: Grammar, nodes: Iterable[shape.Node], labels: Sequence[str], budget: WorkBudget
) -> Iterator[dict[int, Tuples]]:
    """Yield the largest sets of rows that one tree of a grammar brings together, by query node."""
    sat = Satisfiability(grammar, budget)
    demands = [
        each
        for node in nodes
        for pattern in shape.expand_alternatives(node)
        for each in _demands(pattern)
    ]
    choices = _DemandChoices(grammar, sat, demands, budget)
    seen = set()
    for choice in choices:
        met = choices.met(choice)
        together = list(_largest(list(met), sat, budget))
        for chosen in together:
            for symbols in choices.symbols(choice, labels):
                offer: dict[int, frozenset[tuple[str, ...]]] = {}
                for each in chosen:
                    pattern = met[each]
                    before = offer.get(pattern.node.number, frozenset())
                    offer[pattern.node.number] = before | {_row(pattern, symbols)}
                if (key := frozenset(offer.items())) not in seen:
                    seen.add(key)
                    yield offer
        if choices.is_free(choice) and [*map(len, together)] == [len(demands)]:
            break


def _demands(pattern: shape.ConjunctivePattern) -> list[Demand]:
    is_deep = pattern.node.axis is Axis.DESCENDANT
    return [(pattern, False), (pattern, True)] if is_deep else [(pattern, False)]


def _row(pattern: shape.ConjunctivePattern, symbols: Mapping[str, str]) -> tuple[str, ...]:
    known = {name: encode_label(label) for name, label in shape.fixed_labels_in(pattern)}
    return tuple(known.get(name, symbols.get(name, UNKNOWN)) for name in pattern.node.columns)


def _largest(
    demands: list[Demand], sat: Satisfiability, budget: WorkBudget
) -> Iterator[frozenset[Demand]]:
    """Yield the sets of demands that one tree meets together, and that are part of no other."""
    found: list[frozenset[Demand]] = []
    stack: list[tuple[tuple[Demand, ...], int]] = [((), 0)]
    while stack:
        chosen, at = stack.pop()
        budget.spend(1 + len(demands))
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


class LabelChoices:
    """Choices of labels for classes: those that are mentioned, and strangers for all others.

    A stranger has the number of a class: the first one that it is chosen for. Choices of strangers
    come first.

    Args:
        names: the classes.
        mentioned: the labels that matter by themselves.
        budget: what it may take.
        can_be: whether a class can have a label; a class that can have none gets none.

    Attributes:
        strangers: of the classes.
    """

    def __init__(
        self,
        names: Sequence[str],
        mentioned: AbstractSet[str],
        budget: WorkBudget,
        can_be: Callable[[str, str], bool] = lambda *_: True,
    ) -> None:
        blank = " " * (1 + max(map(len, mentioned), default=0))  # longer than any label
        self.strangers = {name: f"{blank}{at}" for at, name in enumerate(names)}
        self._budget = budget
        self._options: dict[str, list[str]] = {}
        for at, name in enumerate(names):
            options = [each for each in sorted(mentioned) if can_be(name, each)]
            if can_be(name, self.strangers[name]):
                before = [self.strangers[each] for each in names[:at]]
                options = [self.strangers[name], *options, *before]
            if options:
                self._options[name] = options

    def __iter__(self) -> Iterator[Assignment]:
        for chosen in product(*self._options.values()):
            self._budget.spend()
            choice = dict(zip(self._options, chosen, strict=True))
            shared = [name for name, each in self.strangers.items() if each in chosen]
            if all(choice.get(name) == self.strangers[name] for name in shared):
                yield choice

    def is_free(self, choice: Assignment) -> bool:
        """Whether any label does for each class."""
        return choice == self.strangers

    def symbols(self, choice: Assignment, labels: Sequence[str]) -> Iterator[dict[str, str]]:
        """Yield what rows have for classes."""
        uses = Counter(choice.values())
        alone = {each for each in self.strangers.values() if uses[each] == 1}
        shared = [each for each in self.strangers.values() if uses[each] > 1]
        for chosen in product(labels, repeat=len(shared)):
            self._budget.spend()
            meant = dict(zip(shared, chosen, strict=True))
            yield {
                name: UNKNOWN
                if each in alone
                else encode_one_of([encode_label(meant.get(each, each))])
                for name, each in choice.items()
            }


class _DemandChoices(LabelChoices):
    """The choices of labels for the classes of some demands on trees of a grammar."""

    def __init__(
        self, grammar: Grammar, sat: Satisfiability, demands: list[Demand], budget: WorkBudget
    ) -> None:
        self._sat = sat
        self._demands = [(each, frozenset(shape.classes_in(each[0]))) for each in demands]
        names = sorted(frozenset[str]().union(*(classes for _, classes in self._demands)))
        mentioned = labels_of(grammar).union(*(shape.labels_in(pattern) for pattern, _ in demands))
        super().__init__(names, mentioned, budget, self._can_be)

    def met(self, choice: Assignment) -> dict[Demand, shape.ConjunctivePattern]:
        """Return the demands that one tree can meet, each by itself; their labels are chosen."""
        found = {}
        for (pattern, is_deep), classes in self._demands:
            chosen = shape.with_labels(pattern, choice) if classes <= choice.keys() else None
            if chosen is not None and self._sat.meets([(chosen, is_deep)]):
                found[chosen, is_deep] = pattern
        return found

    def _can_be(self, name: str, label: str) -> bool:
        """Whether a tree meets one of the demands with a class if it has a label."""
        for (pattern, is_deep), classes in self._demands:
            chosen = shape.with_labels(pattern, {name: label}) if name in classes else None
            if chosen is not None and self._sat.meets([(chosen, is_deep)]):
                return True
        return False
