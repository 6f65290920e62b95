"""Makes commits whose replicas follow them at once, until it is killed or all are made.

`python replica_writer.py WAREHOUSE BATCHES ROWS` goes on where the warehouse is; each batch of
edges comes in one commit, and half of it goes in the next one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import corollary


def main(warehouse: str, batches: int, rows: int) -> None:
    """Make the commits that are not there yet, and wait until the replicas have them all."""
    db = corollary.open(warehouse, engine="local", publish="commit")
    for number in range(len(db.relation("done")), batches):
        first = number * rows
        with db.transaction() as tx:
            tx.insert("done", [(number,)])
            tx.insert("edge", _edges(range(first, first + rows)))
            if number:
                tx.delete("edge", _edges(range(first - rows, first, 2)))
        print(number, flush=True)
    db.close()


def _edges(numbers: range) -> pa.Table:
    return pa.table({"x": list(numbers), "y": [f'{each % 1000}, "ä"' for each in numbers]})


def start_replica_writer(
    warehouse: Path, batches: int, rows: int, fault: str
) -> subprocess.Popen[str]:
    """Start it as a process, which dies at a point of `corollary.fault` if one is given."""
    return subprocess.Popen(
        [sys.executable, __file__, warehouse, str(batches), str(rows)],
        env={**os.environ, "COROLLARY_FAULT": fault},
        stdout=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
