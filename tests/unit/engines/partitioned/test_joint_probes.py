"""Probes of partitions whose keys are known at the same moment are one job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import corollary
from corollary.core.plans import Derive
from corollary.core.states import State
from corollary.database.database import Database, state_of
from corollary.database.forecast import forecast_for_database
from corollary.engines.local.evaluation import pipelines, prefetch
from corollary.engines.local.prepared_plan import PreparedPlan
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.relation import files, source
from corollary.explain.forecast import print_forecast
from support.spark.in_process_partitions import share_out

Rows = list[tuple[Any, ...]]

STAR = """
.decl change(p: number, s: number)
.decl big1(p: number, c: symbol)
.decl big2(s: number, r: symbol)
.decl h(p: number, s: number, c: symbol, r: symbol)
h(p, s, c, r) :- change(p, s), big1(p, c), big2(s, r).
"""
STAR_ROWS: dict[str, Rows] = {
    "change": [(n, n + 1) for n in range(100)],
    "big1": [(n, f"c{n % 7}") for n in range(400)],
    "big2": [(n, f"r{n % 5}") for n in range(400)],
}


class Both:
    """A database in partitions, and one here that is asked the same.

    Attributes:
        titles: of the jobs of the last transaction.
    """

    def __init__(
        self, program: str | Path, rows: dict[str, Rows], patch: pytest.MonkeyPatch
    ) -> None:
        self.titles: list[str] = []
        self.here = corollary.open(None)
        share_out(patch, "partitions", 2)
        self.there = corollary.open(None)
        run = PartitionJobs.run

        def noted(jobs: PartitionJobs, tasks: Sequence[Any], title: str) -> list[Any]:
            self.titles += [title] if tasks else []
            return run(jobs, tasks, title)

        patch.setattr(PartitionJobs, "run", noted)
        for db in (self.here, self.there):
            db.load(program) if isinstance(program, Path) else db.load(text=program)
        self.change(lambda tx: [tx.insert(name, each) for name, each in rows.items()])

    def change(self, change: Callable[[Any], Any]) -> list[str]:
        """Do the same in both; return the titles of the jobs; compare all relations."""
        for db in (self.here, self.there):
            self.titles.clear()
            before = self._counted
            with db.transaction() as tx:
                change(tx)
        assert self._counted - before == len(self.titles)
        titles = list(self.titles)
        for name, relation in state_of(self.here).loaded.normal.relations.items():
            if not relation.is_declared:
                continue
            found, wanted = (set(db.relation(name).rows()) for db in (self.there, self.here))
            assert found == wanted, name
        return titles

    @property
    def _counted(self) -> int:
        engine = state_of(self.there).engine
        assert isinstance(engine, SparkEngine)
        return engine.job_counts.jobs


def test_literals_of_a_rule_that_the_change_binds_are_one_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = Both(STAR, STAR_ROWS, monkeypatch)
    jobs = both.change(lambda tx: tx.insert("change", [(200 + n, 300 - n) for n in range(20)]))
    assert jobs == ["probe change", "probe big1, big2"]
    jobs = both.change(lambda tx: tx.delete("change", STAR_ROWS["change"][:5]))
    assert jobs == ["probe change", "probe h"]


def test_a_literal_that_another_binds_is_a_job_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    text = STAR.replace("big2(s, r)", "big2(q, r), big3(s, p, q)") + (
        ".decl big3(s: number, p: number, q: number)\n"
    )
    rows = STAR_ROWS | {"big3": [(n + 1, n, (3 * n) % 400) for n in range(300)]}
    both = Both(text, rows, monkeypatch)
    jobs = both.change(lambda tx: tx.insert("change", [(n, n + 1) for n in range(200, 220)]))
    first, second = jobs[1:3]
    assert sorted(first.removeprefix("probe ").split(", ")) == ["big1", "big3"]
    assert second == "probe big2"


def test_rules_of_one_step_are_one_job_at_each_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    .decl change(p: number, s: number)
    .decl one(p: number, x: number)
    .decl two(x: number, y: number)
    .decl three(s: number, x: number)
    .decl h(p: number, y: number)
    h(p, y) :- change(p, _), one(p, x), two(x, y).
    h(p, y) :- change(p, s), three(s, x), two(x, y).
    """
    pairs: Rows = [(n, (7 * n) % 300) for n in range(300)]
    rows = dict.fromkeys(("change", "one", "two", "three"), pairs)
    both = Both(text, rows, monkeypatch)
    jobs = both.change(lambda tx: tx.insert("change", [(n, n + 1) for n in range(20)]))
    assert [set(each.removeprefix("probe ").split(", ")) for each in jobs[:3]] == [
        {"change"},
        {"one", "three"},
        {"two"},
    ]
    assert len(jobs) == 4, "what is known of both rules is subtracted at once"


