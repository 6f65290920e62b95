"""Schema drift: what happens when the columns of files are not those of earlier files.

| the columns         | are detected by                    | and                                |
|---------------------|------------------------------------|------------------------------------|
| one more            | its name                           | ignored with a warning, or refused |
| in another order    | their names                        | found by name                      |
| one missing         | its name                           | refused (`C0950`)                  |
| one of another type | its type; or a file had good rows, | refused (`C0950`)                  |
|                     | and now has malformed records only |                                    |

Refused means: before anything is changed, even if malformed records go to quarantine. Otherwise a
renamed column would empty the relation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field

import pyarrow as pa

from corollary.core.program import Directive, Relation
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, InputError, Severity

RECORDED_COLUMNS_MAX = 1000
"""The maximum number of recorded column names; objects with more keys are maps, not rows."""
_LISTED_COLUMNS_MAX = 20
"""The maximum number of columns that an error lists."""
_MALFORMED_MIN_RECORDS = 2
"""With this many malformed records and no good one, the format of a file has changed."""


@dataclass(frozen=True, slots=True)
class ExpectedColumns:
    """The columns that the next file should have.

    Attributes:
        header_names: for each column of the relation, its name in headers, once that is known.
        known_columns: all columns that files have had so far.
        is_compact: whether the rows of a large file shall take little memory (`BlockTables`).
    """

    relation: Relation
    directive: Directive
    header_names: tuple[str, ...] = ()
    known_columns: frozenset[str] = frozenset()
    is_compact: bool = True

    @property
    def arity(self) -> int:
        """The number of columns of the relation."""
        return self.relation.arity


@dataclass(slots=True)
class FileSummary:
    """What is known of a file without its rows.

    Attributes:
        rows: how many good rows it has.
        malformed: the findings about malformed records; of many, the first ones.
        bad_count: how many malformed records it has.
        columns: the names of all its columns.
        header_names: for each column of the relation, its name in the headers of the file.
    """

    rows: int
    malformed: list[list[Diagnostic]]
    bad_count: int
    columns: tuple[str, ...] = ()
    header_names: tuple[str, ...] = ()


@dataclass(slots=True)
class FileRecords:
    """The records of a file.

    Attributes:
        table: its good rows, perhaps with duplicates.
        malformed: the findings about each malformed record.
        columns: the names of all its columns.
        header_names: for each column of the relation, its name in the headers of the file.
        has_regular_quotes: whether quotes are only around fields, and doubled inside.
    """

    table: pa.Table
    malformed: list[list[Diagnostic]] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    header_names: tuple[str, ...] = ()
    has_regular_quotes: bool = True

    @property
    def summary(self) -> FileSummary:
        """What is known of the file without its rows."""
        count = self.table.num_rows, self.malformed, len(self.malformed)
        return FileSummary(*count, self.columns, self.header_names)


def missing_column(
    expected: ExpectedColumns,
    file: str,
    column: str,
    columns: Sequence[str],
    cure: str = "take it out of the `.decl`",
) -> InputError:
    """Return the error for a file with some columns, but without a required one."""
    listed = ", ".join(f"`{name}`" for name in columns[:_LISTED_COLUMNS_MAX]) or "none"
    more = ", …" if len(columns) > _LISTED_COLUMNS_MAX else ""
    return InputError.of(
        "C0950",
        f"`{file}` has no column `{column}`, which `{expected.relation.name}` takes from it.",
        expected.directive.span,
        f"its columns are {listed}{more}; bring the column back, or {cure}; nothing was changed",
    )


def ambiguous_column(expected: ExpectedColumns, file: str, column: str) -> InputError:
    """Return the error for a file in which several columns have the same name."""
    return InputError.of(
        "C0950",
        f"`{file}` has several columns `{column}`.",
        expected.directive.span,
        "rename all but one of them; nothing was changed",
    )


def retyped_column(expected: ExpectedColumns, file: str, column: int, found: object) -> InputError:
    """Return the error for a file in which a column has another type."""
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


def check_any_good_row(
    expected: ExpectedColumns, file: str, reading: FileSummary, rows_before: int
) -> None:
    """Raise if a file that had good rows now has several records, and all are malformed."""
    if not rows_before or reading.rows or reading.bad_count < _MALFORMED_MIN_RECORDS:
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


def has_lost_everything(expected: ExpectedColumns, reading: FileSummary, rows_before: int) -> bool:
    """Return whether a file that promises a header had good rows and is empty now."""
    promises_header = expected.directive.parameter("headers") == "true"
    is_empty = not (reading.columns or reading.rows or reading.bad_count)
    return promises_header and is_empty and rows_before > 0


def check_new_columns(
    expected: ExpectedColumns, file: str, columns: Iterable[str]
) -> list[Diagnostic]:
    """Return a warning if a file has columns that no earlier file had.

    Raises:
        InputError: `C0951`; new columns are refused (`new_columns=refuse`).
    """
    old = expected.known_columns | {*expected.header_names, *expected.relation.columns}
    new = [name for name in columns if name not in old]
    if not new or not 0 < len(expected.known_columns) < RECORDED_COLUMNS_MAX:
        return []
    listed = ", ".join(f"`{name}`" for name in new[:10])
    message = f"`{file}` has got a new column {listed}."
    if len(new) > 1:
        message = f"`{file}` has got {len(new)} new columns: {listed}{', …' if new[10:] else ''}."
    relation, span = expected.relation.name, expected.directive.span
    if expected.directive.parameter("new_columns") == "refuse":
        cure = f"take it out, or allow it with `.input {relation}(new_columns=ignore)`"
        raise InputError.of("C0951", message, span, f"{cure}; nothing was changed")
    cure = f"it is ignored; to use it, add it to `.decl {relation}`"
    return [Diagnostic("C0951", message, span, cure, severity=Severity.WARNING)]
