"""How the relations of one program become those of the next one.

| a relation that both have | becomes |
|---|---|
| with other types | another one, new; the old one is set aside until the commit |
| with copies, then without, or the reverse | likewise |
| with other names of columns | the same tuples, relabelled |
| virtual, then stored | filled with what its old rules give, then maintained |
| stored, then virtual | maintained once more, then emptied |

What is set aside is a relation of the old program only: the rules that read it are removed rules,
as those of a relation that is dropped.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from corollary.core.logic import Rule
from corollary.core.program import NormalProgram, Relation
from corollary.rewrite.align import rename_relations

ASIDE_SUFFIX = ".replaced"
"""Follows the name of a relation that another one of the same name replaces.

Not a working relation: what was virtual is asked for by its rules.
"""


def replaced_relations(before: NormalProgram, after: NormalProgram) -> dict[str, str]:
    """Return the relations that have other types, each with the name under which it is set aside.

    A relation that rewriting made is also replaced if it becomes virtual, or stored.
    """
    found = {}
    for name, was in before.relations.items():
        now = after.relations.get(name)
        is_other = (name in before.bags) != (name in after.bags)
        if now is not None and (is_other or _is_replaced(was, now)):
            found[name] = name + ASIDE_SUFFIX
    return found


def _is_replaced(was: Relation, now: Relation) -> bool:
    has_other_place = was.is_virtual != now.is_virtual and not was.is_declared
    return was.types != now.types or (has_other_place and was.is_derived)


def set_aside(program: NormalProgram, names: Mapping[str, str]) -> NormalProgram:
    """Return a program in which relations, with the parts that hold their tuples, are renamed."""
    if not names:
        return program
    parts = {
        names.get(name, name): {part: names.get(at, at) for part, at in by_part.items()}
        for name, by_part in program.parts.items()
    }
    return replace(rename_relations(program, names), parts=parts, constants=program.constants)


def relabelled_relations(before: NormalProgram, after: NormalProgram) -> list[Relation]:
    """Return the relations whose columns have other names and the same types."""
    return [
        now
        for name, now in after.relations.items()
        if (was := before.relations.get(name)) is not None
        if was.columns != now.columns and was.types == now.types
    ]


def relations_to_store(before: NormalProgram, after: NormalProgram) -> list[str]:
    """Return the relations that were virtual and are stored now."""
    return [
        name
        for name, now in after.relations.items()
        if (was := before.relations.get(name)) is not None and now.is_derived
        if not was.is_stored and now.is_stored
    ]


def relations_to_empty(before: NormalProgram, after: NormalProgram) -> list[str]:
    """Return the relations that were stored and are virtual now."""
    return [
        name
        for name, now in after.relations.items()
        if (was := before.relations.get(name)) is not None and was.is_derived
        if was.is_stored and not now.is_stored
    ]


def as_stored(program: NormalProgram, names: Iterable[str]) -> NormalProgram:
    """Return a program in which some virtual relations are stored."""
    stored = {name: replace(program.relations[name], is_virtual=False) for name in names}
    return replace(program, relations={**program.relations, **stored}) if stored else program


def relations_to_refill(
    before: NormalProgram, after: NormalProgram, watched: Collection[str]
) -> tuple[list[str], NormalProgram]:
    """Return what new relations, as far as their changes are watched, need in the OLD state.

    A tuple that a view has only because it is new, or has other columns, is no event. So OLD of a
    stored view is what its rules give on the old data, and a virtual one has its rules in the old
    program, too.

    Args:
        before: the old program, without what is set aside.
        after: the new one.
        watched: the relations whose changes are asked for.

    Returns:
        The stored relations to fill, and the old program with them and the virtual ones.
    """
    filled: list[str] = []
    relations = dict(before.relations)
    rules: list[Rule] = list(before.rules)
    aggregations = list(before.aggregations)
    work = [name for name in after.relations if name in watched]
    while work:
        name = work.pop()
        if name in relations or not after.relations[name].is_derived:
            continue
        relation = relations[name] = after.relations[name]
        if relation.is_stored:
            filled.append(name)
            continue
        own = [rule for rule in after.rules if rule.head.relation == name]
        rules += own
        work += [literal.relation for rule in own for literal in rule.literals]
        for each in after.aggregations:
            if each.relation == name:
                aggregations.append(each)
                work.append(each.body)
    if len(relations) == len(before.relations):
        return [], before
    made = replace(
        before, relations=relations, rules=tuple(rules), aggregations=tuple(aggregations)
    )
    return filled, made


def with_base_parts(before: NormalProgram, after: NormalProgram) -> NormalProgram:
    """Return the old program with base parts for the base relations that get rules."""
    relations, rules = dict(before.relations), list(before.rules)
    facts, bases = dict(before.facts), dict(before.bases)
    for name, base in relations_given_rules(before, after).items():
        relation = after.relations[name]
        relations[name] = replace(relation, domains=())  # a base relation has all its tuples
        relations[base] = after.relations[base]
        rules += [rule for rule in after.rules if _is_base_rule(rule, name, base)]
        bases[name] = base
        if name in facts:
            facts[base] = facts.pop(name)
    return replace(before, relations=relations, rules=tuple(rules), facts=facts, bases=bases)


def relations_given_rules(before: NormalProgram, after: NormalProgram) -> dict[str, str]:
    """Return the base relations that get rules, with the base parts that take their tuples."""
    return {
        name: after.bases[name]
        for name, relation in before.relations.items()
        if name in after.relations
        if not relation.is_derived and after.relations[name].is_derived
    }


def _is_base_rule(rule: Rule, name: str, base: str) -> bool:
    return rule.head.relation == name and [each.relation for each in rule.literals] == [base]
