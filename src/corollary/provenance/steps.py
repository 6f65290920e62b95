"""What the rules of a program mean in proofs: their premises, and how much each step adds.

A step adds 1 to the height of its premises, unless rewriting made its head (`p.some1`, the tables
of a query): then it adds 0. Two kinds of rules are no steps of their own:

* A base tuple of a relation with rules is in `p.base`: `p(x) :- p.base(x)` passes it on, and so
  do the rule that makes the rows of a bag of its counts, and projections.
* An `eqrel` is closed by rules that add one link to a chain: the chain as a whole is one step, so
  the link adds 1 to the height of its seed tuple and the chain up to there 0.
"""

from collections.abc import Mapping
from functools import cached_property

from corollary.analysis.strata import strata
from corollary.core.logic import Rule
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.provenance.rule_query import guards, with_named_wildcards


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A rule as a step of proofs.

    Attributes:
        rule: with variables instead of the wildcards of its positive literals.
        premises: the positions of the literals that are premises; aggregates are notes.
        weights: what the step adds to the height of each premise.
        weight: the height of a tuple without premises.
        is_passing: whether the head is its one premise under another name.
        is_link: whether it adds a link to the chain of an `eqrel`.
    """

    rule: Rule
    premises: tuple[int, ...]
    weights: tuple[int, ...]
    weight: int
    is_passing: bool
    is_link: bool


@dataclass(frozen=True)
class ProofSteps:
    """The steps of a program, by the numbers of its rules in normal form."""

    program: NormalProgram

    @cached_property
    def aggregates(self) -> frozenset[str]:
        """The relations of aggregates."""
        return frozenset(each.relation for each in self.program.aggregations)

    @cached_property
    def steps(self) -> tuple[ProofStep, ...]:
        """The step of each rule."""
        return tuple(map(self._step, self.program.rules))

    @cached_property
    def by_head(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of the rules of each relation."""
        found: dict[str, list[int]] = {}
        for number, rule in enumerate(self.program.rules):
            found.setdefault(rule.head.relation, []).append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    def is_derived(self, relation: str) -> bool:
        """Whether tuples of a relation have instances of rules."""
        return relation in self.by_head

    @cached_property
    def _stratum(self) -> Mapping[str, frozenset[str]]:
        """The relations that depend on each other, by each of them."""
        return {
            name: each.members
            for each in strata(self.program)
            if each.is_recursive
            for name in each.relations
        }

    def stratum(self, relation: str) -> frozenset[str]:
        """Return the relations of the same recursion; none if it is not recursive."""
        return self._stratum.get(relation, frozenset())

    @cached_property
    def _least(self) -> Mapping[str, int]:
        """What the height of a derived tuple is at least: 1 if all its rules are steps."""
        return {
            name: min((1, *(self._least_of(self.steps[at]) for at in numbers)))
            for name, numbers in self.by_head.items()
        }

    @staticmethod
    def _least_of(step: ProofStep) -> int:
        return min((step.weight, *step.weights)) if not step.is_link else 1

    def least_height(self, relation: str) -> int:
        """Return what the height of a tuple of a relation is at least."""
        return self._least.get(relation, 0)

    @cached_property
    def rank_offsets(self) -> Mapping[str, int]:
        """What to add to the least rank of a tuple for a lower bound of its height.

        There is none for recursions with a relation that rewriting made, and for equivalences.
        """
        found: dict[str, int] = {}
        for name, members in self._stratum.items():
            steps = [self.steps[at] for each in members for at in self.by_head.get(each, ())]
            if not any(step.is_link or (not step.is_passing and not step.weight) for step in steps):
                found[name] = 0 if any(step.is_passing for step in steps) else 1
        return found

    def _step(self, rule: Rule) -> ProofStep:
        program, head = self.program, rule.head.relation
        premises = tuple(
            at
            for at, literal in enumerate(rule.literals)
            if not literal.negated
            and literal.relation not in self.aggregates
            and literal.relation not in guards(program)
        )
        is_passing = (
            rule.origin.passes == ("bases",)
            or rule.origin.passes[-1:] in (("negations",), ("fields",))
            or (
                head in program.bags
                and [each.relation for each in rule.literals] == [program.bags[head]]
            )
        )
        is_link = rule.origin.passes == ("equivalences",) and program.relations[head].is_declared
        weight = int(not is_passing and program.relations[head].is_declared)
        weights = tuple(
            int(rule.literals[at].relation != head) if is_link else weight for at in premises
        )
        return ProofStep(self._name_wildcards(rule), premises, weights, weight, is_passing, is_link)

    def _name_wildcards(self, rule: Rule) -> Rule:
        """Return a rule in which each wildcard of a positive literal is a variable of its own."""
        return with_named_wildcards(rule, lambda name: self.program.relations[name].types)
