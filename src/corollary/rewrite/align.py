"""Gives the relations that rewriting makes the names they have in the program in force.

Rewriting numbers its relations (`total.body1`, …), so that one more rule may shift all the numbers
after it. Here a relation that was there before under another name gets that name back, and one
that is new gets a name that was not used: the same name means the same definition.

Base parts, seeds of equivalences, what alerts and constraints react to, and relations on a cycle
have names of their own that do not shift; their rules are compared like those of declared
relations.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from corollary.core import logic
from corollary.core.graph import strongly_connected_components
from corollary.core.program import (
    ActiveRules,
    GroupReading,
    NormalProgram,
    marked_name,
    relations_read,
)
from corollary.rewrite.translation_unit import unused_name


def definition_digests(program: NormalProgram) -> dict[str, str]:
    """Return a digest of the definition of each relation that rewriting made, by name.

    Several may have one definition: the same aggregate in two rules.
    """
    found: dict[str, str] = {}
    for name in _numbered_relations(program):
        found[name] = _definition(name, program, found)
    return found


def align(
    program: NormalProgram, before: NormalProgram, known: Mapping[str, str] | None = None
) -> NormalProgram:
    """Return the program with the names that relations of rewriting have in the one before.

    Args:
        program: the program whose relations are renamed.
        before: the program in force.
        known: the definitions of `before`, where its rules are not known.
    """
    known = definition_digests(before) if known is None else known
    needed = definition_digests(program)
    renamed = {name: name for name, each in needed.items() if known.get(name) == each}
    free: dict[str, list[str]] = {}
    for name, definition in known.items():
        if name not in renamed:
            free.setdefault(definition, []).append(name)
    taken = {*before.relations, *program.relations}
    for name, definition in needed.items():
        if name in renamed:
            continue
        if free.get(definition):
            renamed[name] = free[definition].pop(0)
        elif name in before.relations:
            renamed[name] = unused_name(name, taken)
            taken.add(renamed[name])
    if all(old == new for old, new in renamed.items()):
        return program
    return rename_relations(program, renamed)


def _numbered_relations(program: NormalProgram) -> list[str]:
    """Return the relations that rewriting made and numbered, each after those it reads."""
    stable = {*program.bases, *program.bases.values()}
    stable |= {each.relation for each in program.active.reactions}
    reads = relations_read(program.rules, program.aggregations, program.relations)
    return [
        names[0]
        for names in strongly_connected_components(reads)
        if len(names) == 1
        and names[0] not in reads[names[0]]
        and names[0] not in stable
        and not program.relations[names[0]].is_declared
    ]


def _aggregation(aggregation: logic.AnyAggregation, body: str) -> tuple[object, ...]:
    """Return what an aggregation computes of a body."""
    if isinstance(aggregation, logic.Aggregation):
        first, *others = aggregation.accumulators
        more = ((each.operator, each.value, *_holistic(each)) for each in others)
        known = first.operator, body, aggregation.groups, first.value, *_holistic(first), *more
        return (*known, "nullable") if first.is_nullable else known
    return (body, aggregation.partition, aggregation.order, aggregation.functions, aggregation.top)


def _holistic(accumulator: logic.Accumulator) -> tuple[object, ...]:
    """Return what holistic accumulators have beside a column."""
    if not accumulator.is_holistic:
        return ()
    return accumulator.others, accumulator.weights, accumulator.parameters


def _definition(name: str, program: NormalProgram, known: Mapping[str, str]) -> str:
    """Return a digest of what a relation is: its types, its rules without names of variables.

    The relations that it reads are represented by their definitions, not by their names, so that
    it does not matter which of two with one definition it reads.
    """
    rules = sorted(
        repr(canonical_rule(rule, known)) for rule in program.rules if rule.head.relation == name
    )
    aggregations = [
        _aggregation(each, known.get(each.body, each.body))
        for each in program.aggregations
        if each.relation == name
    ]
    relation = program.relations[name]
    types = tuple(map(str, relation.types))
    # Whether an inlined relation is virtual depends on nothing else: it is never stored.
    is_virtual = relation.is_virtual and not relation.is_inlined
    text = repr((types, is_virtual, rules, aggregations))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def canonical_rule(rule: logic.Rule, renamed: Mapping[str, str]) -> tuple[object, ...]:
    """Return a rule with its variables numbered as they occur and its relations renamed."""
    names = [name for literal in (rule.head, *rule.literals) for name in _names(literal)]
    names += [
        name for condition in rule.conditions for name in sorted(logic.variable_names(condition))
    ]
    numbers = {name: f"v{at}" for at, name in enumerate(dict.fromkeys(names))}
    literals = tuple(
        (renamed.get(each.relation, each.relation), each.negated, _slots(each, numbers))
        for each in rule.literals
    )
    conditions = tuple(
        (each.operator, _term(each.left, numbers), _term(each.right, numbers))
        for each in rule.conditions
    )
    return _slots(rule.head, numbers), literals, conditions, rule.is_lenient


def _names(literal: logic.Literal) -> list[str]:
    return [slot.name for slot in literal.slots if isinstance(slot, logic.Variable)]


def _slots(literal: logic.Literal, numbers: dict[str, str]) -> tuple[object, ...]:
    return tuple(_term(slot, numbers) for slot in literal.slots)


def _term(term: logic.Slot | logic.Expression, numbers: dict[str, str]) -> object:
    match term:
        case logic.Variable(name=name):
            return numbers[name]
        case logic.Functor(name=name, arguments=arguments, type=type_):
            return (name, type_, *(_term(each, numbers) for each in arguments))  # type: ignore[arg-type]
        case logic.Wildcard():
            return "_"
        case logic.Constant(value=value, type=type_):
            return (type(value).__name__, str(value), type_)


def rename_relations(program: NormalProgram, renamed: Mapping[str, str]) -> NormalProgram:
    """Return a program, without its parts, in which some relations have other names."""

    def named(name: str) -> str:
        return renamed.get(name, name)

    def literal(each: logic.Literal) -> logic.Literal:
        return replace(each, relation=named(each.relation))

    def rule(each: logic.Rule) -> logic.Rule:
        return replace(each, head=literal(each.head), literals=tuple(map(literal, each.literals)))

    def aggregation(each: logic.AnyAggregation) -> logic.AnyAggregation:
        return replace(each, relation=named(each.relation), body=named(each.body))

    def grouping(each: GroupReading | None) -> GroupReading | None:
        if each is None:
            return None
        return replace(each, reads=tuple((read, named(pairs)) for read, pairs in each.reads))

    return NormalProgram(
        {
            named(name): replace(
                relation,
                name=named(name),
                grouping=grouping(relation.grouping),
                dominated=relation.dominated and named(relation.dominated),
            )
            for name, relation in program.relations.items()
        },
        tuple(map(rule, program.rules)),
        tuple(map(aggregation, program.aggregations)),
        {named(name): rows for name, rows in program.facts.items()},
        {named(name): named(base) for name, base in program.bases.items()},
        active=_rename_active(program.active, renamed),
        bags={named(name): named(rows) for name, rows in program.bags.items()},
        subsumption={named(name): order for name, order in program.subsumption.items()},
        keys={named(name): key for name, key in program.keys.items()},
        policies=program.policies,
    )


def _rename_active(active: ActiveRules, renamed: Mapping[str, str]) -> ActiveRules:
    """Return the active part with its queries under their new names."""
    marked = {
        name: (renamed.get(read, read), state) for name, (read, state) in active.marked.items()
    }
    names = {**renamed, **{name: marked_name(*read) for name, read in marked.items()}}

    def literal(each: logic.Literal) -> logic.Literal:
        return replace(each, relation=names.get(each.relation, each.relation))

    return replace(
        active,
        rules=tuple(
            replace(each, literals=tuple(map(literal, each.literals))) for each in active.rules
        ),
        aggregations=tuple(
            replace(each, body=names.get(each.body, each.body)) for each in active.aggregations
        ),
        marked={names[name]: read for name, read in marked.items()},
        queries=frozenset(renamed.get(name, name) for name in active.queries),
    )
