"""Multi-query optimisation: event rules that differ in constants only are evaluated as one.

`lost_a(y) :- -link("a", y)` and `lost_b(y) :- -link("b", y)`, and a thousand more, become

    alike 1(event, y) :- -link(c, y), constants(event, c).

with a tuple ("lost_a", "a") of the constants for each. So a transaction costs what it changes, not
what is watched. An event predicate takes part if it has one rule and no other rule reads it.
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.active.constant_relations import constant_relation
from corollary.core import logic
from corollary.core.program import ActiveRules, NormalProgram, Relation
from corollary.core.types import SYMBOL

MERGE_MIN_RULES = 2
"""The minimum number of rules to merge."""

EVENT = SYMBOL


def merge_alike(program: NormalProgram) -> NormalProgram:
    """Return a program in which event rules that differ in constants only are merged."""
    active = program.active
    groups: dict[object, list[tuple[logic.Rule, tuple[logic.Constant, ...]]]] = {}
    for rule in _mergeable(active):
        constants: list[logic.Constant] = []
        shape = _shape(rule, active.relations[rule.head.relation], constants)
        if constants:
            groups.setdefault(shape, []).append((rule, tuple(constants)))
    relations, rules = dict(active.relations), list(active.rules)
    known, tuples = dict(program.relations), dict(program.constants)
    merged = dict(active.merged)
    for number, members in enumerate(groups.values(), 1):
        if len(members) < MERGE_MIN_RULES:
            continue
        name = f"alike {number}"
        first = members[0][0]
        rows = [
            (logic.Constant(rule.head.relation, EVENT), *constants) for rule, constants in members
        ]
        relation, values = constant_relation(rows)
        known[relation.name], tuples[relation.name] = relation, values
        replaced = {id(rule) for rule, _ in members}
        rules = [rule for rule in rules if id(rule) not in replaced]
        rules.append(_merge(first, name, relation))
        head = relations[first.head.relation]
        relations[name] = replace(
            head,
            name=name,
            columns=("event", *head.columns),
            types=(EVENT, *head.types),
            is_declared=False,
        )
        merged |= {rule.head.relation: name for rule, _ in members}
    if len(merged) == len(active.merged):
        return program
    return replace(
        program,
        relations=known,
        constants=tuples,
        active=replace(active, relations=relations, rules=tuple(rules), merged=merged),
    )


def _mergeable(active: ActiveRules) -> Iterator[logic.Rule]:
    """Yield the rules of event predicates with one rule that no other rule reads."""
    read = {each.relation for rule in active.rules for each in rule.literals}
    read |= {each.body for each in active.aggregations} | set(active.triggers)
    count: dict[str, int] = {}
    for rule in active.rules:
        count[rule.head.relation] = count.get(rule.head.relation, 0) + 1
    for rule in active.rules:
        name = rule.head.relation
        if count[name] == 1 and name not in read and active.relations[name].is_declared:
            yield rule


def _shape(rule: logic.Rule, head: Relation, constants: list[logic.Constant]) -> object:
    """Return a rule without its constants, variables numbered; append the constants to a list.

    Null stays in the shape: a null matches null, the variable of a join does not.
    """
    numbers: dict[str, int] = {}

    def term(each: logic.Slot | logic.Expression) -> object:
        match each:
            case logic.Variable(name=name):
                return numbers.setdefault(name, len(numbers))
            case logic.Constant(value=None):
                return ("null", str(each.type))
            case logic.Constant(type=type_):
                constants.append(each)
                return ("constant", str(type_))
            case logic.Functor(name=name, arguments=arguments, type=type_):
                return (name, str(type_), *(term(one) for one in arguments))  # type: ignore[arg-type]
            case _:
                return "_"

    return (
        tuple(map(str, head.types)),
        tuple(
            (each.relation, each.negated, *(term(slot) for slot in each.slots))
            for each in rule.literals
        ),
        tuple((each.operator, term(each.left), term(each.right)) for each in rule.conditions),
        tuple(term(slot) for slot in rule.head.slots),
        rule.is_lenient,
    )


def _merge(rule: logic.Rule, name: str, constants: Relation) -> logic.Rule:
    """Return the merged rule: a join with the constants in place of the constants of one rule."""
    event = logic.Variable("event•", EVENT)
    variables: list[logic.Variable] = []

    # Must visit the constants in the same order as `_shape`.
    def variable() -> logic.Variable:
        at = len(variables)
        variables.append(logic.Variable(f"constant•{at}", constants.types[at + 1]))
        return variables[-1]

    def slot(each: logic.Slot) -> logic.Slot:
        return variable() if isinstance(each, logic.Constant) and each.value is not None else each

    def expression(each: logic.Expression) -> logic.Expression:
        if isinstance(each, logic.Constant) and each.value is not None:
            return variable()
        if isinstance(each, logic.Functor):
            return replace(each, arguments=tuple(map(expression, each.arguments)))  # type: ignore[arg-type]
        return each

    literals = [replace(each, slots=tuple(map(slot, each.slots))) for each in rule.literals]
    conditions = tuple(
        logic.Condition(each.operator, expression(each.left), expression(each.right))
        for each in rule.conditions
    )
    head = logic.Literal(name, (event, *map(slot, rule.head.slots)))
    literals.append(logic.Literal(constants.name, (event, *variables)))
    return replace(
        rule,
        head=head,
        literals=tuple(literals),
        conditions=conditions,
        origin=rule.origin.with_pass("merge_alike"),
    )
