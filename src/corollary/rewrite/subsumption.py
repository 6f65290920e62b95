"""Subsumption becomes negation, or in recursion an order of tuples.

Of a relation that is not recursive, all dominated tuples go at once:

    p.all(…)        has the rules and facts of p
    p.dominated(A)  :- p.all(A), p.all(B), body, A != B.
    p(A)            :- p.all(A), !p.dominated(A).

In recursion a tuple that goes may have been the premise of others. There the clauses must say an
order (`analysis/tuple_orders.py`), and every rule must derive something at least as good from
better premises (`analysis/monotonicity.py`); evaluation keeps the best tuples of each key.

With `.pragma "subsumption" "rounds"`, strata of which that is not so keep `p.dominated` as above,
reading p itself, and are evaluated in rounds (`maintain/algorithms/rounds.py`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from corollary.analysis.monotonicity import Misuse, find_misuses
from corollary.analysis.scopes import written_name
from corollary.analysis.subsumption import dominated_name
from corollary.analysis.tuple_orders import read_order
from corollary.core import logic
from corollary.core.graph import strongly_connected_components
from corollary.core.program import (
    ROUNDS,
    SUBSUMPTION_PRAGMA,
    Relation,
    SubsumptionOrder,
    relations_read,
)
from corollary.errors import Diagnostic, InputError
from corollary.rewrite.translation_unit import TranslationUnit

_PRAGMA = f'`.pragma "{SUBSUMPTION_PRAGMA}" "{ROUNDS}"`'


def subsumption(unit: TranslationUnit) -> None:
    """Rewrite the relations that have subsumption.

    Raises:
        InputError: a recursive relation has no readable order, or a rule is not monotone.
    """
    clauses: dict[str, list[logic.Clause]] = {}
    for clause in unit.clauses:
        if clause.dominating is not None:
            clauses.setdefault(clause.dominating.relation, []).append(clause)
    if not clauses:
        return
    components = _components(unit, {dominated_name(name) for name in clauses})
    orders: dict[str, SubsumptionOrder] = {}
    unordered: dict[str, list[Diagnostic]] = {}
    findings: list[Diagnostic] = []
    for name, written in clauses.items():
        relation = unit.relations[name]
        if relation.domains:
            findings.append(_unreadable(name, "it has a choice domain, too", written[0]))
        elif name in components and relation.is_virtual:
            findings.append(_virtual(name, written[0]))
        elif name in components:
            order, reason = read_order(written, relation)
            if order is None:
                unordered.setdefault(name, []).append(_unreadable(name, reason, written[0]))
            else:
                orders[name] = order
        else:
            for finding in _reads_itself(unit, name, written[0]):
                unordered.setdefault(name, []).append(finding)
    if not findings and not unordered.keys() & components.keys():
        for misuse in find_misuses(unit.rules, components, orders):
            unordered.setdefault(misuse.rule.head.relation, []).append(_not_monotone(misuse))
    in_rounds: set[str] = set()
    if unit.has_rounds:
        in_rounds = _in_rounds(unit, clauses.keys(), unordered.keys())
        findings += _by_rounds(unit, in_rounds, clauses)
    else:
        findings += dict.fromkeys(each for found in unordered.values() for each in found)
    if findings:
        raise InputError(findings)
    for name in clauses.keys() - in_rounds:
        if name in orders:
            unit.subsumption[name] = orders[name]
            _drop(unit, name)
        else:
            _negate(unit, unit.relations[name])


def _components(unit: TranslationUnit, without: set[str]) -> dict[str, frozenset[str]]:
    """Return for each recursive relation those that depend on it and that it depends on."""
    graph = _reads(unit, without)
    return {
        name: frozenset(names)
        for names in strongly_connected_components(graph)
        for name in names
        if len(names) > 1 or name in graph.get(name, ())
    }


def _reads(unit: TranslationUnit, without: set[str]) -> dict[str, dict[str, None]]:
    rules = (rule for rule in unit.rules if rule.head.relation not in without)
    return relations_read(rules, unit.aggregations)


# --- in rounds ----------------------------------------------------------------------------------


def _in_rounds(
    unit: TranslationUnit, names: Collection[str], unordered: Collection[str]
) -> set[str]:
    """Return the relations with subsumption of the strata that are not as an order needs it."""
    graph = _reads(unit, set())
    for name in names:
        graph.setdefault(name, {})[dominated_name(name)] = None
    found: set[str] = set()
    for component in strongly_connected_components(graph):
        if any(name in unordered for name in component):
            found.update(name for name in component if name in names)
    return found


def _by_rounds(
    unit: TranslationUnit, names: set[str], clauses: Mapping[str, Sequence[logic.Clause]]
) -> Iterator[Diagnostic]:
    """Let dominated tuples be rejected and deleted in rounds."""
    for name in sorted(names):
        relation, dominated = unit.relations[name], dominated_name(name)
        unit.relations[name] = replace(relation, dominated=dominated)
        unit.relations[dominated] = replace(
            unit.relations[dominated], is_declared=False, is_virtual=False, is_derived=True
        )
        rules = [rule for rule in unit.rules if rule.head.relation == dominated]
        unit.rules = [rule for rule in unit.rules if rule.head.relation != dominated]
        unit.rules += [each for rule in rules for each in _different(rule)]
    graph = _reads(unit, set())
    for name in names:
        graph.setdefault(name, {})[dominated_name(name)] = None
    for component in strongly_connected_components(graph):
        for name in sorted(names & set(component)):
            below = _not_monotone_reads(unit, dominated_name(name), set(component))
            if below is not None:
                yield _not_in_rounds(name, below, clauses[name][0])


def _not_monotone_reads(unit: TranslationUnit, dominated: str, members: set[str]) -> str | None:
    """Return what the dominated tuples of a stratum negate or aggregate in it; None for nothing."""
    for rule in unit.rules:
        if rule.head.relation == dominated or rule.head.relation.startswith(f"{dominated}."):
            for literal in rule.literals:
                if literal.negated and literal.relation in members:
                    return literal.relation
    for each in unit.aggregations:
        if each.relation.startswith(f"{dominated}.") and each.relation in members:
            return next(iter(sorted(members - {dominated, each.relation, each.body})), each.body)
    return None


def _drop(unit: TranslationUnit, name: str) -> None:
    """Remove the rules of dominated tuples: the order says the same."""
    dominated = dominated_name(name)
    unit.rules = [rule for rule in unit.rules if rule.head.relation != dominated]
    unit.relations.pop(dominated, None)


# --- without recursion --------------------------------------------------------------------------


def _negate(unit: TranslationUnit, relation: Relation) -> None:
    """Negate the tuples that others dominate; the relation's own rules fill `p.all`."""
    name, dominated = relation.name, dominated_name(relation.name)
    every = unit.unused_name(f"{name}.all")
    unit.relations[every] = replace(relation, name=every, is_declared=False, limit=None)
    unit.relations[dominated] = replace(
        unit.relations[dominated],
        is_declared=False,
        is_virtual=relation.is_virtual,
        is_derived=True,
    )
    rules: list[logic.Rule] = []
    for rule in unit.rules:
        head = rule.head.relation
        if head == dominated or head.startswith(f"{dominated}."):
            rule = replace(rule, literals=tuple(_read(e, name, every) for e in rule.literals))
            rules += _different(rule) if head == dominated else [rule]
        elif head == name:
            changed = replace(rule.head, relation=every)
            rules.append(replace(rule, head=changed, origin=rule.origin.with_pass("subsumption")))
        else:
            rules.append(rule)
    unit.aggregations = [
        replace(each, body=every)
        if each.body == name and each.relation.startswith(f"{dominated}.")
        else each
        for each in unit.aggregations
    ]
    slots = relation.variables
    origin = logic.Origin(f"the tuples of {name} that are not dominated", None, ("subsumption",))
    literals = (logic.Literal(every, slots), logic.Literal(dominated, slots, negated=True))
    rules.append(logic.Rule(logic.Literal(name, slots), literals, (), origin, is_null_safe=True))
    unit.rules = rules
    if name in unit.facts:
        unit.facts[every] = unit.facts.pop(name)
    unit.bases = {**unit.bases, name: every}


