"""Pieces: sets of tuples that never change, small ones on the driver, large ones in files.

A piece stands in Spark as a temporary view: over a local relation (small) or over Parquet files
(large), so no query has a history. Views and files of pieces that nobody holds are dropped before
the next query.
"""

import shutil
import uuid
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.core.types import Type
from corollary.engines.spark.scratch_directory import ScratchDirectory
from corollary.engines.spark.session import describe_jobs
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.columns import FAULT, ddl_of, names_of, schema_of
from corollary.engines.spark.sql.session_modes import Modes
from corollary.engines.spark.sql.single_partition import in_one_part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = 20_000
"""Up to so many tuples are fetched to the driver, and sent along with queries that read them."""


class ImmutableSet:
    """Distinct tuples.

    Attributes:
        types: of the columns.
        size: how many there are.
        nulls: for each column in Spark, whether there is a null in it.
        table: the tuples as Spark holds them, if they are on the driver.
    """

    def __init__(
        self,
        pieces: "Pieces",
        types: tuple[Type, ...],
        size: int,
        table: pa.Table | None = None,
        *,
        path: Path | None = None,
        nulls: tuple[bool, ...] = (),
    ) -> None:
        self.types = types
        self.size = size
        self.nulls = nulls if table is None else _nulls(table)
        self.table = table
        self._path = path
        self._pieces = pieces
        self._view: str | None = None
        self._rows: list[tuple[object, ...]] | None = None
        if path is not None:
            weakref.finalize(self, pieces.garbage.append, (None, path))

    @property
    def view(self) -> str:
        """The name of its view, made when it is asked for."""
        if self._view is None:
            self._view = self._pieces.new_name()
            self._pieces.show(self._view, self.types, self.table, self._path)
            weakref.finalize(self, self._pieces.garbage.append, (self._view, None))
        return self._view

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """The tuples of a small piece in a form that can be hashed; NaN is equal to itself."""
        if self._rows is None:
            assert self.table is not None
            columns = [_hashable(column) for column in self.table.columns]
            self._rows = list(zip(*columns, strict=True))
        return self._rows

    @property
    def nbytes(self) -> int:
        """The bytes it takes, about: 8 for each value in a file."""
        if self.table is None:
            return 8 * self.size * max(1, len(self.types))
        return int(self.table.nbytes)


def _nulls(table: pa.Table) -> tuple[bool, ...]:
    return tuple(column.null_count > 0 for column in table.columns)


def _hashable(column: pa.ChunkedArray) -> list[object]:
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return ["nan" if value != value else value for value in values]  # noqa: PLR0124
    return values


