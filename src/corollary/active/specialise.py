"""Partial evaluation: a virtual view that is needed for some constants only is copied for them.

Reference: J. V. Harrison, S. W. Dietrich, "Integrating active and deductive rules" (1993),
section 5.4.

`failure("v5") :- +abnormal("v5")`, where `abnormal` is virtual, becomes

    failure("v5")  :- +abnormal.for1().
    abnormal.for1() :- in_use("v5"), violation.for1().
    violation.for1() :- temp("v5", t), max_temp("v5", m), t > m.

so that changes for other vessels are dropped at the base relations. Several constants share one
copy, which keeps the argument and is seeded by a relation of them:

    abnormal.for1(v) :- constants(v), in_use(v), violation.for1(v).

The same is done for the constants in rules of views whose changes are needed, and for a constant
that an equation gives: `failure(v) :- +abnormal(v), v = "v5"`. Every literal is decided on by
itself: it reads a copy unless the changes of its whole relation, of the sign that it needs, are
needed by others anyway. `copies` says what can be copied, and how.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from corollary.active.copies import Copier
from corollary.analysis.relevance import BOTH_SIGNS, NO_SIGNS, Signs, flip_signs, relevant_relations
from corollary.core import logic
from corollary.core.program import ActiveRules, NormalProgram, marked_name
from corollary.core.states import CHANGES, State


class _Use(NamedTuple):
    """A literal that needs the changes of a virtual relation for the constant of one column."""

    relation: str
    column: int
    constant: logic.Constant


def specialise(program: NormalProgram, kept: Collection[str]) -> NormalProgram:
    """Return a program in which constants are pushed into copies of virtual relations.

    Args:
        program: the program.
        kept: relations whose changes are needed for all constants.
    """
    virtual = {
        name for name, each in program.relations.items() if each.is_derived and each.is_virtual
    }
    if not virtual:
        return program
    equated = specialised = _with_equations_solved(program, virtual)
    final: set[tuple[str, int]] = set()
    while True:  # the rules of copies have constants in turn
        following = _specialise_once(specialised, kept, final)
        if following is specialised:
            return program if specialised is equated else specialised
        specialised = following


def _specialise_once(
    program: NormalProgram, kept: Collection[str], final: set[tuple[str, int]]
) -> NormalProgram:
    """Return a program whose needed rules read copies; the program itself if there are none."""
    copier = Copier(program, final)
    active, whole = program.active, _needed_as_a_whole(program, kept, copier)
    constants: dict[tuple[str, int], dict[logic.Constant, None]] = {}

    def uses(literal: logic.Literal, name: str, needed: Iterable[State]) -> _Use | None:
        """Return what a literal needs for a constant only, if that is so."""
        use = _constant_use(literal, name, copier)
        is_met = set(needed) <= whole.get(name, NO_SIGNS)
        return None if use is None or is_met else use

    def event_use(literal: logic.Literal) -> _Use | None:
        name, state = active.marked.get(literal.relation, ("", State.NEW))
        return uses(literal, name, {state}) if state in CHANGES else None

    def view_use(rule: logic.Rule, literal: logic.Literal) -> _Use | None:
        signs = whole.get(rule.head.relation, NO_SIGNS)
        needed = flip_signs(signs) if literal.negated else signs
        is_own = copier.are_recursive(literal.relation, rule.head.relation)
        return None if is_own else uses(literal, literal.relation, needed)

    found = [
        *(event_use(each) for rule in active.rules for each in rule.literals),
        *(view_use(rule, each) for rule in program.rules for each in rule.literals),
    ]
    for use in found:
        if use is not None:
            constants.setdefault((use.relation, use.column), {})[use.constant] = None
    if not constants:
        return program
    copies = {
        (name, column): copier.copy(name, column, tuple(each))
        for (name, column), each in constants.items()
    }
    marked = dict(active.marked)

    def read_event(literal: logic.Literal) -> logic.Literal:
        use = event_use(literal)
        if use is None:
            return literal
        copy, state = copies[use.relation, use.column], active.marked[literal.relation][1]
        mark = marked_name(copy.name, state)
        marked[mark] = copy.name, state
        return copy.read(literal, mark)

    def read_view(rule: logic.Rule, literal: logic.Literal) -> logic.Literal:
        use = view_use(rule, literal)
        if use is None:
            return literal
        copy = copies[use.relation, use.column]
        return copy.read(literal, copy.name)

    events = tuple(
        replace(rule, literals=tuple(map(read_event, rule.literals))) for rule in active.rules
    )
    views = (
        replace(rule, literals=tuple(read_view(rule, each) for each in rule.literals))
        for rule in program.rules
    )
    return replace(
        program,
        relations={**program.relations, **copier.relations},
        rules=(*views, *copier.rules),
        constants={**program.constants, **copier.constants},
        active=replace(active, rules=events, marked=marked),
    )


def _constant_use(literal: logic.Literal, name: str, copier: Copier) -> _Use | None:
    """Return the column of a literal for whose constant its relation can be copied, if any.

    One for which the copy needs no relation of the calls that it makes comes first.
    """
    found = [
        _Use(name, column, slot)
        for column, slot in enumerate(literal.slots)
        if isinstance(slot, logic.Constant)
        and slot.value is not None
        and copier.can_copy(name, column)
    ]
    alone = (use for use in found if copier.can_copy_alone(use.relation, use.column))
    return next(alone, found[0] if found else None)


def _needed_as_a_whole(program: NormalProgram, kept: Collection[str], copier: Copier) -> Signs:
    """Return the relations whose changes are needed for all values, with the signs."""
    needed = {
        name: BOTH_SIGNS
        for name, relation in program.relations.items()
        if name in kept or (relation.is_derived and not relation.is_virtual)
    }
    for name, state, literal in _watched(program.active):
        if literal is None or _constant_use(literal, name, copier) is None:
            needed[name] = needed.get(name, NO_SIGNS) | {state}
    rules = (
        replace(
            rule,
            literals=tuple(
                each
                for each in rule.literals
                if copier.are_recursive(each.relation, rule.head.relation)
                or _constant_use(each, each.relation, copier) is None
            ),
        )
        for rule in program.rules
    )
    return relevant_relations(replace(program, rules=tuple(rules)), needed)


def _watched(active: ActiveRules) -> Iterator[tuple[str, State, logic.Literal | None]]:
    """Yield the relations and signs whose changes active rules read, with the literal, if any."""
    for rule in active.rules:
        for literal in rule.literals:
            name, state = active.marked.get(literal.relation, ("", State.NEW))
            if state in CHANGES:
                yield name, state, literal
    for aggregation in active.aggregations:
        name, state = active.marked.get(aggregation.body, ("", State.NEW))
        if state in CHANGES:
            yield name, state, None


# --- constants that equations give ----------------------------------------------------------------


def _with_equations_solved(program: NormalProgram, virtual: set[str]) -> NormalProgram:
    """Return a program whose literals of virtual relations have the constants of equations."""
    active = program.active
    watching = {
        mark
        for mark, (name, state) in active.marked.items()
        if state in CHANGES and name in virtual
    }
    rules = tuple(_with_constants(rule, virtual) for rule in program.rules)
    events = tuple(_with_constants(rule, watching) for rule in active.rules)
    if rules == program.rules and events == active.rules:
        return program
    return replace(program, rules=rules, active=replace(active, rules=events))


def _with_constants(rule: logic.Rule, relations: set[str]) -> logic.Rule:
    """Return a rule whose literals of some relations have constants for variables equal to them.

    The equations stay, and bind the variables for the rest of the rule.
    """
    values = _equations(rule)
    if not values or relations.isdisjoint(each.relation for each in rule.literals):
        return rule
    literals = tuple(
        replace(
            each,
            slots=tuple(
                values.get(slot.name, slot) if isinstance(slot, logic.Variable) else slot
                for slot in each.slots
            ),
        )
        if each.relation in relations
        else each
        for each in rule.literals
    )
    return replace(rule, literals=literals)


def _equations(rule: logic.Rule) -> Mapping[str, logic.Constant]:
    """Return the variables that equations set to a constant of their type, and the constants.

    Floats are left out: 0.0 and -0.0 are equal, and different values.
    """
    found: dict[str, logic.Constant] = {}
    for condition in rule.conditions:
        if condition.operator != "=":
            continue
        sides = condition.left, condition.right
        for variable, constant in (sides, sides[::-1]):
            if (
                isinstance(variable, logic.Variable)
                and isinstance(constant, logic.Constant)
                and constant.value is not None
                and variable.type is not None
                and constant.type is not None
                and variable.type.with_null(False) == constant.type.with_null(False)
                and not variable.type.stores_floats
            ):
                found.setdefault(variable.name, constant)
    return found
