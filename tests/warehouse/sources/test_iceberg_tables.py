"""Tables of Iceberg as sources, in a catalog of pyiceberg on SQLite."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.errors import InputError

pytestmark = pytest.mark.integration

PROGRAM = """
.decl p(id: number, v: symbol?, n: decimal(8,2)?, day: date?){more}
.input p(IO=iceberg, catalog=lake, table="city.things")
"""
SCHEMA = pa.schema(
    [("id", pa.int64()), ("v", pa.string()), ("n", pa.decimal128(8, 2)), ("day", pa.date32())]
)


def rows(*numbers: int, v: str = "a") -> pa.Table:
    columns = [
        [*numbers],
        [v] * len(numbers),
        [Decimal("1.50")] * len(numbers),
        [date(2026, 11, 15)] * len(numbers),
    ]
    arrays = [pa.array(each, f.type) for each, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table without rows, in a catalog that programs call `lake`."""
    from pyiceberg import catalog as catalogs
    from pyiceberg.utils.config import Config

    for name, value in {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path}/catalog.db",
        "WAREHOUSE": f"file://{tmp_path}/lake",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", Config())  # which it reads when it is imported
    catalog = catalogs.load_catalog("lake")
    catalog.create_namespace("city")
    return catalog.create_table("city.things", SCHEMA)


@pytest.fixture
def db() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as made:
        yield made


def run(db: corollary.Database, place: Path, more: str = "", text: str = PROGRAM) -> Any:
    (place / "p.dl").write_text(text.replace("{more}", more))
    return db.run(place / "p.dl")


def ids(db: corollary.Database) -> list[Any]:
    return sorted(row[0] for row in db.relation("p").rows())


def test_only_files_that_snapshots_do_not_share_are_read(
    table: Any, db: corollary.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.io import pyarrow as reading

    read: list[int] = []
    scan = reading.ArrowScan.to_table

    def counted(self: Any, tasks: Any) -> pa.Table:
        read.append(len(tasks))
        return scan(self, tasks)

    monkeypatch.setattr(reading.ArrowScan, "to_table", counted)
    run(db, tmp_path)
    assert ids(db) == []
    for number in range(3):
        table.append(rows(number * 2, number * 2 + 1))
    run(db, tmp_path)
    assert min(db.relation("p").rows()) == (0, "a", Decimal("1.50"), date(2026, 11, 15))
    table.append(rows(6))
    table.delete("id = 2")  # its file is written anew, without the row
    read.clear()
    run(db, tmp_path)
    assert ids(db) == [0, 1, 3, 4, 5, 6]
    assert read == [2, 1]
    table.overwrite(rows(7))
    run(db, tmp_path)
    assert ids(db) == [7]
    assert run(db, tmp_path).transaction is None


def test_rows_that_are_there_twice_stay_until_both_are_gone(
    table: Any, db: corollary.Database, tmp_path: Path
) -> None:
    table.append(rows(1, 2))
    table.append(rows(2, 3))
    run(db, tmp_path)
    table.delete("id = 1")
    run(db, tmp_path)
    assert ids(db) == [2, 3]
    table.overwrite(rows(3))
    run(db, tmp_path)
    assert ids(db) == [3]


def test_copies_are_counted(table: Any, db: corollary.Database, tmp_path: Path) -> None:
    table.append(rows(1, 1))
    run(db, tmp_path, " bag")
    table.append(rows(1))
    run(db, tmp_path, " bag")
    assert ids(db) == [1, 1, 1]


def test_a_column_that_is_missing_stops(table: Any, db: corollary.Database, tmp_path: Path) -> None:
    table.append(rows(1))
    with pytest.raises(InputError, match="C0950"):
        run(db, tmp_path, text=PROGRAM.replace("id: number", "id: number, w: number"))


@pytest.mark.parametrize("change", [("things", "nothing"), ("catalog=lake", "catalog=sea")])
def test_what_cannot_be_read(
    table: Any, db: corollary.Database, tmp_path: Path, change: tuple[str, str]
) -> None:
    with pytest.raises(InputError, match="C1743"):
        run(db, tmp_path, text=PROGRAM.replace(*change))


def test_without_the_package(
    table: Any, db: corollary.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(InputError, match="C1744"):
        run(db, tmp_path)
