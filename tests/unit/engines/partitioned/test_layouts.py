"""Layouts of partitioned tables that get wider while tuples are read."""

from __future__ import annotations

import pytest

import corollary
from support.spark.in_process_partitions import share_out, stage_changes

PROGRAM = """
.decl v(k: symbol, x: float)
.decl average(x: float)
average(m) :- m = mean x : { v(_, x) }.
"""


def test_values_that_fill_the_layout_are_decoded_by_the_one_that_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last code that fits makes room for the next one, after its word has been returned."""
    share_out(monkeypatch, "partitions", 2, interned_bits=1)
    stage_changes(monkeypatch, 1)
    with corollary.open(None) as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("v", [("a", -1.5)])
        assert set(db.relation("average").rows()) == {(-1.5,)}
