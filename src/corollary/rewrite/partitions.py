"""Rules that derive the tuples of some partitions only.

Where the recursive rules of a stratum keep the value of a pivot column, tuples with different
values there never meet. So it is enough that the other rules of the stratum derive only the tuples
of a partition: they read the numbers of the partitions from a relation, and test the pivot.

    p(x, y) :- e(x, y).              p(x, y) :- e(x, y), •share(n), n = •share(x, 4).
    p(x, z) :- p(x, y), e(y, z).     p(x, z) :- p(x, y), e(y, z).
"""

from collections.abc import Mapping
from dataclasses import replace

from corollary.core.functors.conversions import PARTITION_OF
from corollary.core.logic import Condition, Constant, Functor, Literal, Rule, Variable
from corollary.core.plans import working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import NUMBER

PARTITIONS = Relation(
    working_relation("", "share"), ("number",), (NUMBER,), False, is_declared=False
)
"""Holds the numbers of the partitions to derive."""

_NUMBER = Variable(working_relation("", "n"), NUMBER)


def partition_program(
    program: NormalProgram, pivots: Mapping[str, Mapping[str, int]], partitions: int
) -> NormalProgram:
    """Return a program whose strata may be computed partition by partition.

    Args:
        program: the program.
        pivots: for each partitioned relation, the pivot columns of all relations of its stratum.
        partitions: the number of partitions.
    """
    rules = tuple(
        _restrict(rule, pivots[rule.head.relation], partitions)
        if rule.head.relation in pivots
        else rule
        for rule in program.rules
    )
    relations = {**program.relations, PARTITIONS.name: PARTITIONS}
    return replace(program, relations=relations, rules=rules)


def _restrict(rule: Rule, pivots: Mapping[str, int], partitions: int) -> Rule:
    if any(literal.relation in pivots for literal in rule.literals):
        return rule  # recursive: it keeps the pivot value of what it reads
    pivot = rule.head.slots[pivots[rule.head.relation]]
    assert isinstance(pivot, Variable | Constant)
    number = Functor(PARTITION_OF, (pivot, Constant(partitions, NUMBER)), NUMBER)
    return replace(
        rule,
        literals=(*rule.literals, Literal(PARTITIONS.name, (_NUMBER,))),
        conditions=(*rule.conditions, Condition("=", _NUMBER, number)),
    )
