"""Places of rules that SQL has made: the statements that the program keeps of them.

A warehouse stores the rules as text. What is said of them is to be said of the statement.
"""

from dataclasses import replace

from corollary.core.logic import Clause
from corollary.core.program import Program, owner_of, sql_texts
from corollary.source import SourceFile, Span


def with_sql_places(program: Program) -> Program:
    """Return a program in which rules that a statement has made have their place in it."""
    spans = {
        name: _whole(SourceFile.of_statement(name, text))
        for name, text in sql_texts(program).items()
    }
    if not spans:
        return program

    def placed(clause: Clause) -> Clause:
        owner = owner_of(clause.heads[0].relation, spans)
        return clause if owner is None else replace(clause, span=spans[owner])

    return replace(program, clauses=tuple(map(placed, program.clauses)))


def _whole(file: SourceFile) -> Span:
    lines = file.text.split("\n")
    return Span(file, 1, 1, len(lines), len(lines[-1]) + 1)
