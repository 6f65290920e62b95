"""Writes micro-batches by the stream writer of `format("corollary")`, as Spark does, until killed.

`python stream_writer.py DIRECTORY` has the warehouse `w` and the checkpoint there.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import from_arrow_schema

from corollary.spark import writing
from corollary.spark.source import CorollarySource


def main(directory: Path) -> None:
    """Write batch after batch; the first one is the first that is not noted as done."""
    writing.INLINE_ROWS = 1  # some tasks stage files, others do not
    done = directory / "checkpoint" / "commits"
    done.mkdir(exist_ok=True)
    options = {
        "path": str(directory / "w"),
        "relation": "copies",
        "checkpointLocation": str(directory / "checkpoint"),
    }
    source = CorollarySource(CaseInsensitiveDict(options))
    tasks = [pa.table({"x": [7]}), pa.table({"x": [7, 7]})]
    schema = from_arrow_schema(tasks[0].schema)
    print("ready")
    for number in count(len(list(done.iterdir()))):
        writer = source.streamWriter(schema, overwrite=False)
        messages = [writer.write(iter(each.to_batches())) for each in tasks]
        source.streamWriter(schema, overwrite=False).commit(list(messages), number)
        (done / str(number)).touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
