"""Values and names in published tables; readers that skip files by their bounds miss nothing."""

import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, QueryBuilder

import corollary
from corollary.core.arrow import from_python
from corollary.core.program import Relation
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    decimal,
)
from corollary.errors import WarehouseError
from corollary.warehouse.files.column_bounds import statistics_of
from corollary.warehouse.publishing.delta_schema import directory_name
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import RelationDelta, Warehouse
from support.published_table import EDGE, House, nullable

ALL_TYPES = Relation(
    "all_types",
    ("s", "n", "u", "f", "d", "b", "day", "at"),
    tuple(map(nullable, (SYMBOL, NUMBER, UNSIGNED, FLOAT, decimal(38, 4), BOOL, DATE, TIMESTAMP))),
    is_derived=False,
)
EXTREMES: tuple[tuple[Any, ...], ...] = (
    ("", 0, 0, 0.0, Decimal("0.0000"), False, date.min, datetime.min.replace(tzinfo=UTC)),
    (
        "\U0001f600\n\"'\\",
        2**63 - 1,
        2**64 - 1,
        math.inf,
        Decimal("9999999999999999999999999999999999.9999"),
        True,
        date.max,
        datetime.max.replace(tzinfo=UTC),
    ),
    (
        "x" * 999,
        -(2**63),
        2**63,
        math.nan,
        Decimal("-9999999999999999999999999999999999.9999"),
        True,
        date(1969, 12, 31),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
    (None,) * 8,
    ("a", 1, 1, 5e-324, Decimal("0.0001"), None, None, datetime(2026, 1, 1, 0, 0, 0, 1, UTC)),
)
ODD_NAMES = (
    'say "edge"',
    "it's",
    "a.b",
    "a-2e-b",
    "select",
    "\U0001f600",
    "é",
    "e\u0301",
    "../up",
    "..",
    "Path",
    "path",
    "_hidden",
    "100% & #1?",
    "n" * 400,
    "n" * 399 + "m",
)


def test_all_types_with_their_extremes(tmp_path: Path) -> None:
    house = House(tmp_path, ALL_TYPES)
    house.change(EXTREMES)
    house.publish()
    house.demand_good()
    for row in EXTREMES:
        house.change((), [row])
        house.publish()
        house.demand_truth()
        house.change([row])
    house.publish()
    house.demand_good()


def test_one_zero_and_one_nan(tmp_path: Path) -> None:
    relation = Relation("f", ("f",), (FLOAT,), is_derived=False)
    house = House(tmp_path, relation)
    house.change([(-0.0,), (math.nan,)])
    house.rows = {"0": (0.0,), "nan": (math.nan,)}
    house.publish()
    house.demand_truth()
    house.rows = {}
    gone = from_python([(0.0,), (-math.nan,)], relation)
    house.store({"f": RelationDelta(from_python([], relation), gone)})
    house.publish()
    house.demand_truth()


def test_nullary(tmp_path: Path) -> None:
    house = House(tmp_path, Relation("done", (), (), is_derived=True))
    for added, removed in (((), ()), ([()], ()), ((), [()]), ([()], ())):
        house.change(added, removed)
        house.publish()
        house.demand_good()
    assert house.delta().to_pyarrow_dataset().to_table().to_pydict() == {"holds": [True]}


def test_relation_without_any_change_is_an_empty_table(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.store({"other": RelationDelta(from_python([], EDGE), from_python([], EDGE))})
    house.publish()
    house.demand_good()


@pytest.mark.slow
def test_odd_names(tmp_path: Path) -> None:
    houses = []
    for name in ODD_NAMES:
        house = House(tmp_path / "a b#?é", Relation(name, ("x", "y"), (NUMBER, SYMBOL), False))
        house.change([(len(houses), "a"), (100, "b")])
        house.publish()
        houses.append(house)
    for house in houses:
        house.commit = houses[0].commit = max(each.commit for each in houses)
        house.change([(200, house.relation.name)], [(100, "b")])
        house.publish()
        house.demand_good()
        assert house.path.parent == tmp_path / "a b#?é" / "tables"


def test_every_relation_has_a_directory_of_its_own() -> None:
    assert len({directory_name(name) for name in ODD_NAMES}) == len(ODD_NAMES)
    assert max(len(directory_name(name)) for name in ODD_NAMES) < 250


def test_odd_columns_and_many(tmp_path: Path) -> None:
    odd = ("x", "X", "a b", "a.b", 'q"uote', "\U0001f600", "select")
    names = (*odd, *(f"c{at}" for at in range(64 - len(odd))))
    house = House(tmp_path, Relation("wide", names, (NUMBER,) * 64, is_derived=False))
    house.change([tuple(range(at, at + 64)) for at in range(9)])
    house.publish()
    house.change((), [tuple(range(3, 67))])
    house.publish()
    house.demand_good()
    dataset = house.delta().to_pyarrow_dataset()
    assert dataset.schema.names[:4] == ["x", "X_2", "a_b", "a.b"]
    for at, name in enumerate(dataset.schema.names):
        assert dataset.to_table(filter=ds.field((name,)) == 4 + at).num_rows == 1, name


def test_escapes_in_the_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="C0943"):
        Publisher(tmp_path / "a%20b", Warehouse.open(tmp_path / "a%20b").catalog)


# --- bounds --------------------------------------------------------------------------------------


def test_bounds_are_never_narrow() -> None:
    last, greatest = "\U0010ffff", datetime.max.replace(tzinfo=UTC)
    rows = pa.table(
        {
            "text": ["x" * 40, "y" * 40],
            "last": ["a", last * 40],
            "at": pa.array([1, 1_001], pa.timestamp("us", "UTC")),
            "end": pa.array([greatest, greatest], pa.timestamp("us", "UTC")),
            "inf": [1.0, math.inf],
            "u": pa.array([Decimal(2**64 - 1), Decimal(0)], pa.decimal128(20, 0)),
            "b": [False, None],
            "none": pa.nulls(2, pa.int64()),
        }
    )
    found = json.loads(statistics_of(rows))
    assert found["minValues"] == {
        "text": "x" * 32,
        "last": "a",
        "at": "1970-01-01T00:00:00.000Z",
        "end": "9999-12-31T23:59:59.999Z",
        "inf": 1.0,
        "u": 0,
        "b": False,
    }
    assert found["maxValues"] == {
        "text": "y" * 32 + last,
        "last": last * 40,
        "at": "1970-01-01T00:00:00.002Z",
        "end": "9999-12-31T23:59:59.999999Z",
        "inf": "Infinity",
        "u": 2**64 - 1,
        "b": False,
    }
    assert found["nullCount"]["none"] == 2
    assert statistics_of(pa.table({"x": [1], "f": [math.nan]})) == '{"numRecords":1}'


@pytest.mark.slow
@pytest.mark.parametrize("has_nan", [True, False])
def test_readers_that_skip_files_miss_nothing(tmp_path: Path, has_nan: bool) -> None:
    relation = replace(
        ALL_TYPES,
        columns=(*ALL_TYPES.columns, *(f"more{at}" for at in range(40))),
        types=(*ALL_TYPES.types, *(nullable(NUMBER),) * 40),
    )
    house = House(tmp_path, relation)
    rows = [row for row in EXTREMES if has_nan or repr(row[3]) != "nan"]
    for at, row in enumerate(rows):  # one file per row
        house.change([(*row, at, *(None,) * 38, at)])
        house.publish()
    dataset = house.delta().to_pyarrow_dataset()
    query = QueryBuilder().register("published", house.delta())
    for at, name in enumerate(relation.columns):
        type_ = dataset.schema.field(name).type
        values = [row[at] for row in house.rows.values()]
        for value in filter(_is_comparable, values):
            found = dataset.to_table(filter=ds.field(name) == pa.scalar(value, type_))
            assert found.num_rows == values.count(value), (name, value)
        missing = dataset.to_table(filter=ds.field(name).is_null())
        assert missing.num_rows == values.count(None), name
    for condition in ("f > 5", "f < 5", "isnan(f)", "f = cast('nan' as double)", "b", "not b"):
        kept = [row for row in house.rows.values() if _holds(condition, row[3], row[5])]
        by_duckdb = duckdb.sql(f"select n from dataset where {condition}").fetchall()
        by_datafusion = query.execute(f"select n from published where {condition}").read_all()
        assert len(by_duckdb) == by_datafusion.num_rows == len(kept), condition


def _is_comparable(value: Any) -> bool:
    return value is not None and repr(value) != "nan"


def _holds(condition: str, f: float | None, b: bool | None) -> bool:
    """Say whether a condition holds when NaN is the greatest number."""
    if "b" in condition and "nan" not in condition:
        return b is ("not" not in condition)
    if f is None:
        return False
    if math.isnan(f):
        return condition != "f < 5"
    return {"f > 5": f > 5, "f < 5": f < 5}.get(condition, False)


def test_parquet_readers_do_not_skip_nan(tmp_path: Path) -> None:
    house = House(tmp_path, Relation("f", ("f",), (FLOAT,), is_derived=False))
    house.change([(1.0,), (math.nan,)])
    house.publish()
    paths = [str(house.path / each) for each in house.referenced()]
    greater = duckdb.sql("select f from read_parquet($paths) where f > 5", params={"paths": paths})
    assert [repr(each) for each in greater.fetchall()] == ["(nan,)"]


def test_nested_columns_are_written_and_deleted(tmp_path: Path) -> None:
    """Bounds and the order of rows are those of other columns."""
    with corollary.open(tmp_path / "house", engine="local") as database:
        database.sql("CREATE TABLE t (tags ARRAY<STRING>, n INT, m MAP<STRING, INT>)")
        rows = ", ".join(f"(array('a', NULL), {n}, map('k', {n % 2}))" for n in range(60))
        database.sql(f"INSERT INTO t VALUES {rows}")
        database.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
        database.publish()
        database.sql("DELETE FROM t WHERE n = 3")
        database.publish()
    table = ds.dataset(DeltaTable(tmp_path / "house/tables/v").file_uris()).to_table()
    assert sorted(table.column("n").to_pylist()) == [n for n in range(60) if n != 3]
    assert set(map(tuple, table.column("tags").to_pylist())) == {("a", None)}


def test_integers_have_the_widths_that_sql_declares(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "w", engine="local") as database:
        database.sql("CREATE TABLE t (a TINYINT, b SMALLINT, c INT, d BIGINT, e ARRAY<INT>)")
        database.sql(
            "CREATE MATERIALIZED VIEW v AS "
            "SELECT *, named_struct('x', c) AS f, map(a, b) AS g, count(*) AS n FROM t GROUP BY ALL"
        )
        for c in (-1, 2**31 - 1):
            database.sql(f"INSERT INTO t VALUES (1, 2, {c}, 4, array(5, NULL))")
            database.publish()
        database.sql("DELETE FROM t WHERE c = -1")
        database.publish()
    table = DeltaTable(tmp_path / "w/tables/v")
    types = {each["name"]: each["type"] for each in json.loads(table.schema().to_json())["fields"]}
    assert [types[name] for name in "abcdn"] == ["byte", "short", "integer", "long", "long"]
    assert types["e"]["elementType"] == types["f"]["fields"][0]["type"] == "integer"
    assert (types["g"]["keyType"], types["g"]["valueType"]) == ("byte", "short")
    (row,) = table.to_pyarrow_table().to_pylist()
    most = 2**31 - 1
    assert [*row.values()] == [1, 2, most, 4, [5, None], {"x": most}, [(1, 2)], 1]
