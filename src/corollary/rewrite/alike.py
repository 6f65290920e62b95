"""Event rules that differ in constants only are evaluated as one.

`lost_a(y) :- -link("a", y)` and `lost_b(y) :- -link("b", y)`, and a thousand more, become

    alike 1(event, y) :- -link(c, y), constants(event, c).

with a tuple ("lost_a", "a") of the constants for each. So a transaction costs what it changes, not
what is watched. An event predicate takes part if it has one rule and no other rule reads it.
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.core.program import Active, NormalProgram, Relation
from corollary.core.rules import Condition, Literal, Rule
from corollary.core.terms import Constant, Expression, Functor, Slot, Variable
from corollary.core.types import Kind, Type
from corollary.rewrite.constants import holding

FEWEST = 2
"""Fewer rules are left as they are."""

EVENT = Type(Kind.SYMBOL)


def alike(program: NormalProgram) -> NormalProgram:
    """Return a program in which event rules that differ in constants only are one."""
    active = program.active
    groups: dict[object, list[tuple[Rule, tuple[Constant, ...]]]] = {}
    for rule in _alone(active):
        constants: list[Constant] = []
        shape = _shape(rule, active.relations[rule.head.relation], constants)
        if constants:
            groups.setdefault(shape, []).append((rule, tuple(constants)))
    relations, rules = dict(active.relations), list(active.rules)
    known, held = dict(program.relations), dict(program.constants)
    merged = dict(active.merged)
    for number, members in enumerate(groups.values(), 1):
        if len(members) < FEWEST:
            continue
        name = f"alike {number}"
        first = members[0][0]
        rows = [(Constant(rule.head.relation, EVENT), *constants) for rule, constants in members]
        relation, tuples = holding(rows)
        known[relation.name], held[relation.name] = relation, tuples
        gone = {id(rule) for rule, _ in members}
        rules = [rule for rule in rules if id(rule) not in gone]
        rules.append(_merged(first, name, relation))
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
        constants=held,
        active=replace(active, relations=relations, rules=tuple(rules), merged=merged),
    )


def _alone(active: Active) -> Iterator[Rule]:
    """Yield the rules of event predicates that have no other rule, and that no rule reads."""
    read = {each.relation for rule in active.rules for each in rule.literals}
    read |= {each.body for each in active.aggregations} | set(active.triggers)
    count: dict[str, int] = {}
    for rule in active.rules:
        count[rule.head.relation] = count.get(rule.head.relation, 0) + 1
    for rule in active.rules:
        name = rule.head.relation
        if count[name] == 1 and name not in read and active.relations[name].is_declared:
            yield rule


def _shape(rule: Rule, head: Relation, constants: list[Constant]) -> object:
    """Return what a rule says without its constants, which are put aside in order."""
    numbers: dict[str, int] = {}

    def term(each: Slot | Expression) -> object:
        match each:
            case Variable(name=name):
                return numbers.setdefault(name, len(numbers))
            case Constant(value=None):
                return ("null", str(each.type))
            case Constant(type=type_):
                constants.append(each)
                return ("constant", str(type_))
            case Functor(name=name, arguments=arguments, type=type_):
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


def _merged(rule: Rule, name: str, constants: Relation) -> Rule:
    """Return the rule of all that are alike: constants are looked up."""
    event = Variable("event•", EVENT)
    places: list[Variable] = []

    def place() -> Variable:
        at = len(places)
        places.append(Variable(f"constant•{at}", constants.types[at + 1]))
        return places[-1]

    def slot(each: Slot) -> Slot:
        return place() if isinstance(each, Constant) and each.value is not None else each

    def expression(each: Expression) -> Expression:
        if isinstance(each, Constant) and each.value is not None:
            return place()
        if isinstance(each, Functor):
            return replace(each, arguments=tuple(map(expression, each.arguments)))  # type: ignore[arg-type]
        return each

    literals = [replace(each, slots=tuple(map(slot, each.slots))) for each in rule.literals]
    conditions = tuple(
        Condition(each.operator, expression(each.left), expression(each.right))
        for each in rule.conditions
    )
    head = Literal(name, (event, *map(slot, rule.head.slots)))
    literals.append(Literal(constants.name, (event, *places)))
    return replace(
        rule,
        head=head,
        literals=tuple(literals),
        conditions=conditions,
        origin=rule.origin.by("alike"),
    )
