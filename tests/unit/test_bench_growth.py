"""The benchmark of growth: its files, what it watches, its figures and its plot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import duckdb
import numpy as np
import pytest

from support.paths import REPOSITORY

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

import corollary
from bench.growth import plot, report, sales_files
from bench.process import ProcessWatch


def step(seconds: float) -> dict[str, float]:
    return {
        "wall": seconds,
        "processor": seconds,
        **dict.fromkeys(("jobs", "stages", "tasks", "sent", "shuffled", "returned"), 1),
    }


def measured(rows: int, change: float, memory: int = 200_000_000) -> dict[str, object]:
    seconds = {
        "change": change,
        "recompute": 10,
        "query": 8,
        "first load": 25,
        "load": 20,
        "write": 5,
    }
    found = {name: step(each) for name, each in seconds.items()}
    for each in found.values():
        each["memory"] = memory
    return {"rows": rows, "memory": memory, "java": 1, "differs": False, **found}


def test_the_view_is_what_the_query_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sales_files, "FILE_ROWS", 400)
    size = sales_files.write_files(tmp_path, 1_000)
    files = sorted((tmp_path / "sale").iterdir())
    assert [each.name for each in files] == ["00000.parquet", "00001.parquet", "00002.parquet"]
    assert size == sum(each.stat().st_size for each in files)
    with corollary.open(tmp_path / "warehouse", engine="local") as database:
        database.run(tmp_path / "sales.dl", facts=tmp_path)
        found = sorted(database.relation("answer").rows())
        more = sales_files.sales(1_000, 10)
        with database.transaction() as transaction:
            transaction.insert("sale", more)  # no key is there already
    with duckdb.connect() as connection:
        for name in ("sale/*", "product", "store"):
            view = name.partition("/")[0]
            connection.execute(f"CREATE VIEW {view} AS FROM '{tmp_path}/{name}.parquet'")
        assert sorted(connection.sql(sales_files.QUERY).fetchall()) == found


def test_memory_and_processor_are_seen() -> None:
    watch = ProcessWatch()
    large = np.ones(20_000_000)
    code = "import time; [None for _ in iter(lambda: time.process_time() > 0.5, True)]"
    subprocess.run([sys.executable, "-c", code], check=True)
    watch.stop()
    assert watch.peak >= large.nbytes
    assert watch.seconds >= 0.3  # the last look was a moment before the end


def test_figures_are_judged() -> None:
    small, large = measured(10_000_000, 1.0), measured(100_000_000, 1.6)
    known = {(10_000_000, 4): small, (100_000_000, 4): large}
    every = (*report.figures(100_000_000, 4, large), *report.comparisons(100_000_000, 4, known))
    found = {each.name.partition(": ")[2]: each for each in every}
    assert found["recompute/change"].verdict == "missed"
    assert found["growth"].verdict == "missed"
    wrong = list(report.figures(10_000_000, 4, {**small, "differs": True}))
    assert [each.verdict for each in wrong][:3] == ["WRONG", "missed", ""]
    assert not list(report.comparisons(10_000_000, 4, {(10_000_000, 4): small}))


def test_the_plot_has_every_size(tmp_path: Path) -> None:
    drawn = plot.draw([measured(10**6, 1, 10**8), measured(10**8, 1, 2 * 10**8)])
    root = ET.fromstring(drawn)
    circles = [each for each in root if each.tag.endswith("circle")]
    assert len(circles) == 2 * len(plot.SERIES)
    places = [(float(each.get("cx", "")), float(each.get("cy", ""))) for each in circles]
    assert places[0][0] < places[1][0]
    assert places[0][1] > places[1][1]
