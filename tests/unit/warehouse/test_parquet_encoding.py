"""Tables come back from Parquet as they were, whatever their encodings."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from corollary.warehouse.files.column_bounds import statistics_of
from corollary.warehouse.files.parquet_encoding import (
    ROW_GROUP_ROWS,
    from_parquet,
    statistics_in,
    to_parquet,
)

EXTREMES = pa.table(
    {
        "number": pa.array([2**63 - 1, -(2**63), 0, None], pa.int64()),
        "unsigned": pa.array([0, 2**64 - 1, None, 1], pa.uint64()),
        "float": pa.array([math.inf, -math.inf, math.nan, None], pa.float64()),
        "small": pa.array([Decimal("9" * 16 + ".99"), Decimal("-0.01"), None, Decimal(0)]).cast(
            pa.decimal128(18, 2)
        ),
        "large": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), None, Decimal(0)]).cast(
            pa.decimal128(38, 0)
        ),
        "bool": pa.array([True, None, False, True]),
        "date": pa.array([date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1)]),
        "time": pa.array(
            [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), None, None],
            pa.timestamp("us", tz="UTC"),
        ),
        "text": pa.array(["", "x" * 10_000, None, "\U0010ffff"]),
    }
)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_extremes(rows: int) -> None:
    table = EXTREMES.slice(0, rows)
    found = from_parquet(to_parquet(table, statistics_of(table)))
    assert found.schema == EXTREMES.schema
    assert repr(found.to_pylist()) == repr(table.to_pylist())


def test_few_and_many_values_in_several_groups() -> None:
    rows = ROW_GROUP_ROWS + 5
    table = pa.table(
        {
            "key": np.arange(rows)[::-1].copy(),
            "few": pc.cast(pa.array(np.arange(rows) % 7), pa.string()),
            "many": pc.cast(pa.array(np.arange(rows)), pa.string()),
        }
    )
    coded = table.set_column(1, "few", table.column("few").dictionary_encode())
    for given in (table, coded):
        data = to_parquet(given, statistics_of(given))
        assert from_parquet(data).equals(table)
        footer = pq.read_metadata(pa.BufferReader(data))
        assert footer.num_row_groups == 2
        assert statistics_in(footer.metadata) == statistics_of(table)
        encodings = [footer.row_group(0).column(at).encodings for at in range(3)]
        assert "DELTA_BINARY_PACKED" in encodings[0]
        assert ["RLE_DICTIONARY" in each for each in encodings] == [False, True, False]
