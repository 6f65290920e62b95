"""Files that users hand in for one transaction: their rows, read as sources are."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.errors import Diagnostic, InputError, Severity
from corollary.warehouse.extensions import input_of, is_delimited
from corollary.warehouse.sources.choose import source_of

if TYPE_CHECKING:
    import pyarrow as pa

HINT = "if the first line names the columns, say `--headers`"


def read_rows(
    file: str, relation: Relation, *, has_headers: bool = False
) -> "tuple[pa.Table, list[Diagnostic]]":
    """Return the rows of a file, whose name tells its form, and what is doubtful about it.

    Args:
        file: a file, a pattern of files or a Delta table.
        relation: the relation that the rows are of.
        has_headers: whether the first line of delimited text names the columns.

    Raises:
        InputError: it cannot be read, its name does not tell its form, or a row does not fit.
    """
    directive = input_of(relation, file, has_headers=has_headers)
    source = source_of(directive, relation, base=Path(), root=Path(Path.cwd().anchor))
    may_have_headers = is_delimited(file) and not has_headers
    try:
        change = source.difference(None, from_python((), relation))
    except InputError as error:
        raise InputError(map(_hinted, error.diagnostics)) if may_have_headers else error from None
    warnings = list(change.warnings)
    if may_have_headers and relation.arity and relation.columns in to_python(change.added):
        message = f"A row of `{file}` holds just the names of the columns of `{relation.name}`."
        warnings.append(Diagnostic("C0974", message, None, HINT, severity=Severity.WARNING))
    return change.added, warnings


def _hinted(finding: Diagnostic) -> Diagnostic:
    """Return a finding, with a hint if it is about the first line."""
    is_first = finding.span is not None and finding.span.line == 1
    note = f"{finding.note}; {HINT}" if finding.note else HINT
    return replace(finding, note=note) if is_first else finding
