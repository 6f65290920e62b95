"""A bill of materials by path, each path a text: what computing and storing so much costs.

| figure | how it is taken |
|---|---|
| paths | `corollary run --warehouse`, published, against DuckDB's recursion into a database file |
| storing | the same against `corollary run` that only counts the paths |
| memory | anonymous memory at the peak of the first |

`--scale 11.8` makes 11.7 million paths.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from deltalake import DeltaTable

from bench.contenders import THREADS
from bench.data import SEED
from bench.figure import Figure
from bench.process import MEGABYTE, Spent, run_corollary, run_duckdb

NAME = "paths"
ABOUT = "a bill of materials by path, 990,000 paths as texts, processor time (clock)"
WIDTH, LEVELS, PARTS = 34, 8, 4
"""Products of a level at scale 1; levels; parts of each product, of the next level."""
PROGRAM = """
.decl part(whole: symbol, part: symbol, quantity: number) key(whole, part)
.input part(filename="part.csv", delimiter=",", headers=true)
.decl made_of(whole: symbol, path: symbol, part: symbol, quantity: number)
made_of(w, cat(w, "/", p), p, n) :- part(w, p, n).
made_of(w, cat(path, "/", p), p, n * m) :- made_of(w, path, q, n), part(q, p, m).
"""
SQL = """
CREATE TABLE made_of AS
WITH RECURSIVE part AS (
    FROM read_csv('part.csv', header = true, auto_detect = false, delim = ',', quote = '',
        columns = {whole: 'VARCHAR', part: 'VARCHAR', quantity: 'BIGINT'})),
made_of(whole, path, part, quantity) AS (
    SELECT whole, whole || '/' || part, part, quantity FROM part
    UNION
    SELECT made_of.whole, path || '/' || part.part, part.part, made_of.quantity * part.quantity
    FROM made_of JOIN part ON part.whole = made_of.part)
FROM made_of;
CHECKPOINT;
"""
DIGEST = """
SELECT count(*), sum(quantity)::VARCHAR, bit_xor(hash(whole, path, part, quantity)) FROM {table}
"""


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write(place / "part.csv", bill(max(PARTS, round(WIDTH * scale))))
        stored = _run(place, ".output made_of", "--warehouse", str(place / "warehouse"))
        counted = _run(place, ".printsize made_of")
        rival = run_duckdb(SQL, place / "rival.duckdb", place, THREADS)
        paths, differences = _compare(place)
        about = f"{paths:,} paths: {stored} against {rival}"
        ratio = stored.processor / rival.processor
        yield Figure("paths", ratio, "×", None, about, differences=differences)
        about = f"computing alone {counted}"
        yield Figure("storing", stored.processor / counted.processor, "×", None, about)
        about = f"anonymous, at the peak; DuckDB {rival.memory / MEGABYTE:.0f} MB"
        yield Figure("memory", stored.memory / MEGABYTE, "MB", None, about)


def write(file: Path, table: pa.Table) -> None:
    """Write a table without quotes."""
    options = pyarrow.csv.WriteOptions(quoting_style="none", quoting_header="none")
    pyarrow.csv.write_csv(table, file, options)


def bill(width: int, seed: int = SEED) -> pa.Table:
    """Return `part(whole, part, quantity)`: every product has four parts of the next level."""
    random = np.random.default_rng(seed)
    whole = np.repeat(np.arange(width * (LEVELS - 1)), PARTS)
    first = np.repeat(random.integers(0, width, width * (LEVELS - 1)), PARTS)
    # Neighbours of a first part, so that no product has the same part twice.
    chosen = (first + np.tile(np.arange(PARTS), width * (LEVELS - 1))) % width
    part = (whole // width + 1) * width + chosen
    names = (
        pc.binary_join_element_wise("P", pa.array(1_000_000 + each).cast(pa.string()), "")
        for each in (whole, part)
    )
    quantity = pa.array(random.integers(1, 5, len(whole)))
    return pa.table(dict(zip(("whole", "part", "quantity"), (*names, quantity), strict=True)))


def _run(place: Path, directive: str, *arguments: str) -> Spent:
    program = place / "paths.dl"
    program.write_text(PROGRAM + directive, encoding="utf-8")
    return run_corollary("run", str(program), "-F", str(place), *arguments)


def _compare(place: Path) -> tuple[int, tuple[str, ...]]:
    """Return how many paths there are, and what differs: counts, sums, hashes of all rows."""
    ours = DeltaTable(place / "warehouse" / "tables" / "made_of").to_pyarrow_dataset()
    with duckdb.connect(str(place / "rival.duckdb")) as connection:
        connection.register("ours", ours)
        found, expected = (
            connection.execute(DIGEST.format(table=table)).fetchall()[0]
            for table in ("ours", "made_of")
        )
    wrong = () if found == expected else (f"corollary has {found}, duckdb {expected}",)
    return int(found[0]), wrong
