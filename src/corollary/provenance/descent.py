"""Descent: a proof by ranks, without a search.

Every tuple of a ranked stratum has an instance whose premises of the stratum have smaller ranks.
From the goal down, of these the one is taken with the least (largest guess, sum of guesses, rule,
values), where the guess of a tuple is 0 if it is a base tuple, and its rank + 1 else. All tuples of
a level are asked for at once. What is found is a proof, perhaps not the lowest one: a rank is an
upper bound inside of its stratum.
"""

from collections.abc import Iterator

from corollary.provenance.graph import KnownInstance, ProofGraph
from corollary.provenance.instance_rows import Wanted
from corollary.provenance.instances import InstanceFinder
from corollary.provenance.limits import Allowance
from corollary.provenance.steps import ProofSteps
from corollary.provenance.value_order import values_key


def can_descend(steps: ProofSteps, ranked: frozenset[str], relation: str) -> bool:
    """Return whether all recursions that a proof may pass through have ranks."""
    work, seen = [relation], {relation}
    while work:
        name = work.pop()
        if steps.stratum(name) and name not in ranked:
            return False
        for number in steps.by_head.get(name, ()):
            step = steps.steps[number]
            below = {step.rule.literals[at].relation for at in step.premises} - seen
            seen |= below
            work += below
    return True


def descend(
    graph: ProofGraph, root: int, finder: InstanceFinder, allowance: Allowance
) -> dict[int, KnownInstance | None] | None:
    """Add a proof of a tuple to the graph.

    There is always one, so the limits do not count until it has more tuples than can be shown.

    Returns:
        None; if the work was over, what was found of the proof until then.
    """
    chosen: dict[int, KnownInstance | None] = {}
    level = [root]
    while level:
        if len(chosen) > allowance.limits.nodes and allowance.is_over:
            return chosen
        open_ = [each for each in level if graph.is_derived(each) and not graph.is_expanded(each)]
        wanted = {number: Wanted(graph.facts[number], rank=graph.ranks[number]) for number in open_}
        with allowance.without_bounds():
            for number, found in finder.find_in_batches(wanted, allowance):
                graph.add(number, found)
        below: dict[int, None] = {}
        for number in level:
            chosen[number] = None
            if graph.is_derived(number):
                best = min(_smaller(graph, number), key=lambda each: _order(graph, each))
                chosen[number] = best
                below |= dict.fromkeys(best.premises)
        level = [each for each in below if each not in chosen]
    return None


def _smaller(graph: ProofGraph, number: int) -> Iterator[KnownInstance]:
    """Yield the instances of a tuple whose premises of its own stratum have smaller ranks."""
    members, rank = graph.steps.stratum(graph.facts[number][0]), graph.ranks[number]
    for known in graph.instances[number]:
        own = (
            graph.ranks[premise] for premise in known.premises if graph.facts[premise][0] in members
        )
        if rank is None or all(each is not None and each < rank for each in own):
            yield known


def _order(graph: ProofGraph, known: KnownInstance) -> tuple[object, ...]:
    guesses = [graph.guess(premise) for premise in known.premises]
    return max(guesses, default=0), sum(guesses), known.instance.step, values_key(known.instance)
