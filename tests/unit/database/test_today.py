"""`today()`: a base relation of one tuple that users set; what asks for it is maintained."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.analysis.today import TODAY_RELATION
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.errors import AccessError, InputError
from oracles import evaluation

PROGRAM = """
.decl order(id: number, due: date)
.decl late(id: number, days: number)
late(i, days_between(d, today())) :- order(i, d), d < today().
.decl soon(id: number) virtual
soon(i) :- order(i, d), d >= today(), d < add_days(today(), 7).
.decl days(n: number, day: date)
days(n, today()) :- n = count : { order(_, d), d < today() }.
.decl sums(n: number)
sums(n) :- n = sum days_between(d, today()) : { order(_, d) }.
.decl either(id: number)
either(i) :- order(i, d), (d = today() ; i = 1 ; !late(i, _), year(d) > year(today())).
.decl fact(d: date)
fact(add_months(today(), 1)).
.decl today(d: date)
today(d) :- fact(d), !today_is_not(d).
.decl today_is_not(d: date)
today_is_not(today()) :- fact(_).
became_late(i) :- +late(i, n), n = 1, order(i, d), d < today().
.alert became_late "order {i} is late"
"""
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "order": [
        (1, date(2026, 11, 14)),
        (2, date(2026, 11, 15)),
        (3, date(2026, 11, 16)),
        (4, date(2026, 11, 30)),
        (5, date(2027, 1, 1)),
    ]
}
VIEWS = ("late", "days", "sums", "either", "fact", "today", "soon")


def by_oracle(day: date) -> dict[str, set[tuple[Any, ...]]]:
    plain = "".join(line for line in PROGRAM.splitlines(keepends=True) if "became_late" not in line)
    text = plain.replace("today()", f'd"{day}"')
    found = evaluation.evaluate(text, FACTS)
    return {name: set(found[name]) for name in VIEWS}


def views(db: Database) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(db.relation(name).rows()) for name in VIEWS}


def filled(place: Path | None = None, day: date = date(2026, 11, 15)) -> Database:
    db = corollary.open(place, engine="local")
    assert db.set_today(day) is None  # nobody asks for it yet
    db.load(text=PROGRAM)
    with db.transaction() as tx:
        tx.insert("order", FACTS["order"])
    return db


def test_views_follow_the_day() -> None:
    with filled() as db:
        assert views(db) == by_oracle(date(2026, 11, 15))
        for day in ("2026-11-16", "2026-11-17", "2027-01-02", "2026-11-15"):
            tx = db.set_today(day)
            assert tx is not None
            assert tx.stats
            assert views(db) == by_oracle(date.fromisoformat(day))
            assert db.relation(TODAY_RELATION).rows() == [(date.fromisoformat(day),)]


@pytest.mark.parametrize("algorithm", ["recompute", "dred", "epf", "counting", "auto"])
def test_every_algorithm_follows_it(algorithm: str) -> None:
    with filled() as db:
        with db.transaction(algorithm=algorithm) as tx:
            tx.delete("order", [(4, date(2026, 11, 30))])
        db.set_today(date(2026, 12, 24))
        assert set(db.relation("late").rows()) == {(1, 40), (2, 39), (3, 38)}


def test_alerts_come_with_the_day() -> None:
    with filled() as db:
        tx = db.set_today("2026-11-16")
        assert tx is not None
        assert [alert.message for alert in tx.alerts] == ["order 2 is late"]
        again = db.set_today("2026-11-16")
        assert again is not None
        assert again.commit_number is None


def test_it_waits_for_a_view_that_asks_for_it() -> None:
    with corollary.open(None, engine="local") as db:
        db.sql("CREATE TABLE t (d DATE)")
        db.set_today("2026-11-16")
        db.sql("INSERT INTO t VALUES (DATE'2026-11-17')")
        db.sql("CREATE VIEW v AS SELECT d > current_date AS c FROM t")
        assert db.sql("SELECT c FROM v").rows() == [(True,)]


def test_it_must_be_set_once() -> None:
    with corollary.open(None, engine="local") as db:
        with pytest.raises(InputError, match=r"C0908(.|\n)*--today(.|\n)*set_today"):
            db.load(text=PROGRAM)
        db.load(text=".decl order(id: number, due: date)")
        tx = db.transaction()
        tx.add_rule("late(i) :- +order(i, d), d < today().")
        with pytest.raises(InputError, match="C0908"):
            tx.commit()
        with pytest.raises(InputError, match="C0908"):
            db.query("order(x, d), d < today()")
        db.set_today("2026-11-16")
        with db.transaction() as tx:
            tx.add_rule("late(i) :- +order(i, d), d < today().")
        assert db.relation(TODAY_RELATION).rows() == [(date(2026, 11, 16),)]


def test_goals_ask_for_it() -> None:
    with filled() as db:
        answers = db.query("order(x, d), d >= today(), n = days_between(today(), d)", order="x")
        assert answers.column_names == ["x", "d", "n"]
        assert [row[2] for row in to_python(answers)] == [0, 1, 15, 47]
        assert to_python(db.query("x = today()")) == [(date(2026, 11, 15),)]
        assert to_python(db.query("today(x)")) == [(date(2026, 12, 15),)]  # their own relation


def test_a_warehouse_keeps_it(tmp_path: Path) -> None:
    with filled(tmp_path / "w") as db:
        first = db.commits
        db.set_today("2026-11-20")
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert views(db) == by_oracle(date(2026, 11, 20))
        assert views(db.at(first)) == by_oracle(date(2026, 11, 15))
        assert db.log()[0].changes[TODAY_RELATION] == (1, 1)
        # A program without it keeps the relation, and one with it finds the day again.
        db.load(text=PROGRAM.replace("today()", 'd"2026-11-01"').replace("became_late", "came"))
        db.load(text=PROGRAM)
        assert views(db) == by_oracle(date(2026, 11, 20))


def test_nobody_writes_to_it_otherwise() -> None:
    with filled() as db:
        db.grant("alice", "late")
        with pytest.raises(InputError, match="C0909"), db.transaction() as tx:
            tx.insert(TODAY_RELATION, [(date(2026, 1, 1),)])
        with pytest.raises(AccessError, match="C1041"):
            db.reader("alice").set_today("2026-11-16")
        for wrong in ("tomorrow", 3, None, datetime(2026, 11, 16)):  # noqa: DTZ001
            with pytest.raises(InputError, match="C0908"):
                db.set_today(wrong)  # type: ignore[arg-type]
