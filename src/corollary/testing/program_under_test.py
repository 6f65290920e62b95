"""Edits a program for a case: views whose rows the case gives lose their rules."""

from collections.abc import Iterable
from dataclasses import replace

from corollary.core.logic import Clause
from corollary.core.program import (
    SQL_DIRECTIVE,
    Column,
    Declaration,
    NormalProgram,
    Program,
    Relation,
    TypeName,
    owner_of,
)
from corollary.database.program.names import readable_relation
from corollary.testing.cases import Rows


def with_mocked_views(program: Program, normal: NormalProgram, given: Iterable[Rows]) -> Program:
    """Return a program in which the views among given relations have no rules any more.

    Their columns and types stay; what only their rules need is left out of it.

    >>> from corollary.core.printer import print_program
    >>> from corollary.database.program.loaded_program import load_program
    >>> from corollary.frontends.datalog.parser import parse
    >>> from corollary.source import SourceFile, Span
    >>> file = SourceFile("p.dl", ".decl p(x: number) .decl q(x: number) q(x) :- p(x).")
    >>> program, rows = parse(file), Rows("q", Span(file, 1, 1, 1, 2))
    >>> mocked = with_mocked_views(program, load_program(program).normal, [rows])
    >>> print(print_program(mocked), end="")
    .decl p(x: number)
    .decl q(x: number)

    Raises:
        InputError: `C0916`, there is no such relation.
    """
    for rows in given:
        readable_relation(normal, rows.relation, rows.span)
    names = {
        rows.relation
        for rows in given
        if normal.relations[normal.bases.get(rows.relation, rows.relation)].is_derived
    }
    if not names:
        return program
    # What the statement of a view needs beside has its name, and a dot.
    made = {name for name in names if name in normal.statements}

    def is_mocked(relation: str) -> bool:
        return relation in names or owner_of(relation, made) is not None

    def kept(clause: Clause) -> Clause:
        return replace(clause, heads=tuple(h for h in clause.heads if not is_mocked(h.relation)))

    return replace(
        program,
        declarations=(
            *(each for each in program.declarations if not is_mocked(each.name)),
            *(
                replace(declaration_of(normal.relations[name], name), is_bag=name in normal.bags)
                for name in sorted(names)
            ),
        ),
        clauses=tuple(each for each in map(kept, program.clauses) if each.heads),
        directives=tuple(
            each
            for each in program.directives
            if not (is_mocked(each.relation) and each.name in ("output", SQL_DIRECTIVE))
        ),
    )


def declaration_of(relation: Relation, name: str) -> Declaration:
    """Return the declaration of a relation with the columns of another one."""
    columns = tuple(
        Column(each, TypeName.of(type_))
        for each, type_ in zip(relation.columns, relation.types, strict=True)
    )
    return Declaration(name, columns)
