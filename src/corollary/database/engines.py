"""Engines by name, and frames of the Spark session that the user works in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.core.engine import Engine, MapResult, TableHandle, bulk_mode
from corollary.core.program import Directive, Relation
from corollary.core.records.record_structs import TEXT
from corollary.data_class import dataclass
from corollary.database.options import (
    ENGINES,
    IN_PROCESS,
    LOCAL,
    PLACEMENTS,
    PROBING,
    SEQUENTIAL,
    SPARK,
    DatabaseOptions,
)
from corollary.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.engines.spark.frames import FrameOrder


def create_engine(
    options: DatabaseOptions = IN_PROCESS, spark: Any = None, *, scratch: str | None = None
) -> Engine:
    """Return a new, empty engine.

    Args:
        options: of the database.
        spark: the session that the Spark engine uses; a local one if it is not given.
        scratch: a directory for the files of large relations, which the driver and all tasks see,
            or a place in an object store; the directory of temporary files if it is not given.

    Raises:
        InputError: there is no such engine, or what it needs is not installed.
    """
    name, bulk = options.engine, bulk_mode(options.bulk)
    if name == LOCAL:
        from corollary.engines.local.engine import LocalEngine

        return LocalEngine(bulk)
    if name in (PROBING, SEQUENTIAL):
        from corollary.engines.spark.engine import SparkEngine
        from corollary.engines.spark.jobs import Execution

        execution = Execution.PROBES if name == PROBING else Execution.SEQUENTIAL
        return SparkEngine(bulk=bulk, scratch=scratch, execution=execution)
    if name != SPARK:
        cure = f"choose one of {', '.join(ENGINES)}"
        raise InputError.of("C0918", f"There is no engine `{name}`.", None, cure)
    if options.placement not in PLACEMENTS:
        cure = f"choose one of {', '.join(PLACEMENTS)}"
        raise InputError.of("C0918", f"There is no placement `{options.placement}`.", None, cure)
    from corollary.engines.spark.engine import SparkEngine

    return SparkEngine(
        spark, placement=options.placement, scratch=scratch, bulk=bulk, memory=options.driver_memory
    )


@dataclass(frozen=True, slots=True)
class SparkFrames:
    """Frames of a session; Spark is imported and started when it is needed.

    Attributes:
        spark: the session that was passed; None for the local one.
    """

    spark: Any = None

    def read(
        self, directive: Directive, paths: Sequence[Path | str], columns: Sequence[str]
    ) -> "tuple[tuple[str, ...], pa.Table]":
        """Return the names of all columns of what an `.input` names, and those that are wanted.

        Raises:
            InputError: Spark cannot read it, or is missing.
        """
        from corollary.engines.spark.frames import read_input

        return read_input(self.spark, directive, paths, columns)

    def map(
        self,
        directive: Directive,
        paths: Sequence[Path | str],
        columns: Sequence[str],
        function: "Callable[[pa.Table], MapResult]",
    ) -> "tuple[tuple[str, ...], pa.Table, list[MapResult]]":
        """Apply a function to the rows of what an `.input` names, in Spark's tasks.

        Returns:
            The names of all columns, those that are wanted without rows, and the results.

        Raises:
            InputError: Spark cannot read it, or is missing.
        """
        from corollary.engines.spark.frames import map_input

        return map_input(self.spark, directive, paths, columns, function)

    def write(
        self, tuples: TableHandle, relation: Relation, directive: Directive, path: Path | None
    ) -> None:
        """Write the rows of a relation to what an `.output` names.

        Raises:
            InputError: Spark cannot write it, or is missing.
        """
        from corollary.engines.spark.frames import write_output

        write_output(self.spark, tuples, relation, directive, path)

    def create_frame(
        self,
        parts: "Iterable[tuple[TableHandle, Mapping[str, pa.Scalar]]]",
        relation: Relation,
        view: str | None = None,
        records: str = TEXT,
        order: "FrameOrder | None" = None,
    ) -> Any:
        """Return tuples as a frame of the session, and show it as a temp view if asked.

        Args:
            parts: tuples, with the values of columns that follow theirs.
            relation: of the tuples.
            view: the name of the temp view.
            records: "text", or "struct" for records as structs.
            order: of the rows, if any.

        Raises:
            InputError: the name is not valid for a view, there are no structs for a type, or Spark
                is missing.
        """
        from corollary.engines.spark.frames import FrameRows, make_frame

        made = [
            (tuples, FrameRows(relation, records, tuple(constants.items())))
            for tuples, constants in parts
        ]
        return make_frame(self.spark, made, view, order)
