"""Copies of virtual relations for some constants of one argument (see `specialise`).

| the relation | its copy for one constant | for several |
|---|---|---|
| hands the argument on | has the constant in its rules | is joined with the constants |
| ends in a call of itself | reads what is reached from it | the same, for each |
| is recursive in another way | has the calls that are made, by `magic_sets` | the same, for all |

An argument is *handed on* if it is at the same place in the head and in every literal of the
relation itself: `link(x, z) :- link(x, y), edge(y, z)` for x. A recursion *ends in a call of
itself* if the other arguments are handed on, and nothing else is asked of them (`tail_calls`):
`link(x, z) :- edge(x, y), link(y, z)`, again for x. By magic sets, the copy for "a" is

    link.reached1(x) :- constants(x).
    link.reached1(y) :- link.reached1(x), edge(x, y).
    link.for1(z) :- link.reached1(x), edge(x, z).
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TypeVar

from corollary.active.constant_relations import constant_relation
from corollary.active.magic_sets import AdornedStratum, adorn, magic_rules
from corollary.analysis.strata import Stratum, strata
from corollary.core import logic
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.maintain.tail_calls import is_tail_recursive, own_position
from corollary.rewrite.translation_unit import unused_name

Constants = tuple[logic.Constant, ...]
Member = TypeVar("Member")

_rewritten = partial(logic.rewrite_rule, by="specialise")


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a relation for constants of a column, which is dropped if it has one value."""

    name: str
    column: int
    is_dropped: bool

    def read(self, literal: logic.Literal, name: str) -> logic.Literal:
        """Return a literal that reads the copy, under some name."""
        slots = without(literal.slots, self.column) if self.is_dropped else literal.slots
        return replace(literal, relation=name, slots=slots)


