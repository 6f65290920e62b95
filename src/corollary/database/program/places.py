"""Places of rules in the user's files, which a warehouse keeps beside the text of a program.

The text that it stores is printed anew, without comments: line 5 of it is not line 5 of a file.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from corollary.core.logic import Clause
from corollary.core.printer import print_clause, print_program, print_reaction
from corollary.core.program import (
    Declaration,
    NormalProgram,
    Program,
    Reaction,
    owner_of,
    sql_texts,
)
from corollary.source import SourceFile, Span
from corollary.warehouse.catalog.program_layout import layout_of

PLACES = "places"
"""Where a layout has the places."""

Placed = TypeVar("Placed", Declaration, Clause, Reaction)


def stored_program(program: Program, normal: NormalProgram) -> tuple[str, dict[str, Any]]:
    """Return what a commit stores of a program: its text, and its layout with the places."""
    files: dict[str, int] = {}

    def place(node: Clause | Reaction) -> list[int] | None:
        if node.span is None:
            return None
        return [files.setdefault(node.span.file.name, len(files)), node.span.line]

    places = {
        "clauses": [place(each) for each in program.clauses],
        "reactions": [place(each) for each in program.reactions],
        "files": list(files),
    }
    return print_program(program), {**layout_of(normal), PLACES: places}


def with_places(program: Program, layout: Mapping[str, Any]) -> Program:
    """Return a program whose rules, alerts and constraints have the places that were stored.

    What is quoted there is the printed rule, since the file may have changed since.
    """
    places = layout.get(PLACES)
    if places is None:
        return program
    files = places["files"]

    def placed(node: Placed, text: str, place: list[int] | None) -> Placed:
        if place is None:
            return node
        file, line = place
        lines = text.split("\n")
        span = Span(
            SourceFile(files[file], text, line),
            *(line, 1),
            *(line + len(lines) - 1, len(lines[-1]) + 1),
        )
        return replace(node, span=span)

    clauses = zip(program.clauses, places["clauses"], strict=True)
    reactions = zip(program.reactions, places["reactions"], strict=True)
    return replace(
        program,
        clauses=tuple(placed(each, print_clause(each), place) for each, place in clauses),
        reactions=tuple(placed(each, print_reaction(each), place) for each, place in reactions),
    )


def with_sql_places(program: Program) -> Program:
    """Return a program in which all that a statement of SQL has made has its place in it.

    The program keeps these statements; what is said of their rules is said of the statement.
    """
    spans = {
        name: _whole_span(SourceFile.of_statement(name, text))
        for name, text in sql_texts(program).items()
    }
    if not spans:
        return program

    def placed(made: Placed, relation: str) -> Placed:
        owner = owner_of(relation, spans)
        return made if owner is None else replace(made, span=spans[owner])

    return replace(
        program,
        declarations=tuple(placed(each, each.name) for each in program.declarations),
        clauses=tuple(placed(each, each.heads[0].relation) for each in program.clauses),
        reactions=tuple(placed(each, each.relation) for each in program.reactions),
    )


def _whole_span(file: SourceFile) -> Span:
    lines = file.text.split("\n")
    return Span(file, 1, 1, len(lines), len(lines[-1]) + 1)
