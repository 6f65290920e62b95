"""Programs as SQL: DuckDB evaluates what `show --as sql` prints of the cases, and must agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.sqlgen.dialect import DialectName
from corollary.sqlgen.script import print_sql
from support.cases.evaluation import AMPLE, WORKING, feed, name_of
from support.comparison import comparable

DIFFERENT = {
    "aggregates/float_sum": "DuckDB rounds after each term of a sum",
    "arithmetic/extremes": "DuckDB computes what no row needs",
    "choice/laziness": "DuckDB computes what is not chosen",
    "choice/missing_variable": "DuckDB computes what is not chosen",
    "choice/patterns": "DuckDB refuses a pattern that ends with the escape",
    "decimals/many_digits": "DuckDB has a smaller range for products of decimals",
    "decimals/sums_of_long": "DuckDB has a smaller range for sums of decimals",
}


def tables_and_views(db: Any) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return what creates the tables, what creates the views, and why some are missing."""
    normal = db._state.loaded.normal
    tables, views, reasons = {}, {}, {}
    for each in print_sql(normal, DialectName.DUCKDB, {}):
        if each.reason:
            reasons[each.relation] = each.reason
        elif normal.relations[each.relation].is_derived:
            views[each.relation] = each.text
        else:
            tables[each.relation] = each.text.split(";\n\nINSERT")[0]
    return tables, views, reasons


def in_utc(found: pa.Table, expected: pa.Schema) -> pa.Table:
    """Return rows of DuckDB's timestamps, which have no zone, as those in UTC where ours are."""
    fields = [
        theirs.with_type(ours.type)
        if pa.types.is_timestamp(theirs.type) and pa.types.is_timestamp(ours.type)
        else theirs
        for theirs, ours in zip(found.schema, expected, strict=True)
    ]
    return found.cast(pa.schema(fields))


@pytest.mark.matrix(8)
@pytest.mark.parametrize(
    "folder", [each for each in WORKING if name_of(each) not in DIFFERENT], ids=name_of
)
def test_duckdb_evaluates_a_case(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(folder, monkeypatch)
    with corollary.open(None, engine="local", limits=AMPLE) as db, duckdb.connect() as other:
        db.load(folder / "program.dl", facts=folder / "facts")
        other.execute("SET TimeZone = 'UTC'")
        tables, views, reasons = tables_and_views(db)
        engine = db._state.engine
        for name, text in tables.items():
            other.execute(text)
            rows = engine.read(name)
            if rows.num_columns:
                other.register("rows_of_the_case", rows)
                other.execute(f'INSERT INTO "{name}" SELECT * FROM rows_of_the_case')
            elif rows.num_rows:
                other.execute(f'INSERT INTO "{name}" VALUES (true)')
        missing = set(reasons)
        for name, text in views.items():
            if any(re.search(rf"\b{re.escape(each)}\b", text) for each in missing):
                missing.add(name)
                continue
            other.execute(text)
            found = other.sql(f'SELECT * FROM "{name}"').to_arrow_table()
            relation = db._state.loaded.normal.relations[name]
            if relation.is_virtual:
                continue
            expected = engine.read(name)
            if not relation.columns:
                assert found.num_rows == expected.num_rows
                continue
            found = in_utc(found, expected.schema)
            assert comparable(to_python(found)) == comparable(to_python(expected)), text
