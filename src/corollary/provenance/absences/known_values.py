"""The known values of a type: those in stored relations, in rules, and in what was asked.

A variable that nothing binds, but a negation or a condition tests, ranges over them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from corollary.core.logic import (
    NO_RULE,
    Condition,
    Constant,
    Literal,
    Rule,
    Slot,
    Value,
    Variable,
    Wildcard,
    subterms,
)
from corollary.core.pipeline import Filter, Pipeline, Probe, Reference
from corollary.core.plans import MAIN, Derive, Plan, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import Domain, Type
from corollary.maintain.draft import Draft
from corollary.provenance.limits import Allowance
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import type_of

TypedValue = tuple[Value, Type]
"""A value and its type."""


def known_relation(type_: Type) -> str:
    """Return the working relation that holds the known values of a type."""
    return working_relation(f"{type_.kind}{type_.scale or ''}", "known")


def known_draft(state: QueryState, ranging: Iterable[Variable]) -> Draft:
    """Return the draft of a plan in which variables range over known values."""
    draft = state.draft()
    for variable in ranging:
        type_ = type_of(variable).with_null(False)
        draft.types[known_relation(type_)] = (type_,)
    return draft


@contextmanager
def known_values(
    asked: QueryState, types: Iterable[Type], given: Iterable[TypedValue], allowance: Allowance
) -> Iterator[None]:
    """Let the engine have the known values of some types, until the end.

    Args:
        asked: the state whose values are meant.
        types: the types.
        given: values that are known beside those of the state and its rules.
        allowance: what is left of the limits.
    """
    wanted: dict[Domain, Type] = {each.domain: each.with_null(False) for each in types}
    if not wanted:
        yield
        return
    constants: dict[Domain, dict[str, Value]] = {domain: {} for domain in wanted}
    for value, type_ in (*given, *_constants(asked.program)):
        if type_.domain in constants and value is not None:
            constants[type_.domain][repr(value)] = value
    engine = asked.engine
    made: dict[str, Relation] = {}
    for type_ in wanted.values():
        for name in (known_relation(type_), _constant_relation(type_)):
            made[name] = Relation(name, ("value",), (type_,), is_derived=False, is_declared=False)
    engine.declare(made)
    try:
        for domain, values in constants.items():
            rows = [(value,) for value in values.values()]
            engine.insert(_constant_relation(wanted[domain]), rows)
        plan = plan_known_values(asked, tuple(wanted.values()))
        allowance.run(engine, plan, asked.limits)
        yield
    finally:
        engine.drop(made)


def plan_known_values(asked: QueryState, types: Sequence[Type]) -> Plan:
    """Return the plan that collects the values of some types from all stored relations."""
    program = asked.program
    by_name = {name: each.types for name, each in program.relations.items()}
    steps = []
    for type_ in types:
        target, constants = known_relation(type_), _constant_relation(type_)
        by_name |= dict.fromkeys((target, constants), (type_,))
        sources: list[tuple[Reference, int, Sequence[Type]]] = [(Reference(constants), 0, (type_,))]
        for name, relation in program.relations.items():
            if relation.is_stored:
                sources += [
                    (Reference(name, asked.data), at, relation.types)
                    for at, each in enumerate(relation.types)
                    if each.domain == type_.domain
                ]
        steps.append(Derive(target, tuple(_column(*source) for source in sources)))
    return Plan({MAIN: tuple(steps)}, by_name)


def _column(source: Reference, column: int, types: Sequence[Type]) -> Pipeline:
    """Return the pipeline that reads the values of a column, without null."""
    variable = Variable("value", types[column])
    slots: list[Slot] = [Wildcard() for _ in types]
    slots[column] = variable
    probe = Probe(source, tuple(slots), ())
    if not types[column].nullable:
        return Pipeline((probe,), (variable,), NO_RULE)
    return Pipeline((probe, Filter(Condition("=", variable, variable))), (variable,), NO_RULE)


def _constant_relation(type_: Type) -> str:
    return working_relation(f"{type_.kind}{type_.scale or ''}", "constants")


def _constants(program: NormalProgram) -> Iterator[TypedValue]:
    """Yield the constants of rules."""
    for rule in program.rules:
        for constant in _constants_of(rule):
            if constant.type is not None:
                yield constant.value, constant.type


def _constants_of(rule: Rule) -> Iterator[Constant]:
    literals: Sequence[Literal] = (rule.head, *rule.literals)
    terms = [slot for literal in literals for slot in literal.slots]
    yield from (slot for slot in terms if isinstance(slot, Constant))
    for condition in rule.conditions:
        for side in (condition.left, condition.right):
            yield from (part for part in subterms(side) if isinstance(part, Constant))
