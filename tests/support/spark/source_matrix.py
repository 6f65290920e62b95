"""What `format("corollary")` does in any session: classic, Connect, or that of a cluster.

| row | relation | written, then overwritten by |
|---|---|---|
| nulls | `edge(x, y?)`, with a key | `FRAMES` |
| bags | `copies(x)` | |
| records | `pairs(x, pair)` | |

Each is written as a batch, overwritten, read as it is, as it was and as changes, and a stream
writes its changes into another relation. A reader sees what was granted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import corollary

PROGRAM = """
.type Pair = [a: number, b: number]
.decl edge(x: number, y: symbol?) key(x)
.decl copies(x: number) bag
.decl pairs(x: number, pair: Pair)
.decl edge_too(x: number, y: symbol?)
.decl copies_too(x: number) bag
.decl pairs_too(x: number, pair: Pair)
.decl known(y: symbol?)
known(y) :- edge(_, y).
"""
Rows = list[tuple[Any, ...]]
FRAMES: dict[str, tuple[str, Rows, Rows]] = {
    "edge": ("x long, y string", [(1, "a"), (2, None)], [(2, None), (3, "c")]),
    "copies": ("x long", [(1,), (1,), (2,)], [(1,), (2,), (2,)]),
    "pairs": ("x long, pair struct<a: long, b: long>", [(1, (7, 8))], [(2, (9, 10))]),
}


def tuples(frame: Any, *columns: str) -> Counter[tuple[Any, ...]]:
    """The rows of a frame, with structs as tuples."""
    found = frame.select(*columns).collect()
    return Counter(tuple(tuple(v) if isinstance(v, tuple) else v for v in row) for row in found)


def check_matrix(
    spark: Any, directory: Path, patiently: Callable[[Callable[[], Any]], Any] = lambda work: work()
) -> None:
    """Check all rows of the matrix in a session whose processes see a directory."""
    path = str(directory / "w")

    def read(**options: Any) -> Any:
        return spark.read.format("corollary").options(**options).load(path)

    with corollary.open(path, engine="local") as db:
        db.load(text=PROGRAM)
        for number, (name, (columns, before, now)) in enumerate(FRAMES.items()):
            at, names = 2 + 3 * number, [each.split()[0] for each in columns.split(", ", 1)]
            for mode, rows in (("append", before), ("overwrite", now)):
                frame = spark.createDataFrame(rows, columns).repartition(2)
                save = frame.write.format("corollary").mode(mode)
                save.option("relation", name).save(path)
            assert tuples(read(relation=name), *names) == Counter(now), name
            assert tuples(read(relation=name, versionAsOf=at), *names) == Counter(before), name
            feed = {"relation": name, "readChangeFeed": "true", "startingVersion": at}
            changes = tuples(read(**feed), *names, "_change_type", "_commit_version")
            assert changes == Counter(
                [
                    *((*row, "insert", at) for row in before),
                    *(
                        (*row, "delete", at + 1)
                        for row in (Counter(before) - Counter(now)).elements()
                    ),
                    *(
                        (*row, "insert", at + 1)
                        for row in (Counter(now) - Counter(before)).elements()
                    ),
                ]
            ), name
            stream = spark.readStream.format("corollary").options(**feed).load(path)
            writer = stream.writeStream.format("corollary").trigger(availableNow=True)
            writer = writer.options(
                relation=f"{name}_too",
                op="_change_type",
                order="_commit_version",
                checkpointLocation=str(directory / name),
            )
            patiently(lambda writer=writer: writer.start(path).awaitTermination())
            assert tuples(read(relation=f"{name}_too"), *names) == Counter(now), name
            assert Counter(db.relation(f"{name}_too").rows()) == Counter(now), name
        db.grant("ann", "known")
    assert tuples(read(relation="known", reader="ann"), "y") == Counter([(None,), ("c",)])
    with pytest.raises(Exception, match="C1040"):
        read(relation="edge", reader="ann").collect()
