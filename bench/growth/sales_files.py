"""Sales as Parquet files, written chunk by chunk: as many rows as the disk has room for."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.data import SEED

FILE_ROWS = 1_000_000
TEXTS = 10_000_000
"""Distinct texts, however many rows there are beyond that."""
PRODUCTS, STORES = 10_000, 500
CATEGORIES, REGIONS = 50, 20
ROW_BYTES = 22
"""On disk; the warehouse takes about as much again for each order of the relation."""

PROGRAM = """
.decl sale(id: number, product: number, store: number, amount: number, note: symbol) key(id)
.input sale(filename="sale/*.parquet")
.decl product(id: number, category: number) key(id)
.input product(filename="product.parquet")
.decl store(id: number, region: number) key(id)
.input store(filename="store.parquet")
.decl line(category: number, region: number, id: number, amount: number) virtual
line(c, r, i, a) :- sale(i, p, s, a, _), product(p, c), store(s, r).
.decl answer(category: number, region: number, total: number)
answer(c, r, t) :- line(c, r, _, _), t = sum a : { line(c, r, _, a) }.
"""
STORED = ("answer", "answer.aggregate1")
"""What the program stores: to compute it anew is to do what `QUERY` does."""

QUERY = """
SELECT category, region, sum(amount) AS total
FROM sale JOIN product ON product = product.id JOIN store ON store = store.id
GROUP BY category, region
"""


def write_files(directory: Path, rows: int) -> int:
    """Write all relations; return the bytes of the sales."""
    (directory / "sale").mkdir(parents=True)
    random = np.random.default_rng(SEED)
    product = {"id": np.arange(PRODUCTS), "category": random.integers(0, CATEGORIES, PRODUCTS)}
    store = {"id": np.arange(STORES), "region": random.integers(0, REGIONS, STORES)}
    pq.write_table(pa.table(product), directory / "product.parquet")
    pq.write_table(pa.table(store), directory / "store.parquet")
    size = 0
    for first in range(0, rows, FILE_ROWS):
        file = directory / "sale" / f"{first // FILE_ROWS:05}.parquet"
        pq.write_table(sales(first, min(FILE_ROWS, rows - first)), file, compression="zstd")
        size += file.stat().st_size
    (directory / "sales.dl").write_text(PROGRAM, encoding="utf-8")
    return size


def sales(first: int, count: int) -> pa.Table:
    """Return the sales with some numbers; the same number has the same sale in every size."""
    random = np.random.default_rng([SEED, first])
    ids = np.arange(first, first + count)
    numbers = pa.array(ids % TEXTS).cast(pa.string())
    return pa.table(
        {
            "id": ids,
            "product": random.integers(0, PRODUCTS, count),
            "store": random.integers(0, STORES, count),
            "amount": random.integers(1, 10_000, count),
            "note": pc.binary_join_element_wise("note ", numbers, ""),
        }
    )
