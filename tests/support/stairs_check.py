"""The invariants of stairs (`maintain/algorithms/stairs.py`), checked by brute force.

    I1  every stair (t, r) has an instance in the current state whose premises of the stratum are
        stairs of rank < r and whose head covers t
    I2  no stair is covered by another stair whose rank is as small or smaller
    I3  the head of every instance over tops is covered by a stair; the relation has the tops

Rules are evaluated tuple by tuple; nothing of the engine is used but reading, and what says which
columns are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from corollary.analysis.strata import Stratum, strata
from corollary.core.logic import Condition, Constant, Functor, Rule, Variable
from corollary.core.program import SubsumptionOrder
from corollary.database.database import Database
from corollary.maintain.payload import is_by_value
from oracles.evaluation import canonical, compare
from support.payload_check import joined, read

Row: TypeAlias = tuple[Any, ...]
Stair: TypeAlias = tuple[Row, int]


def check_stairs(db: Database) -> int:
    """Assert that all stairs of a database are right; return how many were looked at."""
    program = db._state.loaded.normal
    looked_at = 0
    for stratum in strata(program):
        is_valid = set(stratum.relations) <= db._state.planner.payload
        below = {each.relation for rule in stratum.rules for each in rule.literals}
        is_read = all(program.relations[name].is_stored for name in below)
        if stratum.subsumption and is_valid and is_read:
            looked_at += _StairsOf(db, stratum).check()
    return looked_at


class _StairsOf:
    def __init__(self, db: Database, stratum: Stratum) -> None:
        program = db._state.loaded.normal
        self.stratum = stratum
        self.orders = {
            name: stratum.subsumption.get(name, SubsumptionOrder(())) for name in stratum.relations
        }
        types = {name: each.types for name, each in program.relations.items()}
        self.by_value = is_by_value(stratum, types)
        self.tops = {name: set(read(db, name)) for name in stratum.relations}
        self.stairs = {
            name: [(row[:-1], row[-1]) for row in read(db, f"{name}•rank")]
            for name in stratum.relations
        }
        below = {each.relation for rule in stratum.rules for each in rule.literals}
        self.lower = {name: read(db, name) for name in below - set(stratum.relations)}

    def check(self) -> int:
        for name, stairs in self.stairs.items():
            rows = {row for row, _ in stairs}
            assert len(rows) == len(stairs), f"a stair of {name} has two ranks"
            best = {r for r in rows if not any(o != r and self.covers(name, o, r) for o in rows)}
            assert best == self.tops[name], f"{name} is {self.tops[name]}, its tops are {best}"
            for row, rank in stairs:
                for other, smaller in stairs:
                    if other != row and self.covers(name, other, row):
                        assert not self.is_at_most(name, (other, smaller), (row, rank)), (
                            f"I2: {name}{row} of rank {rank} is covered by {other}, {smaller}"
                        )
        supported: set[tuple[str, Row]] = set()
        every = {name: [row for row, _ in stairs] for name, stairs in self.stairs.items()}
        ranks = {(name, row): rank for name, s in self.stairs.items() for row, rank in s}
        for rule in self.stratum.rules:
            name = rule.head.relation
            for head, premises in self.instances(rule, every):
                own = [(each, ranks[each]) for each in premises if each[0] in self.orders]
                for row, rank in self.stairs[name]:
                    if self.covers(name, head, row) and all(
                        self.is_before(each, smaller, (name, row), rank) for each, smaller in own
                    ):
                        supported.add((name, row))
            for head, _ in self.instances(rule, {n: sorted(r) for n, r in self.tops.items()}):
                assert any(self.covers(name, row, head) for row, _ in self.stairs[name]), (
                    f"I3: the head {name}{head} is not covered"
                )
        assert supported == set(ranks), f"I1: {set(ranks) - supported} have no support"
        return len(ranks)

    def covers(self, name: str, one: Row, other: Row) -> bool:
        order = self.orders[name]
        keys = order.keys(len(one))
        if any(one[at] != other[at] for at in keys):
            return False
        tests = []
        for value in order.values:
            left, right = one[value.position], other[value.position]
            if value.is_greater_better:
                left, right = right, left
            tests.append((compare("<", left, right), left == right))
        if not order.is_lexicographic:
            return all(better or equal for better, equal in tests)
        for better, equal in tests:
            if not equal:
                return better
        return True

    def is_before(
        self, premise: tuple[str, Row], rank: int, stair: tuple[str, Row], other: int
    ) -> bool:
        """Whether a premise's rank is smaller than that of a stair."""
        if not self.by_value:
            return rank < other
        left, right = self._value_of(*premise), self._value_of(*stair)
        return self._better(left, right) or (left == right and rank < other)

    def is_at_most(self, name: str, one: Stair, other: Stair) -> bool:
        if not self.by_value:
            return one[1] <= other[1]
        left, right = (self._value_of(name, each[0]) for each in (one, other))
        return self._better(left, right) or (left == right and one[1] <= other[1])

    def _value_of(self, name: str, row: Row) -> Any:
        (value,) = self.orders[name].values
        return row[value.position]

    def _better(self, one: Any, other: Any) -> bool:
        value = next(iter(self.orders.values())).values[0]
        return compare(">" if value.is_greater_better else "<", one, other)

    def instances(
        self, rule: Rule, own: dict[str, list[Row]]
    ) -> Iterator[tuple[Row, tuple[tuple[str, Row], ...]]]:
        """Yield every instance of a rule that holds, with the tuples of its positive literals."""
        relations = {**self.lower, **own}
        positive = [each for each in rule.literals if not each.negated]
        negated = [each for each in rule.literals if each.negated]
        for env, premises in joined(positive, {}, (), relations):
            bound = _decided(rule.conditions, dict(env))
            if bound is None:
                continue
            if any(
                tuple(_value(s, bound) for s in each.slots) in relations[each.relation]
                for each in negated
            ):
                continue
            yield tuple(_value(slot, bound) for slot in rule.head.slots), premises


def _decided(conditions: tuple[Condition, ...], env: dict[str, Any]) -> dict[str, Any] | None:
    waiting = list(conditions)
    while waiting:
        for condition in waiting:
            sides = (condition.left, condition.right)
            known = [_is_known(side, env) for side in sides]
            if all(known):
                left, right = (_value(side, env) for side in sides)
                operator = "=" if condition.operator == "is" else condition.operator
                if left is None or right is None or not compare(operator, left, right):
                    return None
                break
            if any(known) and condition.operator in ("=", "is"):
                unknown = sides[known.index(False)]
                if isinstance(unknown, Variable):
                    env[unknown.name] = _value(sides[known.index(True)], env)
                    break
        else:
            raise AssertionError(f"nothing decides {waiting}")
        waiting.remove(condition)
    return env


def _is_known(term: Any, env: dict[str, Any]) -> bool:
    match term:
        case Variable(name=name):
            return name in env
        case Functor(arguments=arguments):
            return all(_is_known(each, env) for each in arguments)
        case _:
            return True


def _value(term: Any, env: dict[str, Any]) -> Any:
    match term:
        case Variable(name=name):
            return env[name]
        case Constant(value=value):
            return canonical(value)
        case Functor(name=name, arguments=arguments):
            values = [_value(each, env) for each in arguments]
            return canonical(_FUNCTIONS[name](*values))
        case _:
            raise AssertionError(term)


_FUNCTIONS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if isinstance(a, float) else int(a / b),
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "to_float": float,
    "to_unsigned": int,
    "to_number": int,
}