def test_later_steps_of_an_algorithm_ask_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    .decl sale(id: number, shop: symbol, amount: float) key(id)
    .decl total(shop: symbol, s: float)
    total(x, s) :- sale(_, x, _), s = sum a : { sale(_, x, a) }.
    """
    rows: Rows = [(n, f"s{n % 40}", n % 11 / 2) for n in range(400)]
    both = Both(text, {"sale": rows}, monkeypatch)
    jobs = both.change(lambda tx: tx.insert("sale", [(1000, "s1", 3.0), (1001, "s2", 4.0)]))
    together = "probe total.aggregate1, total.aggregate1•digits"
    assert jobs == ["probe sale", together, "probe total"]
    assert len(both.change(lambda tx: tx.delete("sale", rows[:3]))) <= 4


def views(count: int) -> str:
    """Return views of six kinds over three relations, some of them over other views."""
    kinds = (
        "v{0}(i, a) :- sale(i, _, m, a), m % 50 != {0}.",
        "v{0}(i, y) :- sale(i, s, m, _), shop(s, y), m % 50 != {0}.",
        "v{0}(s, t) :- sale(_, s, _, _), t = sum a : {{ sale(_, s, m, a), m % 50 != {0} }}.",
        "v{0}(i, p) :- sale(i, s, m, _), shop(s, _), item(m, p), p > {0}.",
        "v{0}(y, p) :- sale(_, s, m, _), shop(s, y), item(m, p), m % 50 != {0}.",
        "v{0}(y, n) :- v{1}(_, y), n = count : {{ v{1}(_, y) }}.",
    )
    lines = [
        ".decl sale(id: number, shop: number, item: number, amount: number)",
        ".decl shop(shop: number, city: number)",
        ".decl item(item: number, price: number)",
    ]
    for at in range(count):
        lines.append(f".decl v{at}(x: number, y: number)")
        lines.append(kinds[at % 6].format(at, at - 4))
    return "\n".join(lines)


@pytest.mark.parametrize("count", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_independent_views_are_maintained_by_jobs_that_they_share(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    sales: Rows = [(n, n % 40, (7 * n) % 100, n % 9) for n in range(300)]
    rows: dict[str, Rows] = {
        "sale": sales,
        "shop": [(n, n % 7) for n in range(40)],
        "item": [(n, n % 60) for n in range(100)],
    }
    both = Both(views(count), rows, monkeypatch)
    both.change(lambda tx: tx.insert("sale", [(1000, 1, 2, 3)]))
    new: Rows = [(1001 + n, n % 45, n, n % 8) for n in range(20)]
    jobs = both.change(lambda tx: tx.insert("sale", new))
    assert len(jobs) <= 6, "the longest chain: the sale, shop, v1, the count of v5, v5"
    jobs = both.change(lambda tx: (tx.insert("sale", [(2000, 3, 3, 3)]), tx.delete("sale", new)))
    assert len(jobs) <= 6
    assert all(each.count(", ") < 9 for each in jobs), "titles are short"
    jobs = both.change(lambda tx: tx.insert("shop", [(90, 1)]))
    assert len(jobs) <= 2, "no sale there"


def test_three_views_need_three_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    .decl sale(id: number, shop: number)
    .decl shop(shop: number, city: symbol)
    .decl late(id: number)
    late(i) :- sale(i, s), s > 3.
    .decl place(id: number, city: symbol)
    place(i, y) :- sale(i, s), shop(s, y).
    .decl many(shop: number, n: number)
    many(s, n) :- sale(_, s), n = count : { sale(_, s) }.
    """
    rows: dict[str, Rows] = {
        "sale": [(n, n % 40) for n in range(300)],
        "shop": [(n, f"c{n % 5}") for n in range(40)],
    }
    both = Both(text, rows, monkeypatch)
    both.change(lambda tx: tx.insert("sale", [(1000, 1)]))
    assert both.change(lambda tx: tx.insert("sale", [(1001, 2), (1002, 39)])) == [
        "probe sale",
        "probe late•count, shop, many.aggregate1",
        "probe place•count, many",
    ]