class Tuples:
    """Distinct tuples in several disjoint pieces."""

    __slots__ = ("pieces", "types")

    def __init__(self, types: tuple[Type, ...], pieces: Iterable[ImmutableSet] = ()) -> None:
        self.types = types
        self.pieces = tuple(each for each in pieces if each.size)

    def __len__(self) -> int:
        return sum(each.size for each in self.pieces)

    def __add__(self, other: "Tuples") -> "Tuples":
        return Tuples(self.types, (*self.pieces, *other.pieces))

    @property
    def nbytes(self) -> int:
        """The bytes they take."""
        return sum(each.nbytes for each in self.pieces)

    @property
    def nulls(self) -> tuple[bool, ...]:
        """For each column in Spark, whether there is a null in it."""
        held = [each.nulls for each in self.pieces]
        return tuple(map(any, zip(*held, strict=True))) or (False,) * len(names_of(self.types))

    @property
    def is_local(self) -> bool:
        """Whether all of them are on the driver."""
        return all(each.table is not None for each in self.pieces)

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield tuples that are on the driver."""
        for each in self.pieces:
            yield from each.rows

    def table(self) -> pa.Table:
        """Return tuples that are on the driver."""
        tables = [each.table for each in self.pieces]
        return pa.concat_tables(tables) if tables else schema_of(self.types).empty_table()

    def query(self) -> sql.Node:
        """Return all of them as a query."""
        if not self.pieces:
            return sql.nothing(self.types)
        names = names_of(self.types)
        return sql.union(
            [
                sql.select([sql.column(name, "p") for name in names], sql.view(each.view, "p"))
                for each in self.pieces
            ]
        )


class Pieces:
    """Makes pieces, in one session and one directory.

    Attributes:
        session: a private one.
        small: up to so many tuples are kept on the driver.
        garbage: views and files that no piece needs any more.
        jobs: how many queries were run.
    """

    def __init__(
        self, session: "SparkSession", small: int = SMALL, scratch: Path | None = None
    ) -> None:
        self.session = session
        self.small = small
        self.garbage: deque[tuple[str | None, Path | None]] = deque()
        self.jobs = 0
        self.prefix = f"corollary_{uuid.uuid4().hex[:12]}"
        self._numbers = count(1)
        self._views: set[str] = set()
        self._scratch = scratch
        self._directory: ScratchDirectory | None = None
        self._modes = Modes(session)

    def new_name(self) -> str:
        """Return a name that nothing else in the session has."""
        return f"{self.prefix}_{next(self._numbers)}"

    # --- making pieces -------------------------------------------------------------------------

    def of_table(self, table: pa.Table, types: tuple[Type, ...]) -> Tuples:
        """Return tuples that are distinct, and as Spark holds them."""
        if table.num_rows <= self.small:
            return Tuples(types, [ImmutableSet(self, types, table.num_rows, table)])
        path = self._new_path()
        path.mkdir()
        pq.write_table(table, path / "0.parquet")
        piece = ImmutableSet(self, types, table.num_rows, path=path, nulls=_nulls(table))
        return Tuples(types, [piece])

    def run(
        self,
        query: sql.Node,
        types: tuple[Type, ...],
        about: str,
        inputs: int,
        *,
        expected: int = 0,
        has_faults: bool = False,
    ) -> tuple[Tuples, set[int]]:
        """Run a query whose rows are distinct.

        Args:
            query: its columns are those of the types.
            types: of the columns.
            about: what Spark shows for it.
            inputs: how many tuples it reads.
            expected: how many tuples it may give.
            has_faults: whether it has a further column, with the faults.

        Returns:
            the tuples, and the faults that there were.
        """
        self.sweep()
        with self._querying(query, about, inputs) as frame:
            if expected <= self.small:
                found = frame.limit(self.small + 1).toArrow()
                if found.num_rows <= self.small:
                    return self._fetched(found, types, has_faults)
            return self._written(frame, types, has_faults)

    def _fetched(
        self, found: pa.Table, types: tuple[Type, ...], has_faults: bool
    ) -> tuple[Tuples, set[int]]:
        faults: set[int] = set()
        if has_faults:
            marks = found.column(FAULT)
            faults = {each for each in marks.unique().to_pylist() if each is not None}
            found = found.filter(marks.is_null()) if faults else found
        table = found.select(names_of(types)).cast(schema_of(types))
        return self.of_table(table, types), faults

    def _written(
        self, frame: "DataFrame", types: tuple[Type, ...], has_faults: bool
    ) -> tuple[Tuples, set[int]]:
        from pyspark.sql import Observation
        from pyspark.sql import functions as spark

        path = self._new_path()
        noted = Observation()
        names = names_of(types)
        is_row = spark.col(FAULT).isNull() if has_faults else spark.lit(True)
        counts = [spark.count(spark.when(is_row, 1)).alias("rows")]
        counts += [spark.count(spark.when(is_row, spark.col(name))).alias(name) for name in names]
        if has_faults:
            counts.append(spark.collect_set(spark.col(FAULT)).alias("faults"))
        frame = frame.observe(noted, *counts).where(is_row)
        frame.select(*names).write.parquet(str(path))
        said = noted.get
        faults = set(said["faults"]) if has_faults else set()
        nulls = tuple(said[name] < said["rows"] for name in names)
        piece = ImmutableSet(self, types, said["rows"], path=path, nulls=nulls)
        return Tuples(types, [piece]), faults

    def fetch(self, query: sql.Node, about: str, inputs: int, limit: int | None = None) -> pa.Table:
        """Return the rows of a query that reads so many tuples, or the first ones."""
        self.sweep()
        with self._querying(query, about, inputs) as frame:
            return (frame if limit is None else frame.limit(limit)).toArrow()

    # --- views and files -----------------------------------------------------------------------

    def show(
        self, view: str, types: Sequence[Type], table: pa.Table | None, path: Path | None
    ) -> None:
        """Make a view of a table or of files."""
        if table is not None:
            # Spark loses rows that come behind empty chunks. What is known to be in one part is
            # joined where it is.
            frame = self.session.createDataFrame(table.combine_chunks()).coalesce(1)
        else:
            frame = self.session.read.schema(ddl_of(types)).parquet(str(path))
        frame.createOrReplaceTempView(view)
        self._views.add(view)

    def sweep(self) -> None:
        """Drop what no piece needs any more."""
        while self.garbage:
            view, path = self.garbage.popleft()
            if view is not None and view in self._views:
                self._views.remove(view)
                self.session.catalog.dropTempView(view)
            if path is not None:
                shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Drop all views and files."""
        self.garbage.extend((view, None) for view in list(self._views))
        self.sweep()
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _new_path(self) -> Path:
        if self._directory is None:
            self._directory = ScratchDirectory("corollary-sets", self._scratch)
        return self._directory.path / str(next(self._numbers))

    @contextmanager
    def _querying(self, query: sql.Node, about: str, inputs: int) -> Iterator["DataFrame"]:
        """Give the frame of a query, with settings that fit it."""
        is_small = inputs <= self.small
        self._modes.set_for(inputs, is_small=is_small)
        self.jobs += 1
        try:
            with describe_jobs(self.session, about):
                yield self.session.sql(sql.text_of(in_one_part(query) if is_small else query))
        finally:
            self._modes.rest()
