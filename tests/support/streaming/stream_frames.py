"""Streams under test: frames without Spark, and files that come one after another."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pyarrow as pa
from pyspark import cloudpickle

from corollary.core.engine import slice_bounds

PROGRAM = """
.decl direct_link(src: symbol, dst: symbol)
.decl link(src: symbol, dst: symbol)
link(x, y) :- direct_link(x, y).
link(x, z) :- link(x, y), direct_link(y, z).
.output link
"""


class Mapped(NamedTuple):
    """What a function returns for the partitions of a frame."""

    replies: list[tuple[bytes]]

    def collect(self) -> list[tuple[bytes]]:
        return self.replies


class Frame:
    """As much of a streaming frame, or of one with an end, as is needed to read its rows."""

    sparkContext = addTag = removeTag = MagicMock()  # noqa: N815 - Spark's names
    getTags = staticmethod(set[str])  # noqa: N815

    def __init__(self, table: pa.Table, parts: int = 1, *, is_streaming: bool = True) -> None:
        self.table = table
        self.parts = parts
        self.isStreaming = is_streaming
        self.schema = table.schema
        self.sparkSession = self

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self.table

    def limit(self, rows: int) -> Frame:
        return Frame(self.table.slice(0, rows))

    def select(self, *names: str) -> Frame:
        return Frame(self.table.select(list(names)), self.parts)

    def mapInArrow(self, function: Callable[..., Iterator[pa.RecordBatch]], _: str) -> Mapped:  # noqa: N802
        """Call a function for each partition, twice, as if the first task had been lost."""
        sent = cloudpickle.dumps(function)
        found: list[tuple[bytes]] = []
        rows = self.table.num_rows
        for start, end in slice_bounds(rows, max(1, -(-rows // self.parts))):
            batches = self.table.slice(start, end - start).to_batches()
            for _ in range(2):
                replies = list(cloudpickle.loads(sent)(iter(batches)))
            found += [(each.column(0)[0].as_py(),) for each in replies]
        return Mapped(found)

    def createDataFrame(self, rows: list[Any], schema: pa.Schema) -> Frame:  # noqa: N802
        assert not rows
        return Frame(schema.empty_table())


def frame(*rows: tuple[Any, ...], names: tuple[str, ...] = ("src", "dst")) -> Frame:
    """A frame of texts."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return Frame(pa.table([pa.array(each, pa.string()) for each in columns], list(names)))


def checkpoint(directory: Path, query: str = "q1") -> str:
    """A checkpoint as Spark makes it, as far as it is looked at."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "metadata").write_text(json.dumps({"id": query}))
    return str(directory)


def arrive(folder: Path, name: str, *events: dict[str, Any], at: int = 0) -> None:
    """Let a file of JSON lines come into a folder, in one moment; `at` is its time."""
    folder.mkdir(exist_ok=True)
    written = folder / f".{name}"
    written.write_text("".join(json.dumps(each) + "\n" for each in events))
    if at:
        os.utime(written, (at, at))
    written.rename(folder / name)


def closure(edges: set[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """The pairs of nodes with a path between them."""
    found = set(edges)
    while more := {(x, z) for x, y in found for w, z in edges if w == y} - found:
        found |= more
    return found