@pytest.mark.slow
def test_views_that_may_be_given_up_share_jobs_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each has tables of calls of its own, which are emptied if it is given up."""
    kinds = (
        "SELECT s.id, i.kind FROM sale s LEFT JOIN item i ON s.item = i.item AND i.price > {0}",
        "SELECT id FROM sale s WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.item = s.item)",
        "SELECT item, min(amount) AS m, sum(amount) AS t FROM sale WHERE id > {0} GROUP BY item",
    )
    text = [
        "CREATE TABLE sale (id INT PRIMARY KEY, item INT, amount INT);",
        "CREATE TABLE item (item INT PRIMARY KEY, kind STRING, price INT);",
        *(f"CREATE MATERIALIZED VIEW v{at} AS {kinds[at % 3].format(at)};" for at in range(6)),
    ]
    (tmp_path / "views.sql").write_text("\n".join(text), "utf-8")
    sales: Rows = [(n, n % 50, n % 9) for n in range(1500)]
    items: Rows = [(n, f"k{n % 5}", n % 20) for n in range(50)]
    both = Both(tmp_path / "views.sql", {"item": items, "sale": sales}, monkeypatch)
    both.change(lambda tx: tx.insert("sale", [(2000, 1, 2)]))
    assert len(both.change(lambda tx: tx.insert("sale", [(2001, 3, 4), (2002, 90, 1)]))) <= 4
    assert len(both.change(lambda tx: tx.delete("sale", sales[:3]))) <= 4


def test_the_error_is_that_of_the_first_stratum_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    .decl a(x: number)
    .decl b(x: number, y: number)
    .decl first(x: number)
    first(10 / (y - 7)) :- a(x), b(x, y).
    .decl second(x: number)
    second(10 / (x - 7)) :- a(x).
    """
    both = Both(text, {"b": [(n, n) for n in range(50)], "a": [(1,)]}, monkeypatch)
    said = []
    for db in (both.here, both.there):
        with pytest.raises(corollary.CorollaryError) as caught, db.transaction() as tx:
            tx.insert("a", [(7,)])
        said.append(str(caught.value))
    assert said[0] == said[1], "`second` fails before `first` has its tuples"
    assert "first" in said[0]
    assert both.change(lambda tx: tx.insert("a", [(8,)]))


def test_relations_that_are_folded_at_once_are_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MERGE_MIN_FILES", 3)
    both = Both(STAR, STAR_ROWS, monkeypatch)
    folds = [
        each
        for number in range(8)
        for each in both.change(lambda tx, n=number: tx.insert("change", [(n, 20 + n)]))
        if each.startswith("fold")
    ]
    assert any(", " in each for each in folds)
    assert len(folds) <= 8 // 2


