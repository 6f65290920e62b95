"""The plan that answers a goal where nothing is stored.

Most derived relations are solved as far as the goal asks for them (`solve.py`). Recursive counts
and sums are not, nor are choices and rounds of subsumption: their strata, and what these read, are
evaluated in full first. A group has a value only when all groups that it reads have one, and what
is chosen or dominated depends on all candidates.
"""

from corollary.analysis.strata import strata
from corollary.core import plans
from corollary.core.logic import Literal
from corollary.core.program import NormalProgram
from corollary.core.statistics import Statistics
from corollary.maintain.algorithms.seminaive import plan_program
from corollary.maintain.solve import answer_goal


def solve(program: NormalProgram, goal: Literal, statistics: Statistics) -> plans.Plan:
    """Return the plan whose `GOAL_RELATION` holds the answers: one column per goal variable."""
    evaluated = _evaluated_relations(program, goal.relation)
    asked = answer_goal(
        program,
        goal,
        statistics,
        lambda name: name in evaluated or not program.relations[name].is_derived,
    )
    if not evaluated:
        return asked
    first = plan_program(program.restricted_to(evaluated), statistics)
    procedures = {**first.procedures, **asked.procedures}
    procedures[plans.MAIN] = (*first.procedures[plans.MAIN], *asked.procedures[plans.MAIN])
    orders = {
        name: tuple(dict.fromkeys((*first.orders.get(name, ()), *asked.orders.get(name, ()))))
        for name in {**first.orders, **asked.orders}
    }
    return plans.Plan(
        procedures,
        {**first.types, **asked.types},
        orders,
        plans.MAIN,
        {**first.locals, **asked.locals},
    )


def _evaluated_relations(program: NormalProgram, goal: str) -> set[str]:
    """Return the derived relations of groups and choices that a goal needs, and those below."""
    found: set[str] = set()
    layers = strata(program)
    below = {goal}
    for stratum in reversed(layers):
        if not below.isdisjoint(stratum.relations):
            read = _read(stratum.relations, program)
            below |= read
            is_whole = stratum.is_grouped or stratum.has_choice or bool(stratum.dominated)
            if is_whole or not found.isdisjoint(stratum.relations):
                found |= {*stratum.relations, *read}
    return {name for name in found if program.relations[name].is_derived}


def _read(relations: tuple[str, ...], program: NormalProgram) -> set[str]:
    """Return what the rules, aggregations and groups of some relations read."""
    read = {
        literal.relation
        for rule in program.rules
        if rule.head.relation in relations
        for literal in rule.literals
    }
    read |= {each.body for each in program.aggregations if each.relation in relations}
    groupings = (program.relations[name].grouping for name in relations)
    return read | {pairs for each in groupings if each for _, pairs in each.reads}
