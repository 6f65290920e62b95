"""What a source expects of its files, and what happens when their columns are others than before.

| the columns         | are noticed by                     | and                                |
|---------------------|------------------------------------|------------------------------------|
| one more            | its name                           | ignored with a warning, or refused |
| in another order    | their names                        | found by name                      |
| one missing         | its name                           | refused (`C0950`)                  |
| one of another type | its type; or a file had good rows, | refused (`C0950`)                  |
|                     | and now has malformed records only |                                    |

Refused means: before anything is changed, also where malformed records go to quarantine. Otherwise
a renamed column would empty the relation.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from corollary.core.program import Directive, Relation
from corollary.errors import Diagnostic, InputError, Severity

MOST_COLUMNS = 1000
"""So many names of columns are noted; objects with more are maps, and no key of them is new."""
FEWEST = 2
"""A single malformed record is an accident; several and nothing else are a change of form."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the next file should be like.

    Attributes:
        named: for each column of the relation, its name in files with headers, once that is known.
        known: all columns that files have had so far.
    """

    relation: Relation
    directive: Directive
    named: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()

    @property
    def arity(self) -> int:
        """The number of columns of the relation."""
        return self.relation.arity


@dataclass(slots=True)
class Reading:
    """What a file holds.

    Attributes:
        table: its good rows; the same row may be there several times.
        malformed: the findings about each other record.
        columns: all columns that it names.
        named: for each column of the relation, its name in the headers of the file.
    """

    table: pa.Table
    malformed: list[list[Diagnostic]] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def missing(
    expected: Expected, file: str, column: str, cure: str = "take it out of the `.decl`"
) -> InputError:
    """Return the error of a file that has lost a column."""
    return InputError.of(
        "C0950",
        f"`{file}` has no column `{column}`, which `{expected.relation.name}` takes from it.",
        expected.directive.span,
        f"bring the column back, or {cure}; nothing was changed",
    )


def ambiguous(expected: Expected, file: str, column: str) -> InputError:
    """Return the error of a file in which two columns bear the name of one."""
    return InputError.of(
        "C0950",
        f"`{file}` has several columns `{column}`.",
        expected.directive.span,
        "rename all but one of them; nothing was changed",
    )


def retyped(expected: Expected, file: str, column: int, found: object) -> InputError:
    """Return the error of a file in which a column has another type."""
    relation = expected.relation
    type_ = relation.types[column]
    return InputError.of(
        "C0950",
        f"Column `{relation.columns[column]}` of `{relation.name}` is a `{type_}`, but in `{file}` "
        f"it is a `{found}`.",
        expected.directive.span,
        f"write the file with the old type, or change the type in `.decl {relation.name}`; "
        "nothing was changed",
    )


def refuse_lost_form(expected: Expected, file: str, reading: Reading, rows_before: int) -> None:
    """Raise if a file that had good rows has several records now, and all are malformed."""
    if not rows_before or reading.table.num_rows or len(reading.malformed) < FEWEST:
        return
    first = reading.malformed[0][0]
    found = Diagnostic(
        "C0950",
        f"No record of `{file}` is a row of `{expected.relation.name}` any more: {first.message}.",
        first.span,
        "correct the file, or fit `.decl` and `.input` to its new form; nothing was changed",
        () if expected.directive.span is None else ((expected.directive.span, "read by this"),),
    )
    raise InputError([found])


def notice_new_columns(expected: Expected, file: str, columns: Iterable[str]) -> list[Diagnostic]:
    """Return a warning if a file has columns that none has had before.

    Raises:
        InputError: `C0951`; they are to be refused (`new_columns=refuse`).
    """
    old = expected.known | {*expected.named, *expected.relation.columns}
    new = [name for name in columns if name not in old]
    if not new or not 0 < len(expected.known) < MOST_COLUMNS:
        return []
    listed = ", ".join(f"`{name}`" for name in new[:10])
    message = f"`{file}` has got a new column {listed}."
    if len(new) > 1:
        message = f"`{file}` has got {len(new)} new columns: {listed}{', …' if new[10:] else ''}."
    relation, span = expected.relation.name, expected.directive.span
    if expected.directive.parameter("new_columns") == "refuse":
        cure = f"take it out, or let it be with `.input {relation}(new_columns=ignore)`"
        raise InputError.of("C0951", message, span, f"{cure}; nothing was changed")
    cure = f"it is ignored; to use it, add it to `.decl {relation}`"
    return [Diagnostic("C0951", message, span, cure, severity=Severity.WARNING)]
