"""Self-maintainable updates: the change and the stored view suffice, no base relation is read.

Reference: F. W. Tompa, J. A. Blakeley, "Maintaining materialized views without accessing base
data", Information Systems 13(4), 1988, who call such updates autonomously computable;
J. A. Blakeley, N. Coburn, P.-Å. Larson, "Updating derived relations: detecting irrelevant and
autonomously computable updates", TODS 14(3), 1989, for insertions as well.

Recognised are changes of a literal L in the only rule of a stored relation P without recursion:

    Δ⁻P = P ⋉ Δ⁻L                 where all variables of L are in the head
    Δ⁺P = π(Δ⁺L)                  where L is the only literal
    Δ⁺P = π(Δ⁺L ⋈ P[W])           where P has a row with the values of J, for each tuple of Δ⁺L

Removals: every tuple of the view with these values was derived from a lost tuple, by this rule,
and loses all its derivations.

Insertions: J are the variables of L that the rest of the rule sees, W the view's part of a tuple of
L that agrees on them, the *witness*. The rest of the rule holds for the new tuple where it holds
for the witness, and the view has all of that, if its head has all variables and no other literal
changes. Which tuples have a witness depends on the view: the paper's *conditionally* autonomously
computable insertions. For the others the rest of the rule is looked up, so this is done where that
is asked for and not read: where another literal is virtual.

| symbol | name here |
|---|---|
| Δ⁻L, Δ⁺L | the lead |
| Δ⁻P, with its counts | `p•gone`, `p•counted_out` |
| J, W | `p•witness`, J alone `p•met` |
| Δ⁺P | `p•came` |

Example: `v(id, x, y) :- r(id, x), s(x, y)`; r(7, a) removed: all tuples v(7, a, _) are removed
and s is not read. r(8, a) added while v(7, a, 1) and v(7, a, 2) are there: x is in J, id = 7 is the
witness, and v(8, a, 1) and v(8, a, 2) are added; s, if it is virtual, is not asked.
"""

from collections.abc import Sequence

from corollary.analysis.keys import has_single_derivations
from corollary.analysis.relevance import flip_signs
from corollary.analysis.strata import Stratum
from corollary.core.logic import (
    Literal,
    Rule,
    Slot,
    Variable,
    Wildcard,
    has_wildcard,
    head_arguments,
    variable_names,
)
from corollary.core.pipeline import Extreme, Reference
from corollary.core.plans import Add, Remove, Role, Step, working_relation
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain.delta import (
    ChangedLiteral,
    apply_selections,
    changed_literals,
    make_body,
    read_in_state,
)
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import count_relation, has_counts
from corollary.maintain.sip import Goal, has_fault
from corollary.maintain.trace import INSERTION, derive_by_rule, trace_rows
from corollary.maintain.update import Update

_COUNT = Variable("count'", NUMBER)


def is_autonomous(stratum: Stratum, update: Update) -> bool:
    """Whether every change that a stratum may see is autonomously computable.

    Insertions into a join are so where the view has a witness for them.
    """
    if stratum.is_recursive or stratum.aggregations or len(stratum.rules) != 1:
        return False
    if stratum.has_choice:  # a tuple that goes lets another one come
        return False
    (rule,) = stratum.rules
    (name,) = stratum.relations
    if update.is_virtual(name) or rule.is_lenient or name in update.redefined:
        return False
    return all(
        _is_determined(rule, position, sign, update)
        for position, literal in enumerate(rule.literals)
        for sign in _effects(literal, update)
    )


def _effects(literal: Literal, update: Update) -> frozenset[State]:
    signs = update.signs_of(literal.relation)
    return flip_signs(signs) if literal.negated else signs


def gains_tuples(stratum: Stratum, update: Update) -> bool:
    """Whether a literal of a stratum may change so that heads are added."""
    return any(
        State.ADDED in _effects(literal, update)
        for rule in stratum.rules
        for literal in rule.literals
    )


def needs_witness(stratum: Stratum, update: Update) -> bool:
    """Whether it depends on the view which changes of a stratum are autonomously computable."""
    is_join = any(len(rule.literals) > 1 for rule in stratum.rules)
    return is_join and gains_tuples(stratum, update)


def _is_determined(rule: Rule, position: int, sign: State, update: Update) -> bool:
    literal = rule.literals[position]
    head = {slot.name for slot in head_arguments(rule) if isinstance(slot, Variable)}
    has_all = not has_wildcard(literal) and variable_names(literal) <= head
    if literal.negated or not has_all:
        return False
    return sign is State.REMOVED or _has_rest(rule, position, update)


def _has_rest(rule: Rule, position: int, update: Update) -> bool:
    """Whether the view tells what the rest of a rule has for a tuple that a literal gains."""
    others = [each for at, each in enumerate(rule.literals) if at != position]
    if not has_single_derivations(rule) or any(map(has_fault, rule.conditions)):
        return False
    if any(update.signs_of(each.relation) for each in others):
        return False
    is_asked = any(update.is_virtual(each.relation) for each in others)
    return not others or (is_asked and bool(_seen_variables(rule, position)))


