"""Places of rules that SQL has made: the statements that the program keeps of them.

A warehouse stores the rules as text. What is said of them is to be said of the statement.
"""

from dataclasses import replace
from typing import TypeVar

from corollary.core.logic import Clause
from corollary.core.program import Declaration, Program, Reaction, owner_of, sql_texts
from corollary.source import SourceFile, Span

_Made = TypeVar("_Made", Declaration, Clause, Reaction)


def with_sql_places(program: Program) -> Program:
    """Return a program in which all that a statement has made has its place in it."""
    spans = {
        name: _whole(SourceFile.of_statement(name, text))
        for name, text in sql_texts(program).items()
    }
    if not spans:
        return program

    def placed(made: _Made, relation: str) -> _Made:
        owner = owner_of(relation, spans)
        return made if owner is None else replace(made, span=spans[owner])

    return replace(
        program,
        declarations=tuple(placed(each, each.name) for each in program.declarations),
        clauses=tuple(placed(each, each.heads[0].relation) for each in program.clauses),
        reactions=tuple(placed(each, each.relation) for each in program.reactions),
    )


def _whole(file: SourceFile) -> Span:
    lines = file.text.split("\n")
    return Span(file, 1, 1, len(lines), len(lines[-1]) + 1)
