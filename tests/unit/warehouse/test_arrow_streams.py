"""Changes in the catalog are Arrow streams, which Arrow reads and would have written alike."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from corollary.warehouse.files.durable_files import from_arrow_stream, to_arrow_stream

VALUES = {
    "number": pa.array([1, None], pa.int64()),
    "text": pa.array(["a", None], pa.string()),
    "price": pa.array([Decimal("1.50"), None], pa.decimal128(12, 2)),
    "day": pa.array([date(2026, 11, 15), None], pa.date32()),
    "time": pa.array([datetime(2026, 11, 15, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
    "truth": pa.array([True, None], pa.bool_()),
}
FEW = pa.table(VALUES)
TABLES = {
    "few": FEW,
    "none": FEW.slice(0, 0),
    "two batches": pa.concat_tables([FEW, FEW.slice(1)]),
    "long texts": pa.table({"text": ["x" * 5000, "y"]}),
    "many": pa.table({"number": pa.array(range(1000))}),
}


def written_by_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", TABLES)
def test_streams_are_read_as_they_were_written(name: str) -> None:
    table = TABLES[name]
    data = to_arrow_stream(table)
    assert from_arrow_stream(data).equals(table)
    if name in ("few", "none", "two batches"):
        assert data == written_by_arrow(table)
    else:
        assert len(data) < len(written_by_arrow(table))
