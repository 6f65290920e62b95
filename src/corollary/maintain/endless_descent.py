"""The step that fails if a value of a stratum with subsumption improves without end.

With more rounds than keys, some value has improved through its own key. If the rules on that chain
only add to the value, the chain goes on for ever; a bounded value ends it.
"""

from corollary.analysis.monotonicity import only_adds
from corollary.core import plans
from corollary.core.logic import Condition, Literal, Rule, Variable, Wildcard, head_arguments
from corollary.core.pipeline import Links, Reference
from corollary.core.plans import Step
from corollary.core.types import NUMBER
from corollary.maintain import delta
from corollary.maintain.payload import RANK_VARIABLE
from corollary.maintain.sip import Goal
from corollary.maintain.stair_bodies import StairBodies


def find_endless_descent(stairs: StairBodies) -> list[Step]:
    """Return the step that fails if a value improves through its own key, by adding only."""
    if stairs.is_by_value:
        return []
    steps: list[Step] = []
    links: list[Links] = []
    for rule in stairs.stratum.rules:
        if not only_adds(rule, stairs.stratum.members, stairs.stratum.subsumption):
            continue
        for position, rank in stairs.ranks(rule).ranks.items():
            steps += _link(stairs, rule, position, rank, links)
    if not links:
        return []
    tops = tuple(stairs.tables.tops[name] for name in stairs.stratum.relations)
    return [plans.Overrun(tops, (*steps, plans.FindDescent(tuple(links))))]


def _link(
    stairs: StairBodies, rule: Rule, position: int, rank: Variable, links: list[Links]
) -> list[Step]:
    """Return the steps that pair the heads of a rule, which are stairs, with a premise."""
    draft = stairs.draft
    head, premise = rule.head.relation, rule.literals[position].relation
    arguments = head_arguments(rule)
    name = plans.working_relation(head, f"link{len(links)}")
    draft.types[name] = (*draft.types[head], NUMBER, *draft.types[premise], NUMBER)
    ranks = stairs.ranks(rule)
    ranked_heads = stairs.tables.stairs[head]
    slots = ranks.slots[position]

    def read(at: int, literal: Literal) -> Goal:
        if at not in ranks.ranks:
            return Goal(literal, Reference(literal.relation, stairs.tables.lower))
        ranked = stairs.tables.stairs[literal.relation]
        return Goal(Literal(ranked, (*ranks.slots[at], ranks.ranks[at])), Reference(ranked))

    shown = tuple(slot for slot in slots if not isinstance(slot, Wildcard))
    body = delta.make_body(
        rule,
        read,
        goals=[Goal(Literal(ranked_heads, (*arguments, RANK_VARIABLE)), Reference(ranked_heads))],
        conditions=[Condition("<", each, RANK_VARIABLE) for each in ranks.ranks.values()],
        head=(*arguments, RANK_VARIABLE, *shown, rank),
    )
    keys = (stairs.orders[each].keys(len(draft.types[each])) for each in (head, premise))
    links.append(Links(name, head, premise, len(arguments), *keys))
    return draft.derive(name, [body])