def test_the_tuples_of_a_change_and_their_keys_are_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    .decl r(a: number, b: number, id: number) key(id)
    .fd r(b -> a)
    .decl s(x: number, y: symbol) key(x)
    """
    rows: dict[str, Rows] = {
        "r": [(n % 10, n, 5 * n) for n in range(200)],
        "s": [(n, f"y{n}") for n in range(200)],
    }
    both = Both(text, rows, monkeypatch)
    assert both.change(lambda tx: (tx.insert("r", [(3, 777, 777)]), tx.insert("s", [(900, "z")])))
    jobs = both.change(lambda tx: (tx.insert("r", [(4, 778, 778)]), tx.insert("s", [(901, "y")])))
    assert jobs == ["probe r, s"]
    for wrong in ((9, 801, 5), (9, 7, 802)):
        with pytest.raises(corollary.ConstraintError), both.there.transaction() as tx:
            tx.insert("r", [wrong])
    assert both.change(lambda tx: tx.delete("r", [(3, 777, 777)])) == ["probe r"]


def test_parts_of_a_relation_are_one_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "r.csv").write_text("\n".join(f"{n},{n % 9}" for n in range(300)), "utf-8")
    text = f'.decl r(x: number, y: number)\n.input r(filename="{tmp_path}/r.csv", delimiter=",")\n'
    both = Both(text, {}, monkeypatch)
    both.change(lambda tx: tx.insert("r", [(1000, 1)]))
    assert len(both.change(lambda tx: tx.insert("r", [(1001, 1), (2, 2)]))) == 1
    assert len(both.change(lambda tx: tx.delete("r", [(1001, 1), (2, 2)]))) == 1


def test_the_counts_of_copies_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ".decl b(x: number, y: number) bag\n.decl p(y: number)\np(y) :- b(_, y).\n"
    rows: Rows = [(n % 50, n % 7) for n in range(600)]
    both = Both(text, {"b": rows}, monkeypatch)
    jobs = both.change(lambda tx: tx.insert("b", [(3, 3), (700, 1), (700, 1)]))
    assert jobs.count("probe b.rows") == 1
    jobs = both.change(lambda tx: tx.delete("b", [(3, 3), (700, 1)]))
    assert jobs.count("probe b.rows") == 1


def test_an_order_finds_what_another_one_with_the_same_lead_has_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """
    .decl r(id: number, a: number, b: number)
    .decl q(id: number, b: number) virtual
    q(i, b) :- r(i, _, b).
    .decl s(id: number)
    s(i) :- q(i, b), b < 5.
    """
    both = Both(text, {"r": [(n, n % 3, n % 7) for n in range(300)]}, monkeypatch)
    both.change(lambda tx: tx.insert("r", [(400, 1, 1)]))
    state_of(both.there).engine.rollback()  # forgets what `relation` has read
    jobs = both.change(lambda tx: (tx.insert("r", [(401, 1, 1)]), tx.delete("r", [(3, 0, 3)])))
    assert jobs.count("probe r") == 1
    jobs = both.change(lambda tx: (tx.insert("r", [(402, 1, 1)]), tx.delete("r", [(4, 1, 4)])))
    assert "probe r" not in jobs, "all of it is here"


@pytest.mark.parametrize("reason", ["many rows", "many tuples", "few pass"])
def test_what_costs_much_is_asked_for_when_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    rows = dict(STAR_ROWS)
    match reason:
        case "many rows":
            monkeypatch.setattr(pipelines, "LOOK_AHEAD_MAX_ROWS", 10)
        case "many tuples":
            rows |= {name: [(n % 4, f"{n}") for n in range(400)] for name in ("big1", "big2")}
            monkeypatch.setattr(prefetch, "EXPECTED_MAX_TUPLES", 50)
            monkeypatch.setattr(source, "BUILD_MIN_TUPLES", 1)  # tasks count distinct values
        case "few pass":
            rows |= {name: [(100 * n, f"{n}") for n in range(4)] for name in ("big1", "big2")}
    both = Both(STAR, rows, monkeypatch)
    count = 1 if reason == "many tuples" else 60
    jobs = both.change(lambda tx: tx.insert("change", [(n, n + 2) for n in range(count)]))
    assert not any("big1" in each and "big2" in each for each in jobs)
    assert any("big1" in each or "big2" in each for each in jobs)


def test_functors_of_users_are_called_for_the_rows_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[int] = []

    @corollary.functor("seen_by_look_ahead")
    def seen(x: int) -> int:
        called.append(x)
        return x + 1

    text = """
    .functor seen_by_look_ahead(x: number): number
    .decl change(p: number, s: number)
    .decl big1(p: number, c: number)
    .decl big2(s: number, r: number)
    .decl h(p: number, c: number, r: number)
    h(p, c, r) :- change(p, s), big1(p, c), x = @seen_by_look_ahead(c), big2(s, r), r < x.
    """
    rows = {name: [(n, n) for n in range(100)] for name in ("big1", "big2")}
    both = Both(text, rows, monkeypatch)
    called.clear()
    both.change(lambda tx: tx.insert("change", [(1, 2), (2, 1)]))
    assert len(called) <= 8, "two rows, derived and judged, by two databases"


def test_explain_counts_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(STAR, STAR_ROWS, monkeypatch)
    assert said(both.there, "change") == (
        "partitions are asked up to 2 times (big1 1, big2 1), in one job, "
        "in each round of a loop again"
    )
    assert "in up to 2 jobs" in said(both.there, "big1")


def said(db: Database, changed: str) -> str:
    forecast = forecast_for_database(db, {changed: {State.ADDED: 1}})
    (line,) = (
        each for each in print_forecast(forecast).splitlines() if each.startswith("partitions are")
    )
    return line


def test_nothing_is_fetched_for_what_runs_elsewhere() -> None:
    """A query of Spark SQL reads what it needs, however few tuples lead it."""
    prepared = object.__new__(PreparedPlan)
    prepared._context = SimpleNamespace(is_remote=True)  # type: ignore[assignment]
    prepared._elsewhere = SimpleNamespace(is_due=lambda _: True)  # type: ignore[assignment]
    prepared._derivations = {}
    assert prepared.ask(Derive("p", ())) == ()
