"""Edits of the program: rules added and removed, and the normal form that follows another."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace

from corollary.active.normal_form import with_active_rules
from corollary.analysis.check import check
from corollary.core.logic import Clause, Variable
from corollary.core.printer import print_clause, print_reaction
from corollary.core.program import NormalProgram, Program, Reaction, Relation
from corollary.database.program.loaded_program import LoadedProgram, refuse_counters
from corollary.database.program.parts import (
    MANUAL_PART,
    TEXT_PART,
    carry_over_parts,
    describe_parts,
)
from corollary.database.program.transitions import ASIDE_SUFFIX, replaced_relations, set_aside
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
    held: Mapping[str, Collection[str]] | None = None,
    replaced: Iterable[str] = (),
) -> LoadedProgram:
    """Check and normalise a program that follows another, and keep the names of stored relations.

    Args:
        program: the new program.
        before: the program until now; if it comes from a catalog, it has relations only.
        known: the definitions of relations that rewriting made, if `before` has no rules.
        held: for each base relation, and each derived one that has tuples of its own, the parts
            that hold tuples.
        replaced: the relations that become others of the same name, whatever their types are.

    Raises:
        InputError: the program is wrong, or would lose tuples that only the database has.
    """
    checked = check(program, before)
    refuse_counters(program)
    aside = {name: name + ASIDE_SUFFIX for name in replaced}
    converted = {name: before.relations[name] for name in aside if name not in before.bags}
    while True:
        # A relation with other types is another one, which decides on the names of what reads it.
        old = set_aside(before, aside)
        bases = {name: at for name, at in before.bases.items() if name in converted}
        seen = replace(old, relations={**old.relations, **converted}, bases={**old.bases, **bases})
        normal = align(with_active_rules(normalise(checked, seen), checked), old, known)
        limits = {name: replace(each, limit=None) for name, each in normal.relations.items()}
        normal = carry_over_parts(replace(normal, relations=limits), old)
        more = replaced_relations(old, normal)
        if not more:
            break
        aside |= more
    _refuse_losses(normal, before, held or {})
    return LoadedProgram(program, checked, normal)


def _refuse_losses(
    normal: NormalProgram, before: NormalProgram, held: Mapping[str, Collection[str]]
) -> None:
    """Refuse other columns for tuples that the new program does not state, and to drop those.

    Tuples of the text change with it; those of a source go when it is not read any more.
    """
    for name, parts in held.items():
        was, now = before.relations[name], normal.relations.get(name)
        if now is not None and set(parts) - {TEXT_PART}:
            _refuse_lost_copies(name, normal, before, parts)
        if now is None and MANUAL_PART in parts:
            raise InputError.of(
                "C0913",
                f"The new program does not declare `{name}`, which holds tuples that were written "
                "to it.",
                None,
                f"keep its `.decl`, or delete these tuples first, with `tx.delete` or `corollary "
                f"apply W --delete {name}=FILE`",
            )
        others = set(parts) - {TEXT_PART}
        if now is None or not others or (was.columns, was.types) == (now.columns, now.types):
            continue
        is_base = not was.is_derived or name in before.bags
        if was.types != now.types or is_base:
            cure = f"change them with `corollary alter W {name} {_alterations(was, now)}`"
            if not is_base:
                cure = "keep the old declaration"
            if MANUAL_PART in others:
                cure = f"{cure}, or delete these tuples first"
            raise InputError.of(
                "C0912",
                f"`{name}` was {_columns(was)}, and is declared as {_columns(now)} now; it holds "
                f"tuples of {describe_parts(sorted(others), ' and ')}.",
                None,
                cure,
            )


def _alterations(was: Relation, now: Relation) -> str:
    """Return the options of `alter` that make the columns of a relation those of another one."""
    added = [*zip(now.columns, now.types, strict=True)][was.arity :]
    is_longer = (was.columns, was.types) == (now.columns[: was.arity], now.types[: was.arity])
    if not is_longer or not all(type_.nullable for _, type_ in added):
        return "--program PROGRAM"
    return " ".join(f"--add '{name}: {type_}'" for name, type_ in added)


def _refuse_lost_copies(
    name: str, normal: NormalProgram, before: NormalProgram, parts: Collection[str]
) -> None:
    """Refuse to make a set with tuples a bag, or a bag a set, and to give rules to a bag."""
    holders = describe_parts(sorted(set(parts) - {TEXT_PART}), " and ")
    was_bag, is_bag = name in before.bags, name in normal.bags
    if was_bag != is_bag:
        was, now = ("a bag", "a set") if was_bag else ("a set", "a bag")
        raise InputError.of(
            "C0977",
            f"`{name}` was {was}, and is declared as {now} now; it holds tuples of {holders}.",
            None,
            "keep the old declaration, or give the new relation another name",
        )
    was_derived, is_derived = (
        each.relations[each.bags.get(name, name)].is_derived for each in (before, normal)
    )
    if is_bag and is_derived and not was_derived:
        raise InputError.of(
            "C0977",
            f"The bag `{name}` gets rules, but holds tuples of {holders}, whose copies would not "
            "add up with theirs.",
            None,
            "give the rules a bag of their own",
        )


def _columns(relation: Relation) -> str:
    columns = ", ".join(
        f"{name}: {type_}" for name, type_ in zip(relation.columns, relation.types, strict=True)
    )
    return f"`({columns})`"
