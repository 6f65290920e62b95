"""Places of rules in the user's files, which a warehouse keeps beside the text of a program.

The text that it stores is printed anew, without comments: line 5 of it is not line 5 of a file.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from corollary.core.logic import Clause
from corollary.core.printer import print_clause, print_program, print_reaction
from corollary.core.program import NormalProgram, Program, Reaction
from corollary.source import SourceFile, Span
from corollary.warehouse.catalog.program_layout import layout_of

PLACES = "places"
"""Where a layout has the places."""

Placed = TypeVar("Placed", Clause, Reaction)


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
