"""What is found in SQL text: by running it, or as a file of a program."""

import corollary
from corollary.analysis.check import diagnose
from corollary.core.program import Program
from corollary.database.program.loaded_program import load_program
from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql.statements.definitions import compile_files
from corollary.source import SourceFile

FILE_MARK = "-- file"
"""The first line of a text that is a file of a program, not statements to run."""


def sql_findings(text: str) -> tuple[Diagnostic, ...]:
    """Return the errors of a text, and of a file the warnings, too."""
    try:
        if text.startswith(FILE_MARK):
            program = compile_files([SourceFile("program.sql", text)], Program())
            load_program(program)
            return diagnose(program)
        with corollary.open(None, engine="local") as database:
            database.sql(text)
    except InputError as error:
        return error.diagnostics
    return ()
