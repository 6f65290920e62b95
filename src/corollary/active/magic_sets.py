"""Magic sets: the part of a recursion that calls with some arguments bound can reach.

Reference: F. Bancilhon, D. Maier, Y. Sagiv, J. Ullman, "Magic sets and other strange ways to
implement logic programs" (1986); generalised to any order of literals by C. Beeri,
R. Ramakrishnan, "On the power of magic" (1991).

For a rule `p(h) :- L1, …, Lk` of a stratum whose literals are in the order that `sip` gives them
when the columns a of p are bound:

    pᵃ(h) :- magic_pᵃ(h_a), L1', …, Lk'.           Li' = qᵇ(…) where Li = q(…) is of the stratum
    magic_qᵇ(…) :- magic_pᵃ(h_a), L1', …, Li-1'.   for every such Li, with its arguments b

A relation has one adornment, the columns that all of its calls bind, so that no tuple is copied
twice. Where there are none, the whole relation is needed, and nothing is gained.

Only the relations of one stratum are copied. What is below is read as it is, and reads none of the
copies, so that negation stays stratified. Calls have values out of relations and none that an
equation computes, so that there is an end of them.

| symbol | name here |
|---|---|
| a, the adornment of p | `AdornedStratum.bound[p]` |
| pᵃ | `p.for1` |
| magic_pᵃ | `p.magic1` |

Example: `path(x, z) :- path(x, y), path(y, z)` called with x gives

    path.for1(x, z) :- path.magic1(x), path.for1(x, y), path.for1(y, z).
    path.magic1(y) :- path.magic1(x), path.for1(x, y).

and for the first call `path.magic1(x) :- path.magic1(x)`, which is left out.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from corollary.analysis.strata import Stratum
from corollary.core import logic
from corollary.core.pipeline import AntiProbe, Probe, Reference, bound_columns
from corollary.core.statistics import Statistics
from corollary.data_class import dataclass
from corollary.maintain.sip import Goal, has_fault, sip

Columns = tuple[int, ...]

_rewritten = partial(logic.rewrite_rule, by="magic_sets")

_NO_STATISTICS = Statistics()


@dataclass(frozen=True, slots=True)
class AdornedStratum:
    """The relations of a stratum that calls reach.

    Attributes:
        bound: the columns that all calls of a relation bind.
        bodies: their rules, with the literals of each in order.
    """

    bound: Mapping[str, Columns]
    bodies: tuple[tuple[logic.Rule, tuple[logic.Literal, ...]], ...]


def adorn(stratum: Stratum, relation: str, column: int) -> AdornedStratum | None:
    """Return what calls of a relation with one column bound reach; None if it is all of it."""
    if stratum.aggregations or stratum.has_choice or stratum.subsumption or stratum.dominated:
        return None
    readable = {name: _readable_columns(stratum, name) for name in stratum.relations}
    bound = {relation: tuple(readable[relation] & {column})}
    while all(bound.values()):
        bodies = tuple(
            (rule, tuple(_in_order(rule, columns, stratum.members)))
            for name, columns in bound.items()
            for rule in stratum.rules_by_head.get(name, ())
        )
        reached = dict(bound)
        for rule, literals in bodies:
            for called, columns in _calls(rule, literals, bound, readable):
                kept = set(reached.get(called, columns)).intersection(columns)
                reached[called] = tuple(sorted(kept))
        if reached == bound:
            return AdornedStratum(bound, bodies)
        bound = reached
    return None


def _readable_columns(stratum: Stratum, name: str) -> set[int]:
    """Return the columns of a relation whose values its rules read, and do not compute.

    Values may be equal and not the same (0.0 and -0.0): a rule that computes a value must not be
    given one to compare it with.
    """
    heads = [(rule, rule.head.slots) for rule in stratum.rules_by_head.get(name, ())]
    columns = range(min((len(slots) for _, slots in heads), default=0))
    return {at for at in columns if all(_is_read(slots[at], rule) for rule, slots in heads)}


def _is_read(slot: logic.Slot, rule: logic.Rule) -> bool:
    return isinstance(slot, logic.Constant) or any(
        slot in each.slots for each in rule.literals if not each.negated
    )


def _in_order(
    rule: logic.Rule, bound: Columns, members: Collection[str]
) -> Iterator[logic.Literal]:
    """Yield the literals of a rule in the order in which they are probed for a call."""
    call = _call("call", rule.head, bound)
    lead = Goal(call, Reference(call.relation))
    goals = [Goal(each, Reference(each.relation)) for each in rule.literals]
    pipeline = sip(
        logic.head_arguments(rule),
        [lead, *goals],
        rule.conditions,
        rule.origin,
        _NO_STATISTICS,
        lead=lead,
        is_asked=lambda source: source.relation in members,
    )
    for stage in pipeline.stages[1:]:
        if isinstance(stage, Probe | AntiProbe):
            yield logic.Literal(stage.source.relation, stage.slots, isinstance(stage, AntiProbe))


def _calls(
    rule: logic.Rule,
    literals: tuple[logic.Literal, ...],
    bound: Mapping[str, Columns],
    readable: Mapping[str, set[int]],
) -> Iterator[tuple[str, Columns]]:
    """Yield the relations of the stratum that a rule calls, and the columns that it binds."""
    known = logic.variable_names(_call("call", rule.head, bound[rule.head.relation]))
    for literal in literals:
        if literal.relation in readable:
            columns = bound_columns(literal.slots, known)
            yield literal.relation, tuple(at for at in columns if at in readable[literal.relation])
        known |= logic.variable_names(literal)


def _call(name: str, literal: logic.Literal, bound: Columns) -> logic.Literal:
    """Return the call that a literal makes, or that a head answers."""
    return logic.Literal(name, tuple(literal.slots[column] for column in bound))


def magic_rules(
    adorned: AdornedStratum, copies: Mapping[str, str], magic: Mapping[str, str]
) -> Iterator[logic.Rule]:
    """Yield the rules of the copies, and of the calls.

    Args:
        adorned: the relations and rules to copy.
        copies: the name of the copy of each relation.
        magic: the name of the relation of its calls.
    """
    for rule, body in adorned.bodies:
        name = rule.head.relation
        answered = _call(magic[name], rule.head, adorned.bound[name])
        literals = [answered]
        for literal in body:
            called = literal.relation
            if called not in copies:
                literals.append(literal)
                continue
            call = _call(magic[called], literal, adorned.bound[called])
            if call != answered:
                yield _rewritten(rule, call, literals, _decided_conditions(rule, literals))
            literals.append(replace(literal, relation=copies[called]))
        head = replace(rule.head, relation=copies[name])
        yield _rewritten(rule, head, literals, rule.conditions)


def _decided_conditions(
    rule: logic.Rule, literals: list[logic.Literal]
) -> tuple[logic.Condition, ...]:
    """Return the conditions of a rule that some of its literals decide.

    Those that may have no value are left out: that is an error only if the rest of the rule holds.
    """
    known = set[str]().union(*map(logic.variable_names, literals))
    return tuple(
        each
        for each in rule.conditions
        if logic.variable_names(each) <= known and not has_fault(each)
    )
