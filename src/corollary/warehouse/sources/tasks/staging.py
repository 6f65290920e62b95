"""The rows of one reading: where tasks write them, and how those with the same key meet."""

from collections.abc import Sequence

import pyarrow as pa

from corollary.core.engine import TaskPool
from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files.file_rows import FileRows, RowsFile, StagingDirectory
from corollary.warehouse.files.places import remove_files
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS
from corollary.warehouse.sources.schema_drift import FileSummary
from corollary.warehouse.sources.source_spec import RunCollector, SourceSpec
from corollary.warehouse.sources.tasks import staged_rows
from corollary.warehouse.sources.tasks.portion_reader import PortionReport, TaskReport

QUARANTINED_MAX = 1_000_000
"""The maximum number of malformed records that one reading of a source sets aside."""


def key_partitions(spec: SourceSpec, tasks: TaskPool, rows: int) -> staged_rows.KeyPartitions:
    """Return the partitions in which rows that compete with each other meet."""
    count = tasks.partition_count(rows)
    columns = spec.identifying_columns
    return staged_rows.KeyPartitions(spec.relation, columns, count, tasks.partitions_of)


class Staging:
    """The rows of one reading.

    Args:
        spec: the `.input`.
        tasks: what reads it.
        rows: about how many there are.

    Attributes:
        directory: of the files that tasks write.
        write_pieces: writes rows in partitions of their keys; None if there is no key.
    """

    def __init__(self, spec: SourceSpec, tasks: TaskPool, rows: int) -> None:
        self._spec = spec
        self._tasks = tasks
        self.directory = StagingDirectory(tasks)
        self.write_pieces: staged_rows.PieceWriter | None = None
        if spec.key.columns:
            partitions = key_partitions(spec, tasks, rows)
            self.write_pieces = staged_rows.PieceWriter(self.directory.path, partitions)

    def rows(self, reports: Sequence[TaskReport]) -> FileRows:
        """Return the rows that tasks have read, with one for each key.

        Raises:
            ConstraintError: `C0954`, rows with the same key are in conflict.
        """
        staged = [each.staged for each in reports if each.staged is not None]
        return FileRows(self._spec.relation, self._resolve(staged), self._tasks, self.directory)

    def _resolve(self, staged: Sequence[RowsFile | staged_rows.RowPieces]) -> list[RowsFile]:
        if self.write_pieces is None:
            return [each for each in staged if isinstance(each, RowsFile)]
        pieces = [each for each in staged if isinstance(each, staged_rows.RowPieces)]
        resolver = staged_rows.KeyResolver(
            self.directory.path, self._spec.relation, self._spec.key, self._spec.directive, pieces
        )
        numbers = range(self.write_pieces.partitions.count if pieces else 0)
        found = self._tasks.run(f"check the key of {self._spec.relation.name}", resolver, numbers)
        remove_files(self.directory.path, [each.place.name for each in pieces])
        return [each for each in found if each is not None]


def collect(
    spec: SourceSpec,
    collector: RunCollector,
    name: str,
    portions: Sequence[PortionReport],
    *,
    rows_before: int = 0,
    columns: tuple[str, ...] | None = None,
) -> None:
    """Collect what tasks tell of a file, all of whose portions they have read.

    Args:
        spec: the `.input`.
        collector: of this run.
        name: of the file.
        portions: what they tell.
        rows_before: how many rows it had before.
        columns: the names of all its columns, if the portions do not say it.

    Raises:
        InputError: `C1530`, too many records are malformed; or those of `add_summary`.
    """
    counted = sum(each.bad_count for each in portions)
    if counted > QUARANTINED_MAX:
        raise too_many_bad_rows(spec.location.display_name, counted, spec.directive.span)
    bad = pa.concat_tables([NO_BAD_ROWS, *(each.bad_rows() for each in portions)])
    if columns is None:
        columns = tuple(dict.fromkeys(name for each in portions for name in each.columns))
    summary = FileSummary(
        sum(each.rows for each in portions),
        [finding for each in portions for finding in each.findings],
        counted,
        columns,
        portions[0].header_names if portions else (),
    )
    collector.add_summary(name, summary, bad, rows_before)


def too_many_bad_rows(place: str, counted: int, span: Span | None = None) -> InputError:
    """Return the error about more malformed records than are set aside at once."""
    return InputError.of(
        "C1530",
        f"{counted:,} records of `{place}` are malformed, and at most {QUARANTINED_MAX:,} are set "
        "aside at once.",
        span,
        "correct the source, or fit `.decl` and `.input` to its form; nothing was changed",
    )
