"""The quarantine: malformed records, set aside in a relation while the good rows are inserted."""

from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.core.engine import Engine
from corollary.core.program import Column, Declaration, Program, TypeName
from corollary.core.states import State
from corollary.database.program.parts import SOURCE_PREFIX
from corollary.database.writing.operations import Operation
from corollary.errors import InputError
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS, QUARANTINE, quarantine_change

if TYPE_CHECKING:
    import pyarrow as pa

QUARANTINE_DECLARATION = Declaration(
    QUARANTINE.name,
    tuple(
        Column(name, TypeName(str(type_)))
        for name, type_ in zip(QUARANTINE.columns, QUARANTINE.types, strict=True)
    ),
)
"""The declaration of the quarantine."""

QUARANTINE_PART = SOURCE_PREFIX + "quarantine"
"""The part that all sources together write to."""


def with_quarantine(program: Program) -> Program:
    """Return the program with the quarantine.

    Raises:
        InputError: it has another relation of that name.
    """
    for each in program.declarations:
        if each.name == QUARANTINE_DECLARATION.name:
            if each == QUARANTINE_DECLARATION:
                return program
            raise InputError.of(
                "C0959",
                f"`{each.name}` is where malformed records are set aside, and has other columns.",
                each.span,
                "give the relation another name, or refuse malformed records with "
                "`--bad-rows abort`",
            )
    return replace(program, declarations=(*program.declarations, QUARANTINE_DECLARATION))


def with_same_quarantine(program: Program, before: Program) -> Program:
    """Return the program with the quarantine if the one before it had it: it may hold records."""
    return with_quarantine(program) if has_quarantine(before) else program


def has_quarantine(program: Program) -> bool:
    """Return whether a program has a quarantine."""
    return QUARANTINE_DECLARATION in program.declarations


def quarantined(engine: Engine, program: Program) -> "pa.Table":
    """Return the records in the quarantine of the program in force."""
    return engine.read(QUARANTINE.name) if has_quarantine(program) else NO_BAD_ROWS


def quarantine_operations(
    engine: Engine,
    program: Program,
    source: str,
    bad_rows: "pa.Table",
    reread_files: frozenset[str] | None,
) -> list[Operation]:
    """Return how the quarantine changes when a source was read.

    Malformed records replace the earlier ones of the files that were read again; None for all.
    """
    if not bad_rows.num_rows and not has_quarantine(program):
        return []
    if reread_files is not None and not reread_files:  # nothing goes, so nothing is read
        return [Operation(State.ADDED, QUARANTINE.name, bad_rows, QUARANTINE_PART)]
    added, removed = quarantine_change(quarantined(engine, program), source, bad_rows, reread_files)
    return [
        Operation(State.REMOVED, QUARANTINE.name, removed, QUARANTINE_PART),
        Operation(State.ADDED, QUARANTINE.name, added, QUARANTINE_PART),
    ]
