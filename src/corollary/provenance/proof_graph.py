"""The tuples that were met, and the instances of rules that derive them.

Tuples have numbers. Heights are those of the lowest proofs by the instances known so far: they only
go down while instances are added, so each change is passed on to what depends on it.
"""

from collections.abc import Iterable
from dataclasses import field

from corollary.data_class import dataclass
from corollary.provenance.instances import Fact, Found, Instance
from corollary.provenance.steps import ProofStep, ProofSteps

INFINITE = 1 << 60
"""The height of a tuple without a proof so far."""


@dataclass(frozen=True, slots=True)
class KnownInstance:
    """An instance whose premises have numbers.

    Attributes:
        head: the tuple that it derives.
        premises: the tuples that it needs; the first link of a chain needs no chain before it.
        weights: what it adds to the height of each premise.
        added_size: what it adds to the premises' trees: a chain is one step as a whole.
        is_longer: whether it adds a link to a chain that is its first premise.
    """

    instance: Instance
    step: ProofStep
    head: int
    premises: tuple[int, ...]
    weights: tuple[int, ...]
    added_size: int
    is_longer: bool


@dataclass(slots=True)
class ProofGraph:
    """Tuples, instances and heights.

    Attributes:
        steps: of the program.
        exact: the relations whose ranks are least heights inside of their strata.
        facts: the tuples by number.
        ranks: of the tuples.
        least: what their heights are at least.
        heights: those of the lowest known proofs.
        expanded: up to which height all instances of a tuple are known.
        instances: of each tuple.
    """

    steps: ProofSteps
    exact: frozenset[str]
    facts: list[Fact] = field(default_factory=list)
    ranks: list[int | None] = field(default_factory=list)
    least: list[int] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)
    expanded: dict[int, int] = field(default_factory=dict)
    instances: dict[int, tuple[KnownInstance, ...]] = field(default_factory=dict)
    _numbers: dict[Fact, int] = field(default_factory=dict)
    _uses: dict[int, list[KnownInstance]] = field(default_factory=dict)

    def number(self, fact: Fact, rank: int | None) -> int:
        """Return the number of a tuple."""
        known = self._numbers.get(fact)
        if known is not None:
            return known
        number = self._numbers[fact] = len(self.facts)
        relation = fact[0]
        least = self.steps.least_height(relation)
        offset = self.steps.rank_offsets.get(relation) if relation in self.exact else None
        if rank is not None and offset is not None:
            least = max(least, rank + offset)
        self.facts.append(fact)
        self.ranks.append(rank)
        self.least.append(least)
        self.heights.append(INFINITE if self.steps.is_derived(relation) else 0)
        return number

    def is_derived(self, number: int) -> bool:
        """Whether a tuple has instances of rules."""
        return self.steps.is_derived(self.facts[number][0])

    def is_expanded(self, number: int, height: int = INFINITE) -> bool:
        """Whether all instances of a tuple are known that give it no more than a height."""
        return self.expanded.get(number, -1) >= height

    def guess(self, number: int) -> int:
        """Return what the height of a tuple probably is: 0 for base, else its rank and 1."""
        rank = self.ranks[number]
        return self.least[number] if rank is None else rank + 1

    def add(self, number: int, found: Found, height: int = INFINITE) -> None:
        """Add the instances of a tuple that give it no more than a height, beside known ones."""
        before = {each.instance for each in self.instances.get(number, ())}
        new = [self._known(number, each) for each in found.instances if each not in before]
        if not found.is_cut:
            self.expanded[number] = max(height, self.expanded.get(number, -1))
        self.instances[number] = (*self.instances.get(number, ()), *new)
        for each in new:
            for premise in set(each.premises):
                self._uses.setdefault(premise, []).append(each)
        self._relax(new)

    def _known(self, head: int, instance: Instance) -> KnownInstance:
        step = self.steps.steps[instance.step]
        premises = tuple(map(self.number, instance.premises, instance.ranks))
        weights, own, is_longer = step.weights, int(not step.is_passing), False
        if step.is_link and len(premises) > 1:
            chain, _ = instance.premises
            is_longer = chain[1][:1] != chain[1][1:]  # as tuples: NaN is itself
            if not is_longer:  # same(x, z) :- same(x, x), same.seed(x, z)
                premises, weights = premises[1:], weights[1:]
            own = int(not is_longer)
        return KnownInstance(instance, step, head, premises, weights, own, is_longer)

    def _relax(self, changed: Iterable[KnownInstance]) -> None:
        """Pass lower heights on to the tuples that depend on them."""
        work = list(changed)
        heights, uses = self.heights, self._uses
        while work:
            known = work.pop()
            height = instance_height(known, heights)
            if height < heights[known.head]:
                heights[known.head] = height
                work += uses.get(known.head, ())


def instance_height(known: KnownInstance, heights: "list[int] | dict[int, int]") -> int:
    """Return the height that an instance gives its head, by the heights of its premises."""
    if not known.premises:
        return known.step.weight
    return max(
        heights[premise] + weight
        for premise, weight in zip(known.premises, known.weights, strict=True)
    )
