"""Relations with copies on Spark: views of partitions, frames, streams."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import corollary
from corollary.core.arrow import to_python

PROGRAM = """\
.decl u(a: number, b: symbol?) bag
.decl w(b: symbol?) bag
.decl joined(a: number, b: symbol?) bag
joined.rows(a, b, n * m) := u.rows(a, b, n), w.rows(b, m).
.decl total(a: number, n: number)
total(a, n) :- u(a, _), n = sum c : { u.rows(a, _, c) }.
.decl lone(a: number)
lone(a) := u(a, b), !w(b).
.output joined
"""


def test_views_on_bags(spark: Any) -> None:
    with corollary.open(None, spark=spark, placement="partitions") as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("u", [(1, "x"), (1, "x"), (1, None), (2, "y"), (2, "y")])
            tx.insert("w", [("x",), ("x",), (None,)])
        assert Counter(db.relation("joined").rows()) == {(1, "x"): 4, (1, None): 1}
        with db.transaction() as tx:
            tx.delete("u", [(1, "x"), (2, "y"), (9, "z")])
            tx.insert("u", [(1, None)])
        assert Counter(to_python(tx.changes["joined"].added)) == {(1, None): 1}
        assert Counter(to_python(tx.changes["joined"].removed)) == {(1, "x"): 2}
        assert sorted(db.relation("total").rows()) == [(1, 3), (2, 1)]
        assert db.relation("lone").rows() == [(2,)]
        rows = db.relation("joined").spark().collect()
        assert Counter(map(tuple, rows)) == {(1, "x"): 2, (1, None): 2}


def test_a_frame_through_spark_has_copies(spark: Any, tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(
        '.decl u(a: number) bag\n.input u(IO=spark, table="bag_rows")\n.output u\n',
        "utf-8",
    )
    with corollary.open(tmp_path / "w", spark=spark) as db:
        for values, counts in (([1, 1, 2], (3, 0)), ([1, 2, 2], (1, 1))):
            frame = spark.createDataFrame([(each,) for each in values], "a bigint")
            frame.createOrReplaceTempView("bag_rows")
            outcome = db.run(program, facts=tmp_path)
            assert outcome.changes["u"].counts == counts
            assert sorted(db.relation("u").rows()) == [(each,) for each in values]
