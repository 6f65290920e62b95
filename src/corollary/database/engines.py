"""Engines by name, and frames of the Spark session that the user works in."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.core.engine import Engine, MapResult, bulk_mode
from corollary.core.program import Directive, Relation
from corollary.data_class import dataclass
from corollary.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

LOCAL, SPARK = "local", "spark"
PROBING = "probing"
"""The engine of processes that only read beside one with Spark."""
SEQUENTIAL = "sequential"
"""The engine for upkeep of what is in partitions: it reads one after the other, without Spark."""
PLACEMENTS = ("auto", "driver", "partitions")
ENGINES = (LOCAL, SPARK)


def create_engine(
    name: str,
    spark: Any = None,
    placement: str = "auto",
    partition_count: int | None = None,
    *,
    bulk: str | None = None,
    driver_memory: int | str | None = None,
    scratch: Path | None = None,
) -> Engine:
    """Return a new, empty engine.

    Args:
        name: `local` or `spark`.
        spark: the session that the Spark engine uses; a local one if it is not given.
        placement: where it runs strata: `auto` or `driver`; in `partitions`, all relations are
            partitioned.
        partition_count: how many tasks run at once; what Spark says, for each job, if not given.
        bulk: which steps DuckDB computes: `auto`, `always` or `never`; by the environment if it is
            not given.
        driver_memory: the bytes for tuples on the driver, a number or a text such as `2G`; by the
            environment, or a quarter of the machine's memory, if it is not given.
        scratch: a directory for the files of large relations, which the driver and all tasks see;
            that of temporary files if it is not given.

    Raises:
        InputError: there is no such engine, or what it needs is not installed.
    """
    if name == LOCAL:
        from corollary.engines.local.engine import LocalEngine

        return LocalEngine(bulk_mode(bulk))
    if name in (PROBING, SEQUENTIAL):
        from corollary.engines.spark.engine import SparkEngine
        from corollary.engines.spark.jobs import Execution

        execution = Execution.PROBES if name == PROBING else Execution.SEQUENTIAL
        return SparkEngine(bulk=bulk_mode(bulk), scratch=scratch, execution=execution)
    if name != SPARK:
        cure = f"choose one of {', '.join(ENGINES)}"
        raise InputError.of("C0918", f"There is no engine `{name}`.", None, cure)
    if placement not in PLACEMENTS:
        cure = f"choose one of {', '.join(PLACEMENTS)}"
        raise InputError.of("C0918", f"There is no placement `{placement}`.", None, cure)
    from corollary.engines.spark.engine import SparkEngine

    return SparkEngine(
        spark,
        placement=placement,
        partition_count=partition_count,
        scratch=scratch,
        bulk=bulk_mode(bulk),
        memory=driver_memory,
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
        self, table: "pa.Table", relation: Relation, directive: Directive, path: Path | None
    ) -> None:
        """Write the rows of a relation to what an `.output` names.

        Raises:
            InputError: Spark cannot write it, or is missing.
        """
        from corollary.engines.spark.frames import write_output

        write_output(self.spark, table, relation, directive, path)

    def create_frame(self, table: "pa.Table", schema: "pa.Schema", view: str | None = None) -> Any:
        """Return rows as a frame of the session, and show it as a temp view if asked.

        Raises:
            InputError: the name is not valid for a view, or Spark is missing.
        """
        from corollary.engines.spark.frames import make_frame

        return make_frame(self.spark, table, schema, view)