def _seen_variables(rule: Rule, position: int) -> set[str]:
    """Return J: the variables of a literal that other literals or computed values depend on."""
    names = variable_names(rule.literals[position])
    rest = [variable_names(each) for at, each in enumerate(rule.literals) if at != position]
    rest += [found for each in rule.conditions if not (found := variable_names(each)) <= names]
    return names & set[str]().union(*rest)


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stratum whose updates are autonomously computable."""
    lost, gained = (
        list(changed_literals(draft, stratum.rules, stratum.relations, sign))
        for sign in (State.REMOVED, State.ADDED)
    )
    steps = _remove(stratum, draft, lost) if lost else []
    for changed in gained:
        steps += _insert(stratum, draft, changed)
    return [*steps, *trace_rows(stratum, draft)]


def _remove(stratum: Stratum, draft: Draft, lost: Sequence[ChangedLiteral]) -> list[Step]:
    """Return the steps that remove P ⋉ Δ⁻L."""
    (name,) = stratum.relations
    steps: list[Step] = []
    removed, counted = list[Body](), list[Body]()
    has_payload = has_counts(stratum) and name in draft.update.valid_payload
    for changed in lost:
        selection, chosen = apply_selections(draft, changed)
        steps += selection
        head = head_arguments(chosen.rule)
        lead, origin = chosen.lead, chosen.rule.origin
        view = Goal(Literal(name, head), Reference(name, State.OLD))
        removed.append(Body(head, (lead, view), (), origin, lead))
        if has_payload:
            full, count = (*head, _COUNT), count_relation(draft, name)
            beside = Goal(Literal(count, full), Reference(count, State.OLD))
            counted.append(Body(full, (lead, beside), (), origin, lead))
    out = draft.working_relation(name, "gone")
    steps += derive_by_rule(draft, out, removed, name, "removed", role=Role.ACTUAL)
    if has_payload:
        rows = draft.working_relation(name, "counted_out", NUMBER)
        steps += [*draft.derive(rows, counted), Remove(count_relation(draft, name), rows)]
    return [*steps, Remove(name, out)]


def _insert(stratum: Stratum, draft: Draft, changed: ChangedLiteral) -> list[Step]:
    """Return the steps that add π(Δ⁺L ⋈ P[W]), and what is asked for where there is no witness."""
    (name,) = stratum.relations
    steps, chosen = apply_selections(draft, changed)
    rule, position, lead = chosen.rule, chosen.position, chosen.lead
    read, goals, bodies = read_in_state(State.NEW), list[Goal](), list[Body]()
    if len(rule.literals) > 1:
        witnesses, met, by_witness = _by_witness(name, draft, chosen)
        steps += witnesses
        goals.append(met)
        bodies.append(by_witness)
    bodies.append(make_body(rule, read, lead=lead, position=position, goals=goals))
    came = draft.working_relation(name, "came")
    steps += derive_by_rule(draft, came, bodies, name, INSERTION, role=Role.ACTUAL)
    return [*steps, Add(name, came)]


def _by_witness(name: str, draft: Draft, changed: ChangedLiteral) -> tuple[list[Step], Goal, Body]:
    """Return the steps that find witnesses, the test that there is none, and what they give."""
    rule, lead = changed.rule, changed.lead
    head = head_arguments(rule)
    shared = _seen_variables(rule, changed.position)
    own = variable_names(lead.literal) - shared
    columns = {
        slot: type_
        for slot, type_ in zip(head, draft.types[name], strict=True)
        if isinstance(slot, Variable)
    }
    seen = tuple(each for each in columns if each.name in shared)
    renamed = {
        each.name: Variable(f"{each.name}'", each.type) for each in columns if each.name in own
    }
    row = tuple(
        renamed.get(slot.name, slot) if isinstance(slot, Variable) else slot for slot in head
    )
    witness = (*seen, *renamed.values())
    found, met = (working_relation(name, role) for role in ("witness", "met"))
    draft.types[met] = tuple(columns[each] for each in seen)
    draft.types[found] = (*draft.types[met], *(columns[Variable(each)] for each in renamed))
    any_row: tuple[Slot, ...] = tuple(
        Wildcard() if isinstance(slot, Variable) and slot not in witness else slot for slot in row
    )
    # One witness is enough, of the many tuples that may agree on J.
    least = Extreme(row.index(witness[len(seen)]), is_greatest=False) if renamed else None
    some = Goal(Literal(name, any_row), Reference(name, State.OLD), least)
    steps = draft.derive(found, [Body(witness, (lead, some), (), rule.origin, lead)])
    steps.append(draft.copy(met, Reference(found)))
    rows = Goal(Literal(name, row), Reference(name, State.OLD))
    goals = (lead, working_goal(found, witness), rows)
    by_witness = Body(head, goals, (), rule.origin, lead, order=goals)
    return steps, working_goal(met, seen, negated=True), by_witness