def _read(literal: logic.Literal, name: str, other: str) -> logic.Literal:
    return replace(literal, relation=other) if literal.relation == name else literal


def _different(rule: logic.Rule) -> Iterator[logic.Rule]:
    """Yield the rule of dominated tuples for two tuples that differ, one for each way to do so."""
    one, other, *_ = rule.literals
    pairs = [
        (_expression(left), _expression(right))
        for left, right in zip(one.slots, other.slots, strict=True)
        if left != right
    ]
    if any(_implies_difference(each, pairs) for each in rule.conditions):
        yield rule
        return
    for left, right in pairs:
        ways: list[tuple[logic.Condition, ...]] = [(logic.Condition("!=", left, right),)]
        if _may_be_null(left) or _may_be_null(right):
            null_left, null_right = (
                logic.Constant(None, left.type),
                logic.Constant(None, right.type),
            )
            ways.append(
                (logic.Condition("is", left, null_left), logic.Condition("=", right, right))
            )
            ways.append(
                (logic.Condition("=", left, left), logic.Condition("is", right, null_right))
            )
        for way in ways:
            yield replace(rule, conditions=(*rule.conditions, *way))


def _implies_difference(
    condition: logic.Condition, pairs: Sequence[tuple[logic.Expression, logic.Expression]]
) -> bool:
    sides = (condition.left, condition.right)
    return condition.operator in ("<", ">", "!=") and (sides in pairs or sides[::-1] in pairs)


