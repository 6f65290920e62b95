"""One large CSV file: how long it takes until it is committed and published, and how much memory.

| figure | how it is taken |
|---|---|
| load | `corollary run --warehouse`, against DuckDB: a table, its key checked, a view as a table |
| rate | rows a second on the clock |
| memory | anonymous memory at the peak; for 50 million rows at most 8 GiB |

This runs only when asked for: `make bench ARGS="--only load --rows 50000000"` writes 5 GB. The file
is written batch by batch, and nothing begins if the disk has no room for it and what is made of it.
"""

import shutil
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
from bench.measure import difference, in_order
from bench.process import run_corollary, run_duckdb

NAME = "load"
ABOUT = "one CSV file, 10,000,000 rows (--rows): processor time (clock), memory"
ROWS = 10_000_000
BATCH_ROWS = 1_000_000
TEXTS_MAX = 10_000_000
ROWS_A_TEXT = 5
"""So often every account occurs, as long as there are not too many of them."""
ROW_BYTES = 100
DISK_FACTOR = 5
"""The file, a warehouse with changes, snapshots and index files, and DuckDB's database."""
MEMORY_ROWS, MEMORY_BAR_GIB = 50_000_000, 8.0
GIGABYTE = 1 << 30

PROGRAM = """
.decl event(id: number, account: symbol, kind: symbol, day: date, amount: decimal(12, 2),
    note: symbol?) key(id)
.input event(filename="event.csv", delimiter=",", headers=true)
.decl entry(id: number, kind: symbol, day: date, amount: decimal(12, 2)) virtual
entry(i, k, d, a) :- event(i, _, k, d, a, _).
.decl daily(kind: symbol, day: date, events: number, total: decimal(18, 2))
daily(k, d, n, t) :-
    entry(_, k, d, _), n = count : { entry(_, k, d, _) }, t = sum a : { entry(_, k, d, a) }.
.output daily
"""
SQL = """
SET preserve_insertion_order = false;
CREATE TABLE event AS FROM read_csv(
    'event.csv', header = true, auto_detect = false, delim = ',', quote = '',
    columns = {id: 'BIGINT', account: 'VARCHAR', kind: 'VARCHAR', day: 'DATE',
        amount: 'DECIMAL(12, 2)', note: 'VARCHAR'});
SELECT error('two rows have one key') FROM event GROUP BY id HAVING count(*) > 1;
CREATE TABLE daily AS
SELECT kind, day, count(*) AS events, sum(amount)::DECIMAL(18, 2) AS total FROM event GROUP BY ALL;
CHECKPOINT;
"""

KINDS = tuple(f"kind of event {number:02}" for number in range(20))
NOTES = tuple(f"note number {number:04} of a long list" for number in range(1_000))
FIRST_DAY, DAYS = 20_454, 365


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    rows = max(10, round(ROWS * scale))
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        _check_disk(place, rows)
        size = write(place / "event.csv", rows)
        (place / "load.dl").write_text(PROGRAM, encoding="utf-8")
        warehouse = place / "warehouse"
        ours = run_corollary(
            *("run", str(place / "load.dl"), "-F", str(place), "--warehouse", str(warehouse))
        )
        rival = run_duckdb(SQL, place / "rival.duckdb", place, THREADS)
        about = f"{rows:,} rows, {size / 1e9:.2f} GB: {ours} against {rival}"
        ratio = ours.processor / rival.processor
        yield Figure("load", ratio, "×", None, about, differences=tuple(_differences(place)))
        about = "rows a second on the clock, in millions"
        yield Figure("rate", rows / ours.wall / 1e6, "M/s", None, about)
        about = f"anonymous, at the peak; DuckDB {rival.memory / GIGABYTE:.2f} GiB"
        bar = MEMORY_BAR_GIB if rows <= MEMORY_ROWS else None
        yield Figure("memory", ours.memory / GIGABYTE, "GiB", bar, about)


def write(file: Path, rows: int, seed: int = SEED) -> int:
    """Write rows to a file, batch by batch; return its size."""
    random = np.random.default_rng(seed)
    texts = min(TEXTS_MAX, max(1, rows // ROWS_A_TEXT))
    schema = _batch(0, 1, 1, random).schema
    options = pyarrow.csv.WriteOptions(
        quoting_style="none", quoting_header="none", batch_size=65_536
    )
    with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
        for first in range(0, rows, BATCH_ROWS):
            writer.write_table(_batch(first, min(BATCH_ROWS, rows - first), texts, random))
    return file.stat().st_size


def _batch(first: int, count: int, texts: int, random: np.random.Generator) -> pa.Table:
    account = pa.array(10**11 + random.integers(0, texts, count)).cast(pa.string())
    cents = random.integers(-1_000_000, 10_000_000, count)
    words = np.stack((cents, cents >> 63), axis=1)
    amount = [None, pa.py_buffer(words.tobytes())]
    day = pa.array((FIRST_DAY + random.integers(0, DAYS, count)).astype(np.int32))
    note = pa.array(random.integers(0, len(NOTES), count), mask=random.random(count) < 0.1)
    return pa.table(
        {
            "id": np.arange(first + 1, first + 1 + count),
            "account": pc.binary_join_element_wise("account ", account, ""),
            "kind": pa.array(KINDS).take(pa.array(random.integers(0, len(KINDS), count))),
            "day": day.cast(pa.date32()),
            "amount": pa.Array.from_buffers(pa.decimal128(12, 2), count, amount),
            "note": pa.array(NOTES).take(note),
        }
    )


def _check_disk(place: Path, rows: int) -> None:
    needed, free = DISK_FACTOR * ROW_BYTES * rows, shutil.disk_usage(place).free
    if free < needed:
        raise SystemExit(
            f"{rows:,} rows need {needed / 1e9:.0f} GB in {place.parent}, which has "
            f"{free / 1e9:.0f} GB; choose another directory with TMPDIR, or fewer --rows"
        )


def _differences(place: Path) -> Iterator[str]:
    """Say how the published view differs from DuckDB's."""
    ours = DeltaTable(place / "warehouse" / "tables" / "daily").to_pyarrow_table()
    with duckdb.connect(str(place / "rival.duckdb"), read_only=True) as connection:
        rival = connection.sql("FROM daily").to_arrow_table()
    yield from difference("corollary", in_order(ours), "duckdb", rival)
