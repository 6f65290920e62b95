"""Partial evaluation: a view that active rules watch for some constants only is copied for them.

Reference: J. V. Harrison, S. W. Dietrich, "Integrating active and deductive rules" (1993),
section 5.4. `failure("v5") :- +abnormal("v5")`, where `abnormal` is virtual and no rule watches it
for another constant, becomes

    failure("v5")  :- +abnormal.for1().
    abnormal.for1() :- in_use("v5"), violation.for1().
    violation.for1() :- temp("v5", t), max_temp("v5", m), t > m.

so that changes for other vessels are dropped at the base relations. Several constants share one
copy, which keeps the argument and is seeded by a relation of them:

    abnormal.for1(v) :- constants(v), in_use(v), violation.for1(v).

A recursive view can be copied for an argument that is passed on unchanged: the one at the same
place in the head and in every literal of the view itself. Virtual relations that it reads are
copied too.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from corollary.active.constant_relations import constant_relation
from corollary.analysis.relevance import relevant_relations
from corollary.analysis.strata import strata
from corollary.core import logic
from corollary.core.program import ActiveRules, NormalProgram, Relation, marked_name
from corollary.core.states import CHANGES, State
from corollary.rewrite.translation_unit import unused_name

Constants = tuple[logic.Constant, ...]
Member = TypeVar("Member")


def specialise(program: NormalProgram, kept: Collection[str]) -> NormalProgram:
    """Return a program whose active rules watch copies of views for their constants.

    Args:
        program: the program.
        kept: relations whose changes are needed for all constants.
    """
    copier = _Copier(program)
    copies: dict[str, _Copy] = {}
    for name, uses in _watched(program.active).items():
        if name in kept or name in _needed_otherwise(program, name, kept):
            continue
        column = copier.column(name, uses)
        if column is not None:
            constants = tuple(dict.fromkeys(_constant(each.slots[column]) for each in uses))
            copy = copier.copy(name, column, constants)
            copies[name] = _Copy(copy, column, is_dropped=len(constants) == 1)
    if not copies:
        return program
    return copier.program(_read_copies(program.active, copies))


class _Copy(NamedTuple):
    """A copy of a view for constants of a column, which is dropped if there is one constant."""

    name: str
    column: int
    is_dropped: bool


def _constant(slot: logic.Slot) -> logic.Constant:
    assert isinstance(slot, logic.Constant)
    return slot


def _watched(active: ActiveRules) -> dict[str, list[logic.Literal]]:
    """Return the literals that read changes, by the relation whose changes they are."""
    found: dict[str, list[logic.Literal]] = {}
    for rule in active.rules:
        for literal in rule.literals:
            name, state = active.marked.get(literal.relation, ("", State.NEW))
            if state in CHANGES:
                found.setdefault(name, []).append(literal)
    for aggregation in active.aggregations:
        name, state = active.marked.get(aggregation.body, ("", State.NEW))
        if state in CHANGES:
            found.setdefault(name, []).append(logic.Literal(aggregation.body, ()))
    return found


def _needed_otherwise(program: NormalProgram, name: str, kept: Collection[str]) -> set[str]:
    """Return the relations whose changes are needed by others than the watchers of `name`."""
    both = frozenset(CHANGES)
    needed = {
        each: both
        for each, relation in program.relations.items()
        if each in kept or (relation.is_derived and not relation.is_virtual)
    }
    needed |= {each: both for each in _watched(program.active) if each != name}
    return set(relevant_relations(program, needed))


def _read_copies(active: ActiveRules, copies: Mapping[str, _Copy]) -> ActiveRules:
    """Return active rules that read the changes of copies."""
    marked = dict(active.marked)

    def read(literal: logic.Literal) -> logic.Literal:
        name, state = active.marked.get(literal.relation, ("", State.NEW))
        if state not in CHANGES or name not in copies:
            return literal
        copy = copies[name]
        mark = marked_name(copy.name, state)
        marked[mark] = copy.name, state
        slots = _without(literal.slots, copy.column) if copy.is_dropped else literal.slots
        return replace(literal, relation=mark, slots=slots)

    rules = tuple(replace(rule, literals=tuple(map(read, rule.literals))) for rule in active.rules)
    return replace(active, rules=rules, marked=marked)


@dataclass(slots=True)
class _Copier:
    """Makes copies of relations on demand, and a program with them."""

    source: NormalProgram
    _copies: dict[tuple[str, int, Constants], str] = field(default_factory=dict)
    _relations: dict[str, Relation] = field(default_factory=dict)
    _constants: dict[str, tuple[tuple[logic.Value, ...], ...]] = field(default_factory=dict)
    _rules: list[logic.Rule] = field(default_factory=list)
    _rules_of: dict[str, list[logic.Rule]] = field(default_factory=dict)
    _members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _aggregated: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for rule in self.source.rules:
            self._rules_of.setdefault(rule.head.relation, []).append(rule)
        for stratum in strata(self.source):
            self._members |= dict.fromkeys(stratum.relations, stratum.relations)
        self._aggregated = {each.relation for each in self.source.aggregations}

    def program(self, active: ActiveRules) -> NormalProgram:
        """Return the program with the copies."""
        source = self.source
        return replace(
            source,
            relations={**source.relations, **self._relations},
            rules=(*source.rules, *self._rules),
            constants={**source.constants, **self._constants},
            active=active,
        )

    def column(self, name: str, uses: list[logic.Literal]) -> int | None:
        """Return the argument for whose constants a relation can be copied, if there is one."""
        arity = len(uses[0].slots)
        for at in range(arity):
            is_constant = all(
                len(each.slots) == arity and isinstance(each.slots[at], logic.Constant)
                for each in uses
            )
            if is_constant and self._can_copy(name, at):
                return at
        return None

    def _can_copy(self, name: str, column: int) -> bool:
        """Whether a relation is virtual and passes an argument on unchanged."""
        relation = self.source.relations.get(name)
        if relation is None or not (relation.is_derived and relation.is_virtual):
            return False
        if name in self._aggregated or self._members[name] != (name,):
            return False
        for rule in self._rules_of.get(name, ()):
            slot = rule.head.slots[column]
            own = [each for each in rule.literals if each.relation == name]
            if any(each.slots[column] != slot for each in own):
                return False
            if isinstance(slot, logic.Variable) and not _is_bound(slot, rule):
                return False
        return True

    def copy(self, name: str, column: int, constants: Constants) -> str:
        """Return the copy of a relation for some constants of an argument."""
        key = name, column, constants
        if key in self._copies:
            return self._copies[key]
        taken = {*self.source.relations, *self._relations}
        copy = self._copies[key] = unused_name(f"{name}.for1", taken)
        relation = self.source.relations[name]
        is_dropped = len(constants) == 1
        self._relations[copy] = replace(
            relation,
            name=copy,
            columns=_without(relation.columns, column) if is_dropped else relation.columns,
            types=_without(relation.types, column) if is_dropped else relation.types,
            is_declared=False,
        )
        for rule in self._rules_of.get(name, ()):
            self._rules += (
                self._for_one(rule, copy, column, constants[0])
                if is_dropped
                else self._for_several(rule, copy, column, constants)
            )
        return copy

    def _for_one(
        self, rule: logic.Rule, copy: str, column: int, constant: logic.Constant
    ) -> Iterator[logic.Rule]:
        """Yield the rule with the constant substituted; nothing if its head has another one."""
        slot = rule.head.slots[column]
        if isinstance(slot, logic.Constant) and slot != constant:
            return
        bound = _substitute(rule, slot, constant) if isinstance(slot, logic.Variable) else rule
        name = rule.head.relation
        literals = [
            replace(each, relation=copy, slots=_without(each.slots, column))
            if each.relation == name
            else self._read_copy(each, constant, (constant,))
            for each in bound.literals
        ]
        head = logic.Literal(copy, _without(bound.head.slots, column))
        yield replace(
            bound, head=head, literals=tuple(literals), origin=rule.origin.with_pass("specialise")
        )

    def _for_several(
        self, rule: logic.Rule, copy: str, column: int, constants: Constants
    ) -> Iterator[logic.Rule]:
        """Yield the rule joined with the seeds, unless its own literals of the copy are."""
        slot = rule.head.slots[column]
        if isinstance(slot, logic.Constant) and slot not in constants:
            return
        name = rule.head.relation
        literals = [
            replace(each, relation=copy)
            if each.relation == name
            else self._read_copy(each, slot, constants)
            for each in rule.literals
        ]
        is_exit = all(each.relation != name for each in rule.literals)
        if is_exit and isinstance(slot, logic.Variable):
            literals.append(logic.Literal(self._seeds(constants), (slot,)))
        head = replace(rule.head, relation=copy)
        yield replace(
            rule, head=head, literals=tuple(literals), origin=rule.origin.with_pass("specialise")
        )

    def _read_copy(
        self, literal: logic.Literal, slot: logic.Slot, constants: Constants
    ) -> logic.Literal:
        """Return a literal that reads a copy of its relation, if that can be copied."""
        for at, each in enumerate(literal.slots):
            if each == slot and self._can_copy(literal.relation, at):
                copy = self.copy(literal.relation, at, constants)
                slots = _without(literal.slots, at) if len(constants) == 1 else literal.slots
                return replace(literal, relation=copy, slots=slots)
        return literal

    def _seeds(self, constants: Constants) -> str:
        relation, rows = constant_relation([(each,) for each in constants])
        self._relations[relation.name] = relation
        self._constants[relation.name] = rows
        return relation.name


def _is_bound(variable: logic.Variable, rule: logic.Rule) -> bool:
    """Whether a variable is in a positive literal."""
    return any(variable in each.slots for each in rule.literals if not each.negated)


def _without(items: tuple[Member, ...], at: int) -> tuple[Member, ...]:
    return items[:at] + items[at + 1 :]


def _substitute(rule: logic.Rule, variable: logic.Variable, constant: logic.Constant) -> logic.Rule:
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
