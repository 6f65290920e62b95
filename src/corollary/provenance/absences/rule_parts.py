"""The parts of a rule's body, and what is left of the body when some of them fail.

A part is a literal or a condition; parts are numbered, literals first. When some fail, the others
fall into components: parts that share a variable which the head does not bind. Components do not
restrict each other, so each is evaluated alone, and instances of the rest are their combinations.

A variable that only a kept negation or condition has ranges over the *known values* of its type.
One that no kept part has is free: it has no value.

Example: `h(x) :- a(x, y), b(y, z), c(z), z > 3`, b(y, z) fails: a(x, y) is one component, and
c(z), z > 3 another. If c(z) fails too, z is tested by z > 3 only, and ranges over known numbers.

The known values of a type: those in stored relations, in rules, and in what was asked.

A variable that nothing binds, but a negation or a condition tests, ranges over them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from corollary.analysis.traverse import bound_by_equations, equations
from corollary.core import logic
from corollary.core.pipeline import Filter, Pipeline, Probe, Reference
from corollary.core.plans import MAIN, Derive, Plan, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import Domain, Type
from corollary.data_class import dataclass
from corollary.maintain.draft import Draft
from corollary.maintain.sip import Goal
from corollary.provenance.limits import Allowance
from corollary.provenance.query_state import QueryState
from corollary.provenance.rule_query import RuleQuery

TypedValue = tuple[logic.Value, Type]
"""A value and its type."""


def known_relation(type_: Type) -> str:
    """Return the working relation that holds the known values of a type."""
    return working_relation(f"{type_.logical_kind}{type_.scale or ''}", "known")


def known_draft(state: QueryState, ranging: Iterable[logic.Variable]) -> Draft:
    """Return the draft of a plan in which variables range over known values."""
    draft = state.draft()
    for variable in ranging:
        type_ = logic.type_of(variable).with_null(False)
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
    constants: dict[Domain, dict[str, logic.Value]] = {domain: {} for domain in wanted}
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
    variable = logic.Variable("value", types[column])
    slots: list[logic.Slot] = [logic.Wildcard() for _ in types]
    slots[column] = variable
    probe = Probe(source, tuple(slots), ())
    if not types[column].nullable:
        return Pipeline((probe,), (variable,), logic.NO_RULE)
    return Pipeline(
        (probe, Filter(logic.Condition("=", variable, variable))), (variable,), logic.NO_RULE
    )


def _constant_relation(type_: Type) -> str:
    return working_relation(f"{type_.logical_kind}{type_.scale or ''}", "constants")


def _constants(program: NormalProgram) -> Iterator[TypedValue]:
    """Yield the constants of rules."""
    for rule in program.rules:
        for constant in _constants_of(rule):
            if constant.type is not None:
                yield constant.value, constant.type


def _constants_of(rule: logic.Rule) -> Iterator[logic.Constant]:
    literals: Sequence[logic.Literal] = (rule.head, *rule.literals)
    terms = [slot for literal in literals for slot in literal.slots]
    yield from (slot for slot in terms if isinstance(slot, logic.Constant))
    for condition in rule.conditions:
        for side in (condition.left, condition.right):
            yield from (part for part in logic.subterms(side) if isinstance(part, logic.Constant))


# --- parts of rules ------------------------------------------------------------------------------


Part = logic.Literal | logic.Condition


@dataclass(frozen=True, slots=True)
class Component:
    """Parts of a body that are evaluated together.

    Attributes:
        parts: their numbers.
        variables: those that the head does not bind, in the order of the body.
        ranging: those of them that range over known values.
    """

    parts: tuple[int, ...]
    variables: tuple[logic.Variable, ...]
    ranging: tuple[logic.Variable, ...] = ()


class RuleParts:
    """The parts of one rule.

    Attributes:
        parts: literals, then conditions.
        head_names: the variables of the head.
        free: the numbers of the parts that have variables which the head does not bind.
        decided: the numbers of all others: whether they hold depends on the head alone.
    """

    def __init__(self, rule: logic.Rule) -> None:
        self.rule = rule
        self.parts: tuple[Part, ...] = (*rule.literals, *rule.conditions)
        self.head_names = logic.variable_names(rule.head)
        self._names = [logic.variable_names(part) - self.head_names for part in self.parts]
        self.free = tuple(at for at, names in enumerate(self._names) if names)
        self.decided = tuple(at for at, names in enumerate(self._names) if not names)
        self._variables = {each.name: each for part in self.parts for each in _variables(part)}

    def components(self, kept: Iterable[int]) -> list[Component]:
        """Return the components of kept parts that have variables which the head does not bind."""
        found: list[tuple[set[str], list[int]]] = []
        for at in sorted(kept):
            names, numbers = set(self._names[at]), [at]
            if not names:
                continue
            apart = []
            for component in found:
                if component[0].isdisjoint(names):
                    apart.append(component)
                else:
                    names |= component[0]
                    numbers += component[1]
            found = [*apart, (names, numbers)]
        ordered = sorted((tuple(sorted(numbers)), names) for names, numbers in found)
        return [self._component(numbers, names) for numbers, names in ordered]

    def whole(self, kept: Iterable[int]) -> Component:
        """Return kept parts as one component in which every variable of the body has a value."""
        numbers = tuple(sorted(kept))
        variables = tuple(
            each for name, each in self._variables.items() if name not in self.head_names
        )
        return Component(numbers, variables, tuple(self._ranging(numbers, variables)))

    def query(
        self, state: QueryState, component: Component, missing: Sequence[logic.Literal] = ()
    ) -> RuleQuery:
        """Return the query for the instances of a component.

        Args:
            state: in which is asked.
            component: the parts to evaluate.
            missing: positive literals that must not hold.
        """
        kept = [self.parts[at] for at in component.parts]
        literals = [each for each in kept if isinstance(each, logic.Literal)]
        literals += [replace(each, negated=True) for each in missing]
        ranging = [
            logic.Literal(known_relation(logic.type_of(each)), (each,))
            for each in component.ranging
        ]
        return RuleQuery(
            self.rule.head.slots,
            (
                *(Goal(each, Reference(each.relation)) for each in ranging),
                *map(state.goal, literals),
            ),
            component.variables,
            tuple(each for each in kept if isinstance(each, logic.Condition)),
            self.rule.origin,
        )

    def _component(self, numbers: tuple[int, ...], names: set[str]) -> Component:
        variables = tuple(each for name, each in self._variables.items() if name in names)
        return Component(numbers, variables, tuple(self._ranging(numbers, variables)))

    def _ranging(
        self, numbers: Sequence[int], variables: Sequence[logic.Variable]
    ) -> Iterator[logic.Variable]:
        """Yield the variables that nothing binds, unless they range over known values."""
        parts = [self.parts[at] for at in numbers]
        conditions = [each for each in parts if isinstance(each, logic.Condition)]
        bound = set(self.head_names)
        for part in parts:
            if isinstance(part, logic.Literal) and not part.negated:
                bound |= logic.variable_names(part)
        while True:
            bound = bound_by_equations(bound, conditions)
            left = [each for each in variables if each.name not in bound]
            if not left:
                return
            # A variable that an equation may give its value comes last.
            given = {
                one.name for one, _ in equations(conditions) if isinstance(one, logic.Variable)
            }
            chosen = next((each for each in left if each.name not in given), left[0])
            yield chosen
            bound.add(chosen.name)


def _variables(part: Part) -> Iterator[logic.Variable]:
    if isinstance(part, logic.Literal):
        yield from (slot for slot in part.slots if isinstance(slot, logic.Variable))
    else:
        yield from logic.variables_of(part.left)
        yield from logic.variables_of(part.right)
