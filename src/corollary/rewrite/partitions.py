"""Rules that derive the tuples of some partitions only.

Where the recursive rules of a stratum keep the value of a pivot column, tuples with different
values there never meet. So it is enough that the other rules of the stratum derive only the tuples
of a partition: they read its number, and how many there are, from a relation, and test the pivot.

    p(x, y) :- e(x, y).              p(x, y) :- e(x, y), •share(n, m), n = •share(x, m).
    p(x, z) :- p(x, y), e(y, z).     p(x, z) :- p(x, y), e(y, z).

So the same plan serves any number of partitions.
"""

from collections.abc import Mapping
from dataclasses import replace

from corollary.core.functors.conversions import PARTITION_OF
from corollary.core.logic import Condition, Constant, Functor, Literal, Rule, Variable
from corollary.core.plans import working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import NUMBER

PARTITIONS = Relation(
    working_relation("", "share"), ("number", "count"), (NUMBER, NUMBER), False, is_declared=False
)
"""Holds the number of the partition to derive, and how many there are."""

ALL_PARTITIONS = (0, 1)
"""Its tuple where all tuples are derived."""

_NUMBER, _COUNT = (Variable(working_relation("", each), NUMBER) for each in ("n", "m"))


def partition_program(
    program: NormalProgram, pivots: Mapping[str, Mapping[str, int]]
) -> NormalProgram:
    """Return a program whose strata may be computed partition by partition.

    Args:
        program: the program.
        pivots: for each partitioned relation, the pivot columns of all relations of its stratum.
    """
    rules = tuple(
        _restrict(rule, pivots[rule.head.relation]) if rule.head.relation in pivots else rule
        for rule in program.rules
    )
    relations = {**program.relations, PARTITIONS.name: PARTITIONS}
    return replace(program, relations=relations, rules=rules)


def _restrict(rule: Rule, pivots: Mapping[str, int]) -> Rule:
    if any(literal.relation in pivots for literal in rule.literals):
        return rule  # recursive: it keeps the pivot value of what it reads
    pivot = rule.head.slots[pivots[rule.head.relation]]
    assert isinstance(pivot, Variable | Constant)
    number = Functor(PARTITION_OF, (pivot, _COUNT), NUMBER)
    return replace(
        rule,
        literals=(*rule.literals, Literal(PARTITIONS.name, (_NUMBER, _COUNT))),
        conditions=(*rule.conditions, Condition("=", _NUMBER, number)),
    )
