"""A program that only adds views to the one in force: what is loaded already stays as it is.

A definition costs what it defines, then, and not what the whole program does. Views of SQL are
added like this: they read what is declared, nothing reads them yet, and no pass of the rewriting
changes other relations because of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from corollary.analysis.bags import bags_of, rows_name
from corollary.analysis.check import CheckedProgram, check
from corollary.analysis.today import TODAY_RELATION
from corollary.analysis.traverse import atom_uses
from corollary.core.logic import Clause
from corollary.core.program import (
    SQL_DIRECTIVE,
    Declaration,
    Directive,
    Program,
    refresh_policies,
)
from corollary.data_class import dataclass
from corollary.database.program.loaded_program import LoadedProgram
from corollary.rewrite.normalise import normalise_added

Part = TypeVar("Part", Declaration, Directive)

ADDED_DIRECTIVES = (SQL_DIRECTIVE, "output")


@dataclass(frozen=True, slots=True)
class _Addition:
    """What a program has that another one has not.

    Attributes:
        places: for each clause of the program, its number among those of the other one, or among
            the added ones, counted from -1 down.
    """

    program: Program
    places: Sequence[int]

    @property
    def names(self) -> set[str]:
        """The relations that are added."""
        own = {each.name for each in self.program.declarations}
        return own | {rows_name(name) for name in bags_of(self.program)}


def add_relations(before: LoadedProgram, program: Program) -> LoadedProgram | None:
    """Return a program that only adds views of SQL to another; None if it does anything else.

    Raises:
        InputError: what is added is wrong.
    """
    addition = _find_addition(before.program, program)
    if addition is None:
        return None
    used = _used_declarations(before.program, addition.program.clauses)
    added = addition.program
    checked = check(
        replace(added, declarations=(*used, *added.declarations), functors=program.functors)
    )
    names = addition.names
    signatures = {name: each for name, each in checked.signatures.items() if name in names}
    is_other = any(each.is_event or not each.is_derived for each in signatures.values())
    if is_other or TODAY_RELATION in checked.signatures.keys() - before.checked.signatures.keys():
        return None
    declarations = (*before.checked.program.declarations, *_with_counts(added, checked))
    own = replace(
        checked.program,
        clauses=tuple(
            each
            for each in checked.program.clauses
            if all(head.relation in names for head in each.heads)
        ),
        declarations=declarations,
    )
    normal = normalise_added(replace(checked, program=own), names, before.normal)
    clauses = _typed_clauses(before, program, checked, addition)
    if normal is None or clauses is None:
        return None
    files = {each.span.file for each in added.clauses if each.span is not None}
    warnings = (each for each in checked.warnings if each.span and each.span.file in files)
    whole = replace(
        before.checked.program,
        declarations=declarations,
        directives=program.directives,
        clauses=clauses,
        sources=program.sources,
    )
    merged = CheckedProgram(
        whole, {**before.checked.signatures, **signatures}, (*before.checked.warnings, *warnings)
    )
    normal = replace(normal, policies=refresh_policies(program))
    return LoadedProgram(program, merged, normal)


def _find_addition(before: Program, after: Program) -> _Addition | None:
    """Return what is added, if nothing else is done and it consists of views of SQL."""
    same = ("types", "dependencies", "reactions", "pragmas", "functors")
    if (
        before.types
        or before.pragmas
        or any(getattr(before, each) != getattr(after, each) for each in same)
    ):
        return None
    known = {id(each): at for at, each in enumerate(before.clauses)}
    equal = {each: at for at, each in enumerate(before.clauses) if id(each) not in _ids(after)}
    clauses: list[Clause] = []
    places: list[int] = []
    for each in after.clauses:
        at = known.get(id(each), equal.get(each) if equal else None)
        if at is None:
            clauses.append(each)
            at = -len(clauses)
        places.append(at)
    if len({at for at in places if at >= 0}) != len(before.clauses):
        return None
    declarations = _not_among(before.declarations, after.declarations)
    directives = _not_among(before.directives, after.directives)
    if not declarations or directives is None:
        return None
    names = {each.name for each in declarations}
    heads = names | {rows_name(each.name) for each in declarations if each.is_bag}
    is_plain = (
        all(
            each.body
            and each.is_null_safe
            and each.dominating is None
            and all(not head.sign and head.relation in heads for head in each.heads)
            for each in clauses
        )
        and not any(each.is_equivalence or each.domains for each in declarations)
        and all(each.name in ADDED_DIRECTIVES and each.relation in names for each in directives)
    )
    if not is_plain:
        return None
    added = Program(
        declarations=tuple(declarations), clauses=tuple(clauses), directives=tuple(directives)
    )
    return _Addition(added, places)


def _ids(program: Program) -> set[int]:
    return {id(each) for each in program.clauses}


def _not_among(before: Sequence[Part], after: Sequence[Part]) -> list[Part] | None:
    """Return what a sequence has beyond another one; None if it lacks something of that."""
    known = {id(each) for each in before}
    rest = [each for each in after if id(each) not in known]
    new = {id(each) for each in after}
    for gone in before:
        if id(gone) not in new:
            if gone not in rest:
                return None
            rest.remove(gone)
    return rest


def _used_declarations(program: Program, clauses: Iterable[Clause]) -> list[Declaration]:
    """Return the declarations of the relations that some clauses read."""
    read = {use.atom.relation for clause in clauses for use in atom_uses(clause)}
    return [
        each for each in program.declarations if each.name in read or rows_name(each.name) in read
    ]


def _with_counts(added: Program, checked: CheckedProgram) -> list[Declaration]:
    """Return added declarations, and those of the counts of bags."""
    names = {each.name for each in added.declarations}
    return [
        each
        for each in checked.program.declarations
        if each.name in names or each.name in {rows_name(name) for name in names}
    ]


def _typed_clauses(
    before: LoadedProgram, program: Program, part: CheckedProgram, addition: _Addition
) -> tuple[Clause, ...] | None:
    """Return the checked clauses of a whole program: the rules of bags, then those of its text."""
    old, new = before.checked.program.clauses, part.program.clauses
    first = len(old) - len(before.program.clauses)
    first_new = len(new) - len(addition.program.clauses)
    if first != len(bags_of(before.program)):
        return None
    sets = {each.heads[0].relation: each for each in (*new[:first_new], *old[:first])}
    return (
        *(sets[name] for name in bags_of(program)),
        *(old[first + at] if at >= 0 else new[first_new - at - 1] for at in addition.places),
    )
