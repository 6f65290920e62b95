"""What is found in SQL text: by running it, or as a file of a program."""

import corollary
from corollary.core.program import Program
from corollary.database.program.loaded_program import load_program
from corollary.errors import Diagnostic, InputError
from corollary.frontends.sql.statements.files import compile_files
from corollary.source import SourceFile

FILE_MARK = "-- file"
"""The first line of a text that is a file of a program, not statements to run."""


def sql_findings(text: str) -> tuple[Diagnostic, ...]:
    """Return the errors of a text; none if it can be run."""
    try:
        if text.startswith(FILE_MARK):
            load_program(compile_files([SourceFile("program.sql", text)], Program()))
        else:
            with corollary.open(None, engine="local") as database:
                database.sql(text)
    except InputError as error:
        return error.diagnostics
    return ()
