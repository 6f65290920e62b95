"""Payments and deliveries through Spark: the monitor of the paper's introduction, at length.

| figure | how it is taken |
|---|---|
| orders | shops, each a document; files of payments and deliveries go through `watch` |
| growth | the largest state that Spark keeps of a shop, against that behind the first batch |

A delivery comes a batch after its payment. Finished orders are collected, so state must not grow.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corollary
from bench.figure import Figure
from corollary.documents.spark import ARRIVALS, watch
from corollary.engines.spark.session import local

NAME = "orders"
ABOUT = "100,000 orders of 8 shops through Spark, joined on the order, collected when done"
ORDERS = 100_000
BATCHES = 10
SHOPS = 8
QUERY = "/shop[payment/order/*$o][delivery/order/*$o]"
GROWTH = 2.5
"""A document is collected when it has twice the nodes that it needed last."""


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    orders = int(ORDERS * scale)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        spark = local()
        sizes: list[int] = []
        start = time.perf_counter()
        with corollary.open(place / "warehouse", engine="local") as database:
            for number in range(BATCHES + 1):
                _write(place / "arrivals", number, orders // BATCHES)
                frame = spark.readStream.schema(ARRIVALS).json(str(place / "arrivals"))
                watch(
                    database,
                    frame,
                    {"done": QUERY},
                    template="shop[!bank !carrier]",
                    checkpoint=place / "checkpoint",
                    trigger={"availableNow": True},
                ).awaitTermination()
                sizes.append(_largest_state(spark, place / "checkpoint"))
            seconds = time.perf_counter() - start
            found = len(database.relation("document_answer"))
        wrong = () if found == orders else (f"{found:,} of {orders:,} orders were found",)
        about = f"{orders:,} orders in {BATCHES + 1} batches, {seconds:.0f} s"
        yield Figure("orders", orders / seconds, "/s", None, about, differences=wrong)
        about = f"of the largest state: {sizes[0]:,} bytes at first, {sizes[-1]:,} at last"
        yield Figure("growth", max(sizes[1:]) / sizes[0], "×", GROWTH, about)


def _write(folder: Path, number: int, orders: int) -> None:
    """Write a file with the payments of a batch, and the deliveries of the one before."""
    folder.mkdir(exist_ok=True)
    rows = []
    each = orders // SHOPS + 1
    for at in range(orders):
        shop = f"shop{at % SHOPS}"
        if number < BATCHES:
            paid = f"<payment><order>o{number}.{at}</order></payment>"
            rows.append((shop, "bank", number * each + at // SHOPS, paid))
        if number:
            sent = f"<delivery><order>o{number - 1}.{at}</order></delivery>"
            rows.append((shop, "carrier", number * each + at // SHOPS, sent))
    lines = (
        json.dumps({"doc": doc, "fn": fn, "seq": seq, "xml": xml, "eos": False})
        for doc, fn, seq, xml in rows
    )
    (folder / f"{number:03}.json").write_text("\n".join(lines), "utf-8")


def _largest_state(spark: Any, checkpoint: Path) -> int:
    """Return how many bytes the largest state of a document has, as Spark keeps it."""
    state = spark.read.format("statestore").load(str(checkpoint))
    column = state.schema["value"].dataType.names[0]
    rows = state.select(f"value.{column}").collect()
    return max(len(str(row[0])) for row in rows)
