"""The benchmarks of small changes at tiny sizes: they end, and answers agree with DuckDB's."""

import math
import sys

import pyarrow as pa
import pytest

from support.paths import REPOSITORY

sys.path.append(str(REPOSITORY))  # `bench` stands beside `tests`, not in `src`

from bench.changes import small, windows, wire
from bench.changes.pair import INSERT, Edit, Pair, create

SCALE = 0.002


def test_a_view_that_differs_is_detected() -> None:
    tables = {"t": pa.table({"id": [1, 2], "n": [3, 4]})}
    statements = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL);"
    query = "SELECT sum(n) AS total FROM t"
    with Pair.open(statements + create("v", query), tables) as pair:
        pair.change(Edit(INSERT, "t", pa.table({"id": [3], "n": [5]})))
        assert pair.differences("v", query) == ()
        assert pair.differences("v", "SELECT sum(n) + 1 AS total FROM t") != ()


def test_a_view_that_does_not_end_is_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "LIMIT_SECONDS", 0.0)
    monkeypatch.setattr(windows, "VIEWS", {"top 10": windows.VIEWS["top 10"]})
    (figure,) = windows.run(SCALE)
    assert figure.value == math.inf
    assert "does not end" in figure.about


@pytest.mark.long
@pytest.mark.parametrize("bench", [small, windows, wire], ids=lambda each: each.NAME)
def test_answers_agree(bench: object) -> None:
    figures = list(bench.run(SCALE))  # type: ignore[attr-defined]
    assert figures
    assert [each for each in figures if each.differences or not math.isfinite(each.value)] == []