@dataclass(slots=True)
class Copier:
    """Makes copies of the relations of a program.

    Attributes:
        final: columns of copies that have all their constants, and are not copied again.
        relations, rules, constants: those of the copies.
    """

    source: NormalProgram
    final: set[tuple[str, int]] = field(default_factory=set)
    relations: dict[str, Relation] = field(default_factory=dict)
    rules: list[logic.Rule] = field(default_factory=list)
    constants: dict[str, tuple[tuple[logic.Value, ...], ...]] = field(default_factory=dict)
    _copies: dict[tuple[str, int, Constants], Copy] = field(default_factory=dict)
    _strata: dict[str, Stratum] = field(default_factory=dict)
    _can_copy: dict[tuple[str, int], bool] = field(default_factory=dict)
    _adorned: dict[tuple[str, int], AdornedStratum | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stratum in strata(self.source):
            self._strata |= dict.fromkeys(stratum.relations, stratum)

    def are_recursive(self, name: str, other: str) -> bool:
        """Whether two relations are the same, or recursive through each other."""
        return name == other or (
            name in self._strata and self._strata[name] is self._strata.get(other)
        )

    def can_copy(self, name: str, column: int) -> bool:
        """Whether a relation is virtual and can be copied for constants of a column."""
        key = name, column
        if key not in self._can_copy:
            self._can_copy[key] = (
                name in self._strata
                and all(self._is_virtual(each) for each in self._strata[name].relations)
                and key not in self.final
                and (self.can_copy_alone(name, column) or self._calls(name, column) is not None)
            )
        return self._can_copy[key]

    def can_copy_alone(self, name: str, column: int) -> bool:
        """Whether a copy for constants of a column needs no relation of the calls that it makes."""
        stratum = self._strata[name]
        is_alone = len(stratum.relations) == 1 and not stratum.aggregations
        return is_alone and (self._hands_on(name, column) or self._is_tail_recursive(name, column))

    def _is_virtual(self, name: str) -> bool:
        relation = self.source.relations[name]
        return relation.is_derived and relation.is_virtual

    def _rules_of(self, name: str) -> list[logic.Rule]:
        return self._strata[name].rules_by_head.get(name, [])

    def _calls(self, name: str, column: int) -> AdornedStratum | None:
        """Return what is reached by calls with one column bound, if that is not all."""
        key = name, column
        if key not in self._adorned:
            self._adorned[key] = adorn(self._strata[name], name, column)
        return self._adorned[key]

    def _hands_on(self, name: str, column: int) -> bool:
        for rule in self._rules_of(name):
            slot = rule.head.slots[column]
            own = [each for each in rule.literals if each.relation == name]
            if any(each.slots[column] != slot for each in own):
                return False
            if isinstance(slot, logic.Variable) and not _is_bound(slot, rule):
                return False
        return True

    def _is_tail_recursive(self, name: str, column: int) -> bool:
        return is_tail_recursive(self._rules_of(name), name, (column,))

    def copy(self, name: str, column: int, constants: Constants) -> Copy:
        """Return the copy of a relation for some constants of an argument."""
        key = name, column, constants
        if key in self._copies:
            return self._copies[key]
        if not self.can_copy_alone(name, column):
            copy = self._copies[key] = self._with_calls(name, column, constants)
            return copy
        is_dropped = len(constants) == 1
        made = self._declare(name, f"{name}.for1", column if is_dropped else None)
        copy = self._copies[key] = Copy(made, column, is_dropped)
        if not is_dropped:
            self.final.add((made, column))
        if not self._hands_on(name, column):
            self.rules += self._reaching(name, copy, constants)
            return copy
        for rule in self._rules_of(name):
            self.rules += (
                self._for_one(rule, copy, constants[0])
                if is_dropped
                else self._for_several(rule, copy, constants)
            )
        return copy

    def _declare(self, name: str, wanted: str, dropped: int | None) -> str:
        """Declare a relation like another one, perhaps without a column."""
        made = unused_name(wanted, self.source.relations, self.relations)
        relation = self.source.relations[name]
        columns, types = relation.columns, relation.types
        if dropped is not None:
            columns, types = without(columns, dropped), without(types, dropped)
        self.relations[made] = replace(
            relation, name=made, columns=columns, types=types, is_declared=False
        )
        return made

    def _declare_calls(self, wanted: str, types: Sequence[Type]) -> str:
        """Declare a relation of bound arguments."""
        made = unused_name(wanted, self.source.relations, self.relations)
        self.relations[made] = Relation(
            made,
            tuple(f"c{at}" for at in range(len(types))),
            tuple(types),
            is_derived=True,
            is_virtual=True,
            is_declared=False,
        )
        return made

    # --- arguments that are handed on ----------------------------------------------------------

    def _for_one(
        self, rule: logic.Rule, copy: Copy, constant: logic.Constant
    ) -> Iterator[logic.Rule]:
        """Yield the rule with the constant substituted; nothing if its head has another one."""
        name, slot = rule.head.relation, rule.head.slots[copy.column]
        if isinstance(slot, logic.Constant) and slot != constant:
            return
        bound = substitute(rule, slot, constant) if isinstance(slot, logic.Variable) else rule
        literals = (
            copy.read(each, copy.name) if each.relation == name else each for each in bound.literals
        )
        yield _rewritten(rule, copy.read(bound.head, copy.name), literals, bound.conditions)

    def _for_several(
        self, rule: logic.Rule, copy: Copy, constants: Constants
    ) -> Iterator[logic.Rule]:
        """Yield the rule joined with the constants, unless its own literals of the copy are."""
        name, slot = rule.head.relation, rule.head.slots[copy.column]
        if isinstance(slot, logic.Constant) and slot not in constants:
            return
        literals = [
            copy.read(each, copy.name)
            if each.relation == name
            else self._read_copy(each, slot, constants)
            for each in rule.literals
        ]
        is_exit = all(each.relation != name for each in rule.literals)
        if is_exit and isinstance(slot, logic.Variable):
            literals.append(logic.Literal(self._seeds(constants), (slot,)))
        yield _rewritten(rule, copy.read(rule.head, copy.name), literals, rule.conditions)

    def _read_copy(
        self, literal: logic.Literal, slot: logic.Slot, constants: Constants
    ) -> logic.Literal:
        """Return a literal that reads a copy of its relation, if that can be copied."""
        for at, each in enumerate(literal.slots):
            if each == slot and self.can_copy(literal.relation, at):
                copy = self.copy(literal.relation, at, constants)
                return copy.read(literal, copy.name)
        return literal

    # --- recursions that end in a call of themselves -------------------------------------------

    def _reaching(self, name: str, copy: Copy, constants: Constants) -> Iterator[logic.Rule]:
        """Yield the rules of what is reached from the constants, and of the copy that reads it."""
        relation = self.source.relations[name]
        type_ = relation.types[copy.column]
        seed = logic.Variable("seed'", type_.with_null(False))
        seeds = () if copy.is_dropped else (seed,)
        reached = self._declare_calls(
            f"{name}.reached1", [*(each.type for each in seeds if each.type is not None), type_]
        )
        rules = self._rules_of(name)
        given = (logic.Literal(self._seeds(constants), (seed,)),)
        yield _rewritten(rules[0], logic.Literal(reached, (*seeds, seed)), given, ())
        for rule in rules:
            at = own_position(rule, name)
            others = [each for place, each in enumerate(rule.literals) if place != at]
            slot = rule.head.slots[copy.column]
            body = (logic.Literal(reached, (*seeds, slot)), *others)
            if at is None:
                free = without(rule.head.slots, copy.column)
                slots = free if copy.is_dropped else _with(free, copy.column, seed)
                head = logic.Literal(copy.name, slots)
            else:
                passed = rule.literals[at].slots[copy.column]
                head = logic.Literal(reached, (*seeds, passed))
            yield _rewritten(rule, head, body, rule.conditions)

    # --- other recursions ----------------------------------------------------------------------

    def _with_calls(self, name: str, column: int, constants: Constants) -> Copy:
        """Return the copy of a relation for the calls that answering some constants makes."""
        calls = self._calls(name, column)
        assert calls is not None
        copies, magic = dict[str, str](), dict[str, str]()
        for each, bound in calls.bound.items():
            types = self.source.relations[each].types
            copies[each] = self._declare(each, f"{each}.for1", None)
            magic[each] = self._declare_calls(f"{each}.magic1", [types[at] for at in bound])
            for made in (copies[each], magic[each]):
                self.final |= {(made, at) for at in range(len(self.relations[made].types))}
        seed = logic.Variable("seed'", self.source.relations[name].types[column].with_null(False))
        given = logic.Literal(self._seeds(constants), (seed,))
        origin = self._rules_of(name)[0].origin.with_pass("magic_sets")
        self.rules.append(logic.Rule(logic.Literal(magic[name], (seed,)), (given,), (), origin))
        self.rules += magic_rules(calls, copies, magic)
        return Copy(copies[name], column, is_dropped=False)

    def _seeds(self, constants: Constants) -> str:
        relation, rows = constant_relation([(each,) for each in constants])
        self.relations[relation.name] = relation
        self.constants[relation.name] = rows
        return relation.name


def _is_bound(variable: logic.Variable, rule: logic.Rule) -> bool:
    """Whether a variable is in a positive literal."""
    return any(variable in each.slots for each in rule.literals if not each.negated)


def without(items: tuple[Member, ...], at: int) -> tuple[Member, ...]:
    """Return a tuple without one member."""
    return items[:at] + items[at + 1 :]


def _with(items: tuple[Member, ...], at: int, item: Member) -> tuple[Member, ...]:
    return (*items[:at], item, *items[at:])


def substitute(rule: logic.Rule, variable: logic.Variable, constant: logic.Constant) -> logic.Rule:
    """Return a rule with a constant in place of a variable."""

    def literal(each: logic.Literal) -> logic.Literal:
        return replace(
            each, slots=tuple(constant if slot == variable else slot for slot in each.slots)
        )

    def expression(each: logic.Expression) -> logic.Expression:
        if each == variable:
            return constant
        if isinstance(each, logic.Functor):
            return replace(each, arguments=tuple(map(expression, each.arguments)))  # type: ignore[arg-type]
        return each

    def condition(each: logic.Condition) -> logic.Condition:
        return replace(each, left=expression(each.left), right=expression(each.right))

    return replace(
        rule,
        head=literal(rule.head),
        literals=tuple(map(literal, rule.literals)),
        conditions=tuple(map(condition, rule.conditions)),
    )