def _expression(slot: logic.Slot) -> logic.Expression:
    assert not isinstance(slot, logic.Wildcard), "subsumption has a variable for each `_`"
    return slot


def _may_be_null(term: logic.Expression) -> bool:
    return term.type is None or term.type.nullable


def _reads_itself(unit: TranslationUnit, name: str, clause: logic.Clause) -> Iterator[Diagnostic]:
    """Yield an error if the clauses of a relation read another one that depends on it."""
    graph = _reads(unit, set())
    dominated = dominated_name(name)
    for head, read in graph.items():
        if head == dominated or head.startswith(f"{dominated}."):
            read.pop(name, None)
    graph.setdefault(name, {})[dominated] = None
    components = strongly_connected_components(graph)
    around = next(names for names in components if name in names)
    if len(around) > 1:
        between = next(
            (each for each in around if not each.startswith(f"{name}.") and each != name), name
        )
        yield _unreadable(name, f"it reads `{between}`, which depends on `{name}`", clause)


# --- diagnostics --------------------------------------------------------------------------------


def _unreadable(name: str, reason: str, clause: logic.Clause) -> Diagnostic:
    return Diagnostic(
        "C0504",
        f"`{name}` is recursive, and its subsumption is no order that can be read off: {reason}.",
        clause.span,
        "compare the values of both atoms column by column, as in"
        f" `{name}(x, d1) <= {name}(x, d2) :- d2 <= d1.`; or evaluate it as Soufflé does, with"
        f" {_PRAGMA}",
    )


def _not_monotone(misuse: Misuse) -> Diagnostic:
    slot = misuse.slot
    better = "greater" if misuse.is_greater_better else "smaller"
    name = f"`{written_name(slot.name)}`" if isinstance(slot, logic.Variable) else "A value"
    return Diagnostic(
        "C0506",
        f"{name} ({better} is better) is used where a {better} value derives less:"
        f" `{misuse.where}`.",
        slot.span or misuse.rule.origin.span,
        "let a better value derive at least as much, or use it in a relation that does not depend"
        f" on itself; or evaluate it as Soufflé does, with {_PRAGMA}",
    )


def _not_in_rounds(name: str, below: str, clause: logic.Clause) -> Diagnostic:
    return Diagnostic(
        "C0513",
        f"The subsumption of `{name}` is evaluated in rounds, but its body negates or aggregates"
        f" `{below}`, which depends on `{name}`.",
        clause.span,
        f"let the body read relations that do not depend on `{name}`, or read them without negation"
        " and aggregates",
    )


def _virtual(name: str, clause: logic.Clause) -> Diagnostic:
    return Diagnostic(
        "C0507",
        f"`{name}` is virtual, but with recursive subsumption it must be stored.",
        clause.span,
        f"leave out `virtual` in the declaration of `{name}`",
    )
