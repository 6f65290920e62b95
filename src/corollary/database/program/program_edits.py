"""Edits of the program: rules added and removed, and the normal form that follows another."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace

from corollary.active.normal_form import with_active_rules
from corollary.analysis.check import check
from corollary.core.logic import Clause, Rule, Variable
from corollary.core.printer import print_clause, print_reaction
from corollary.core.program import NormalProgram, Program, Reaction, Relation
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.program.parts import carry_over_parts
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse_rule
from corollary.rewrite.align import align
from corollary.rewrite.normalise import normalise


def with_rule(program: Program, text: str, place: str = "rule") -> Program:
    """Return the program with one more rule, fact, alert or constraint."""
    match parse_rule(text, place):
        case Reaction() as reaction:
            return replace(program, reactions=(*program.reactions, reaction))
        case Clause() as clause:
            return replace(program, clauses=(*program.clauses, clause))


def without_rule(program: Program, text: str, place: str = "rule") -> Program:
    """Return the program without a rule, fact, alert or constraint.

    The names of variables do not matter.

    Raises:
        InputError: there is no such rule.
    """
    removed = parse_rule(text, place)
    if isinstance(removed, Reaction):
        return _without_reaction(program, removed)
    wanted = _canonical(removed)
    for at, clause in enumerate(program.clauses):
        if _canonical(clause) == wanted:
            clauses = (*program.clauses[:at], *program.clauses[at + 1 :])
            return replace(program, clauses=clauses)
    heads = {head.relation for head in removed.heads}
    near = [
        print_clause(clause)
        for clause in program.clauses
        if heads & {head.relation for head in clause.heads}
    ]
    listed = "; ".join(f"`{each}`" for each in near[:5])
    names = ", ".join(f"`{name}`" for name in sorted(heads))
    cure = f"its rules are {listed}" if near else f"the program has no rule for {names} at all"
    if not removed.body:
        cure = "delete tuples that are not in the program's text with `delete`"
    raise InputError.of("C0911", f"The program has no rule `{text.strip()}`.", removed.span, cure)


def _without_reaction(program: Program, removed: Reaction) -> Program:
    if removed in program.reactions:
        at = program.reactions.index(removed)
        rest = (*program.reactions[:at], *program.reactions[at + 1 :])
        return replace(program, reactions=rest)
    near = [print_reaction(each) for each in program.reactions if each.relation == removed.relation]
    listed = "; ".join(f"`{each}`" for each in near[:5])
    cure = f"it has {listed}" if near else f"nothing reacts to `{removed.relation}`"
    text = f"The program has no `{print_reaction(removed)}`."
    raise InputError.of("C0911", text, removed.span, cure)


def _canonical(node: object, names: dict[str, int] | None = None) -> object:
    """Return a clause as nested tuples, its variables numbered in order of occurrence."""
    names = {} if names is None else names
    if isinstance(node, Variable):
        return names.setdefault(node.name, len(names))
    if isinstance(node, tuple):
        return tuple(_canonical(each, names) for each in node)
    if is_dataclass(node):
        parts = (getattr(node, each.name) for each in fields(node) if each.compare)
        return (type(node).__name__, *(_canonical(part, names) for part in parts))
    return (type(node).__name__, str(node))


def load_next_program(
    program: Program,
    before: NormalProgram,
    known: Mapping[str, str] | None = None,
    dropped: Collection[str] = (),
) -> LoadedProgram:
    """Check and normalise a program that follows another, and keep the names of stored relations.

    Args:
        program: the new program.
        before: the program until now; if it comes from a catalog, it has relations only.
        known: the definitions of relations that rewriting made, if `before` has no rules.
        dropped: derived relations that may be dropped.

    Raises:
        InputError: the program is wrong, or changes the columns of a relation.
    """
    checked = check(program, before)
    normal = align(with_active_rules(normalise(checked, before), checked), before, known)
    limits = {name: replace(each, limit=None) for name, each in normal.relations.items()}
    normal = carry_over_parts(replace(normal, relations=limits), before)
    _refuse_other_columns(normal, before, dropped)
    return LoadedProgram(program, checked, normal)


def _refuse_other_columns(
    normal: NormalProgram, before: NormalProgram, going: Collection[str]
) -> None:
    for name, relation in normal.relations.items():
        was = before.relations.get(name)
        if was is not None and relation.is_declared and stored_shape(was) != stored_shape(relation):
            raise InputError.of(
                "C0912",
                f"`{name}` was {_columns(was)}, and is declared as {_columns(relation)} now.",
                None,
                "keep the old declaration, or change columns with `corollary alter`",
            )
    for name, was in before.relations.items():
        if name in going and was.is_derived and name not in before.bases:
            continue
        if was.is_declared and name not in normal.relations:
            raise InputError.of(
                "C0913",
                f"The new program does not declare `{name}`, which the database holds.",
                None,
                "keep its `.decl`; delete its tuples and remove its rules if it is not needed",
            )


def _columns(relation: Relation) -> str:
    columns = ", ".join(
        f"{name}: {type_}" for name, type_ in zip(relation.columns, relation.types, strict=True)
    )
    return f"`({columns}){' virtual' if relation.is_virtual else ''}`"


def stored_shape(relation: Relation) -> tuple[object, ...]:
    """Return the parts of a declaration that cannot change while there is data."""
    return relation.columns, relation.types, relation.is_virtual


def with_base_parts(before: NormalProgram, after: NormalProgram) -> NormalProgram:
    """Return the old program with base parts for the base relations that get rules."""
    relations, rules = dict(before.relations), list(before.rules)
    facts, bases = dict(before.facts), dict(before.bases)
    for name, base in relations_given_rules(before, after).items():
        relation = after.relations[name]
        relations[name] = relation
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
