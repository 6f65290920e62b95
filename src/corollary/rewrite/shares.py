"""Sharing work out: rules that derive only the tuples of some shares.

Where the recursive rules of a stratum keep the value of a pivot column, tuples with different
values there never meet. So it is enough that the other rules of the stratum derive the tuples of a
share only: they read the numbers of the shares from a relation, and test the pivot.

    p(x, y) :- e(x, y).              p(x, y) :- e(x, y), •share(n), n = •share(x, 4).
    p(x, z) :- p(x, y), e(y, z).     p(x, z) :- p(x, y), e(y, z).
"""

from collections.abc import Mapping
from dataclasses import replace

from corollary.core.functors import SHARE
from corollary.core.plan import working
from corollary.core.program import NormalProgram, Relation
from corollary.core.rules import Condition, Literal, Rule
from corollary.core.terms import Constant, Functor, Variable
from corollary.core.types import NUMBER

SHARES = Relation(working("", "share"), ("number",), (NUMBER,), False, is_declared=False)
"""Holds the numbers of the shares that are derived."""

NUMBER_OF = Variable(working("", "n"), NUMBER)


def shared(
    program: NormalProgram, pivots: Mapping[str, Mapping[str, int]], shares: int
) -> NormalProgram:
    """Return a program whose strata may be computed share by share.

    Args:
        program: the program.
        pivots: for each relation that is shared out, the pivot column of each of its stratum.
        shares: how many there are.
    """
    rules = tuple(
        _limited(rule, pivots[rule.head.relation], shares) if rule.head.relation in pivots else rule
        for rule in program.rules
    )
    relations = {**program.relations, SHARES.name: SHARES}
    return replace(program, relations=relations, rules=rules)


def _limited(rule: Rule, pivots: Mapping[str, int], shares: int) -> Rule:
    if any(literal.relation in pivots for literal in rule.literals):
        return rule
    pivot = rule.head.slots[pivots[rule.head.relation]]
    assert isinstance(pivot, Variable | Constant)
    share = Functor(SHARE, (pivot, Constant(shares, NUMBER)), NUMBER)
    return replace(
        rule,
        literals=(*rule.literals, Literal(SHARES.name, (NUMBER_OF,))),
        conditions=(*rule.conditions, Condition("=", NUMBER_OF, share)),
    )
