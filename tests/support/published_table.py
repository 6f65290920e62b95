"""A warehouse with one relation, its table as readers see it, and a Python set that says the truth.

Run as a program it publishes, and dies where `COROLLARY_FAULT` says.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from corollary.core.arrow import from_python, to_python
from corollary.core.program import Relation
from corollary.core.table_options import TableOptions
from corollary.core.types import FLOAT, NUMBER, SYMBOL, Kind, Type
from corollary.warehouse.catalog.catalog_rows import NewCommit
from corollary.warehouse.publishing.checked_log import TableFinding
from corollary.warehouse.publishing.delta_schema import published_schema
from corollary.warehouse.publishing.history import StoredHistory
from corollary.warehouse.publishing.outputs import PublishedVersion
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import RelationDelta, Warehouse

Row = tuple[Any, ...]

EDGE = Relation("edge", ("x", "y"), (NUMBER, SYMBOL), is_derived=False)
ODD = Relation(
    "odd",
    ("key", "f", "text"),
    (NUMBER, FLOAT.with_null(True), SYMBOL.with_null(True)),
    is_derived=True,
)


class House:
    """A warehouse in which one relation changes and is published."""

    def __init__(
        self, root: Path, relation: Relation = EDGE, options: TableOptions | None = None
    ) -> None:
        self.root = root
        self.relation = relation
        self.warehouse = Warehouse.open(root)
        self.set_options(options or TableOptions())
        self.history = StoredHistory(self.warehouse)
        self.rows: dict[str, Row] = {}
        latest = self.warehouse.catalog.latest_commit()
        self.commit = latest.number if latest else 0

    def set_options(self, options: TableOptions) -> None:
        catalog = self.warehouse.catalog
        self.publisher = Publisher(self.root, catalog, options={self.relation.name: options})

    @property
    def path(self) -> Path:
        return self.publisher.table_path(self.relation.name)

    @property
    def log(self) -> Path:
        return self.path / "_delta_log"

    def entry(self, version: int) -> Path:
        return self.log / f"{version:020d}.json"

    def delta(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    def change(self, added: Iterable[Row] = (), removed: Iterable[Row] = ()) -> int:
        """Make a commit of the part of a change that is effective."""
        come = {repr(row): row for row in added if repr(row) not in self.rows}
        go = {repr(row): row for row in removed if repr(row) in self.rows}
        for key in go:
            del self.rows[key]
        self.rows |= come
        delta = RelationDelta(
            from_python(come.values(), self.relation), from_python(go.values(), self.relation)
        )
        return self.store({self.relation.name: delta})

    def store(self, changes: dict[str, RelationDelta]) -> int:
        program = ("", {}) if self.commit == 0 else None
        new = NewCommit(self.commit, frozenset(), {}, program=program)
        self.commit = self.warehouse.commit(new, changes)
        return self.commit

    def publish(self) -> PublishedVersion | None:
        return self.publisher.publish(self.relation, self.commit, self.history)

    def republish(self) -> PublishedVersion:
        return self.publisher.republish(self.relation, self.commit, self.history)

    def check(self) -> list[TableFinding]:
        """Compare every row of the table with the warehouse."""
        return self.publisher.check(self.relation, self.history)

    def demand_truth(self) -> None:
        """Compare what `deltalake` and DuckDB read with the model, values and types."""
        import duckdb

        schema = published_schema(self.relation)
        truth = sorted(repr(self._as_published(row)) for row in self.rows.values())
        dataset = self.delta().to_pyarrow_dataset()
        by_deltalake = dataset.to_table()
        by_duckdb = duckdb.sql("select * from dataset").to_arrow_table()
        for found in (by_deltalake, by_duckdb):
            assert sorted(map(repr, to_python(found.cast(schema)))) == truth
        assert by_deltalake.num_rows == self.delta().count()

    def _as_published(self, row: Row) -> Row:
        if not row:
            return (True,)
        return tuple(
            Decimal(value) if type_.kind is Kind.UNSIGNED and value is not None else value
            for value, type_ in zip(row, self.relation.types, strict=True)
        )

    def demand_good(self) -> None:
        """Demand that the table is true, and that nobody finds anything wrong with it."""
        self.demand_truth()
        assert self.check() == []
        assert self.publisher.lag([self.relation]) == {self.relation.name: 0}

    def referenced(self) -> set[str]:
        return {Path(uri).name for uri in self.delta().file_uris()}

    def data_files(self) -> set[str]:
        return {each.name for each in self.path.iterdir() if each.name[0] != "_"}

    def change_data(self, first: int = 0) -> dict[int, dict[str, list[str]]]:
        """Return what `deltalake` says that versions changed: rows, by the kind of their change."""
        feed = self.delta().load_cdf(starting_version=first)
        found: dict[int, dict[str, list[str]]] = {}
        for row in pa.RecordBatchReader.from_stream(feed).read_all().to_pylist():
            version, kind = row.pop("_commit_version"), row.pop("_change_type")
            assert row.pop("_commit_timestamp") is not None
            found.setdefault(version, {}).setdefault(kind, []).append(repr(tuple(row.values())))
        return {
            version: {kind: sorted(rows) for kind, rows in kinds.items()}
            for version, kinds in found.items()
        }


def nullable(type_: Type) -> Type:
    return type_.with_null(True)


def random_row(rng: random.Random) -> Row:
    """Return a row of ODD from a small domain with all that is odd about values."""
    return (
        rng.randrange(12),
        rng.choice([None, float("nan"), 0.0, -1.5, float("inf"), float("-inf"), 5e-324]),
        rng.choice([None, "", "a", "é", "x" * 40, "x" * 40 + "y", "\U0010ffff" * 33, "'\"\n"]),
    )


def publish_and_die(root: Path, fault: str, feed: str = "") -> None:
    """Publish in a process of its own that is killed at a point."""
    environment = {**os.environ, "COROLLARY_FAULT": fault}
    found = subprocess.run(
        [sys.executable, __file__, str(root), feed],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert found.returncode == -9, found.stderr.decode()


if __name__ == "__main__":
    house = House(Path(sys.argv[1]), options=TableOptions(change_data_feed=bool(sys.argv[2])))
    house.publish()
