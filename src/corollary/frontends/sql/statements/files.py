"""Files of SQL as parts of a program."""

from collections.abc import Sequence
from pathlib import Path

from corollary.core.program import Program
from corollary.errors import Diagnostic, InputError
from corollary.frontends.datalog.preprocessor import read_source
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.definitions import PlacedDefinition, compile_definitions
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.source import SourceFile


def read_sql_files(paths: Sequence[Path], others: Program) -> Program:
    """Return the program of files of SQL, whose statements may be in any order.

    Args:
        paths: the files.
        others: the rest of the program, whose relations queries may name.

    Raises:
        InputError: with the findings of all files.
    """
    findings: list[Diagnostic] = []
    files: list[SourceFile] = []
    for path in paths:
        try:
            files.append(read_source(path))
        except InputError as error:
            findings += error.diagnostics
    if findings:
        raise InputError(findings)
    return compile_files(files, others)


def compile_files(files: Sequence[SourceFile], others: Program) -> Program:
    """Return the program of texts of SQL, whose statements may be in any order.

    Raises:
        InputError: with the findings of all texts.
    """
    definitions: list[PlacedDefinition] = []
    findings: list[Diagnostic] = []
    for file in files:
        try:
            statements = parse_statements(file)
        except InputError as error:
            findings += error.diagnostics
            continue
        for statement in statements:
            if isinstance(statement, nodes.Definition):
                definitions.append(PlacedDefinition(statement, file))
            else:
                findings.append(_not_a_definition(statement))
    if findings:
        raise InputError(findings)
    return compile_definitions(definitions, others)


def _not_a_definition(
    statement: nodes.Drop | nodes.Write | nodes.TransactionBoundary | nodes.QueryStatement,
) -> Diagnostic:
    match statement:
        case nodes.QueryStatement():
            what, cure = "asks a question", 'ask it with `corollary sql W "SELECT …"`'
        case nodes.Drop():
            what, cure = "drops something", "leave out the `CREATE` instead"
        case _:
            what, cure = "changes data", "make changes with `corollary shell W` or `db.sql(…)`"
    return Diagnostic(
        "C1380",
        f"A file of a program only defines things, and this statement {what}.",
        statement.span,
        cure,
    )
