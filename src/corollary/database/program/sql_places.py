"""Places of rules that SQL has made: the statements that the program keeps of them.

A warehouse stores the rules as text. What is said of them is to be said of the statement.
"""

from dataclasses import replace

from corollary.core.logic import Clause
from corollary.core.program import Program
from corollary.source import SourceFile, Span


def with_sql_places(program: Program) -> Program:
    """Return a program in which rules that a statement has made have their place in it."""
    spans = {
        each.relation: _whole(SourceFile(f"SQL of {each.relation}", each.parameter("text")))
        for each in program.directives
        if each.name == "sql"
    }
    if not spans:
        return program

    def placed(clause: Clause) -> Clause:
        for head in clause.heads:
            name = head.relation
            while name not in spans:
                name, point, _ = name.rpartition(".")
                if not point:
                    return clause
            return replace(clause, span=spans[name])
        return clause

    return replace(program, clauses=tuple(map(placed, program.clauses)))


def _whole(file: SourceFile) -> Span:
    lines = file.text.split("\n")
    return Span(file, 1, 1, len(lines), len(lines[-1]) + 1)
