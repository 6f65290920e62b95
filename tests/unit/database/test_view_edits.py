"""Views with other columns, rules and names: what they hold, what events see, what stays."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.errors import AccessError, ConstraintError, InputError
from corollary.frontends.datalog.parser import parse
from corollary.rewrite.partitions import PARTITIONS
from corollary.source import SourceFile
from oracles import evaluation
from support.comparison import comparable
from support.generators.view_variants import EDGE, READERS, TOPS, VIEWS, program
from support.maintained_database import ALGORITHMS, algorithm_for, changes_of, held
from support.payload_check import check_payload
from support.selection import examples, sampled
from support.spark.in_process_partitions import InProcess, share_out

Row = tuple[Any, ...]


def check(db: Database, text: str, edges: set[Row]) -> None:
    for name, rows in evaluation.evaluate(text, {"edge": edges}).items():
        assert comparable(db.relation(name).rows()) == comparable(rows), (name, text)
    check_payload(db)


@pytest.mark.slow
@pytest.mark.parametrize("seed", examples(range(1), range(3)))
@pytest.mark.parametrize("algorithm", sampled(ALGORITHMS, 3, ["auto"]))
def test_any_edit_follows_any_other(algorithm: str, seed: int) -> None:
    """Random edits, with and without a change of the data, and refused ones in between."""
    walk(algorithm, seed)


@pytest.mark.slow
def test_any_edit_where_views_are_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch)
    walk("auto", 4)
    assert InProcess.jobs


def kept(db: Database) -> dict[str, Any]:
    """Return everything that a database holds but the numbers of partitions."""
    found = held(db)
    for part in ("relations", "sizes"):
        found[part].pop(PARTITIONS.name, None)
    return found


def walk(algorithm: str, seed: int) -> None:
    """Make random edits, and judge what follows."""
    generator = random.Random(seed)
    edges: set[Row] = {(1, 2), (2, 3), (3, 1), (3, 3), (4, 5)}
    with corollary.open(None, engine="local") as db:
        text = EDGE
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("edge", sorted(edges))
        for _ in range(25):
            text = program(*(generator.choice(list(each)) for each in (VIEWS, READERS, TOPS)))
            before = kept(db)
            with db.transaction(is_dry=True, algorithm=algorithm_for(text, algorithm)) as tx:
                tx.set_program(parse(SourceFile("program", text)))
                tx.insert("edge", [(9, 9)])
            assert kept(db) == before
            flip = (generator.randrange(6), generator.randrange(6))
            with db.transaction(algorithm=algorithm_for(text, algorithm)) as tx:
                tx.set_program(parse(SourceFile("program", text)))
                if generator.random() < 0.5:
                    (tx.delete if flip in edges else tx.insert)("edge", [flip])
                    edges ^= {flip}
            check(db, text, edges)


# ------------------------------------------------------------------------------------------- events


SUM = ".decl v(a: number, s: number)\nv(x, s) :- edge(x, _), s = sum y : { edge(x, y) }.\n"
SUM_AND_COUNT = """\
.decl v(a: number, s: number, n: number)
v(x, s, n) :- edge(x, _), s = sum y : { edge(x, y) }, n = count : { edge(x, _) }.
"""
WATCHED = {
    "stored": (SUM, SUM_AND_COUNT),
    "virtual": (
        SUM.replace(")\n", ") virtual\n", 1),
        SUM_AND_COUNT.replace(")\n", ") virtual\n", 1),
    ),
    "becomes virtual": (SUM, SUM_AND_COUNT.replace(")\n", ") virtual\n", 1)),
    "becomes stored": (SUM.replace(")\n", ") virtual\n", 1), SUM_AND_COUNT),
    "over a new view": (
        SUM,
        (
            ".decl u(a: number, s: number)\nu(x, s) :- edge(x, _), s = sum y : { edge(x, y) }.\n"
            ".decl v(a: number, s: number, n: number) virtual\n"
            "v(x, s, n) :- u(x, s), n = count : { edge(x, _) }.\n"
        ),
    ),
}


def events(atom: str, names: str) -> str:
    return f"""\
.decl log(a: number)
came({names}) :- +v({atom}).
went({names}) :- -v({atom}).
.alert came "came"
.alert went "went"
+log(a) :- came(a, _).
"""


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("case", WATCHED)
def test_other_columns_are_no_event_but_other_data_is(
    case: str, is_durable: bool, tmp_path: Path
) -> None:
    """What a view held before, seen with its new columns, is neither added nor removed."""
    first, second = WATCHED[case]
    with corollary.open(str(tmp_path / "wh") if is_durable else None, engine="local") as db:
        db.load(text=EDGE + first + events("a, s", "a, s"))
        db.watch("v")
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2), (1, 3), (2, 2)])
        assert len(tx.alerts) == 2
        with db.transaction() as tx:
            tx.set_program(parse(SourceFile("p", EDGE + second + events("a, s, _", "a, s"))))
        assert tx.alerts == []
        assert sorted(db.relation("log").rows()) == [(1,), (2,)]
        with db.transaction(is_dry=True) as tx:
            tx.set_program(parse(SourceFile("p", EDGE + first + events("a, s", "a, s"))))
            tx.insert("edge", [(3, 4)])
        assert [(each.event, each.row) for each in tx.alerts] == [("came", (3, 4))]
        with db.transaction() as tx:
            tx.insert("edge", [(1, 9)])
        assert sorted((each.event, each.row) for each in tx.alerts) == [
            ("came", (1, 14)), ("went", (1, 5)),
        ]  # fmt: skip
        check_payload(db)


@pytest.mark.parametrize("qualifier", ["", " virtual"])
def test_data_that_changes_with_the_columns_is_an_event(qualifier: str) -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=EDGE + SUM + events("a, s", "a, s"))
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2), (2, 2)])
        with db.transaction() as tx:
            other = SUM_AND_COUNT.replace(")\n", f"){qualifier}\n", 1)
            tx.set_program(parse(SourceFile("p", EDGE + other + events("a, s, _", "a, s"))))
            tx.insert("edge", [(1, 3)])
        found = sorted((each.event, each.row) for each in tx.alerts)
        assert found == [("came", (1, 5)), ("went", (1, 2))]


def constrained(view: str, message: str) -> str:
    return EDGE + view + f'.abort v "{message}"\n.alert v "{message}"\n'


def test_alerts_and_constraints_on_a_view_with_other_columns() -> None:
    """Tuples of before are not reported again, and refused only if that is asked for."""
    few = ".decl v(a: number)\nv(x) :- edge(x, y), y < 0.\n"
    more = ".decl v(a: number, b: number)\nv(x, y) :- edge(x, y), y < 2.\n"
    with corollary.open(None, engine="local") as db:
        db.load(text=constrained(few, "{a}"))
        with db.transaction() as tx:
            tx.insert("edge", [(1, 1), (5, 5)])
        with pytest.raises(ConstraintError):
            db.load(text=constrained(more, "{a} {b}"), existing="refuse")
        tx = db.load(text=constrained(more, "{a} {b}"))
        assert [each.row for each in tx.existing] == [(1, 1)]
        assert not tx.alerts
        with pytest.raises(ConstraintError, match="6 0"), db.transaction() as tx:
            tx.insert("edge", [(6, 0)])


# ------------------------------------------------------------------------ readers, watchers, base


def test_grants_stay_with_a_view_and_go_with_it() -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=EDGE + SUM)
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])
        db.grant("maria", "v", "edge")
        db.load(text=EDGE + SUM_AND_COUNT)
        maria = db.reader("maria")
        assert list(maria.relation("v").rows()) == [(1, 2, 1)]
        db.load(text=EDGE)
        assert db.grants() == {"maria": ["edge"]}
        with pytest.raises(AccessError):
            maria.relation("v")
        db.load(text=EDGE + SUM)
        with pytest.raises(AccessError):
            maria.relation("v")


def test_what_is_watched_may_go_and_come_back() -> None:
    virtual = SUM.replace(")\n", ") virtual\n", 1)
    with corollary.open(None, engine="local") as db:
        db.load(text=EDGE + virtual)
        db.watch("v")
        seen: list[Row] = []
        db.on("v")(lambda rows: seen.extend(tuple(each) for each in rows))
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])
        assert changes_of(tx, "v") == ([(1, 2)], [])
        db.load(text=EDGE)
        with db.transaction() as tx:
            tx.insert("edge", [(1, 3)])
        assert "v" not in tx.changes
        tx = db.load(text=EDGE + SUM_AND_COUNT.replace(")\n", ") virtual\n", 1))
        assert changes_of(tx, "v") == ([], [])
        with db.transaction() as tx:
            tx.insert("edge", [(1, 4)])
        assert changes_of(tx, "v") == ([(1, 9, 3)], [(1, 5, 2)])
        assert seen == [(1, 2), (1, 9, 3)]


def test_a_base_relation_keeps_its_columns_while_it_holds_tuples_that_were_written() -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=EDGE + "edge(1, 2).")
        wide = ".decl edge(x: number, y: number, z: symbol)\n"
        db.load(text=wide + 'edge(1, 2, "a").')
        assert list(db.relation("edge").rows()) == [(1, 2, "a")]
        db.load(text=EDGE)
        with db.transaction() as tx:
            tx.insert("edge", [(3, 4)])
        for text, code in ((wide, "C0912"), (EDGE.replace("x:", "a:"), "C0912"), ("", "C0913")):
            with pytest.raises(InputError, match=code):
                db.load(text=text)
        with db.transaction() as tx:
            tx.delete("edge", [(3, 4)])
        db.load(text=EDGE.replace("x:", "a:"))
        assert db.relation("edge").arrow().column_names == ["a", "y"]
        db.load(text="")
        with pytest.raises(InputError, match="C0916"):
            db.relation("edge")


def test_base_relations_become_views_and_the_reverse() -> None:
    """Written tuples stay beside those of the rules; rules that go take their tuples along."""
    both = EDGE + ".decl v(a: number, b: number)\n"
    with corollary.open(None, engine="local") as db:
        db.load(text=both)
        with db.transaction() as tx:
            tx.insert("edge", [(1, 2)])
            tx.insert("v", [(8, 9)])
        db.load(text=both + "v(y, x) :- edge(x, y).")
        assert sorted(db.relation("v").rows()) == [(2, 1), (8, 9)]
        with pytest.raises(InputError, match="C0912"):
            db.load(text=EDGE + ".decl v(a: number)\nv(x) :- edge(x, _).")
        db.load(text=EDGE + ".decl v(p: number, q: number)\nv(y, x) :- edge(x, y).")
        assert db.relation("v").arrow().column_names == ["p", "q"]
        db.load(text=both)
        assert sorted(db.relation("v").rows()) == [(8, 9)]
        with db.transaction() as tx:
            tx.delete("v", [(8, 9)])
        db.load(text=EDGE + ".decl v(a: number)\nv(x) :- edge(x, _).")
        assert sorted(db.relation("v").rows()) == [(1,)]
        db.load(text=EDGE + '.decl v(a: symbol)\nv("s").')
        assert sorted(db.relation("v").rows()) == [("s",)]
        with db.transaction() as tx:
            tx.insert("v", [("t",)])
        assert sorted(to_python(db.relation("v").arrow())) == [("s",), ("t",)]


def test_active_rules_and_relations_that_are_added_together_are_no_event() -> None:
    """What the rules query of the old state is in the old program, too: no view has changed."""
    text = """.decl b(x: symbol)
.decl seen(x: symbol)
.decl none(x: symbol) virtual
.decl v(x: symbol) virtual
v(x) :- b(x).
"""
    active = """.decl other(x: symbol)
+seen(x) :- v@old(x).
+seen(x) :- !none@old(_), -v(x).
"""
    with corollary.open(None, engine="local") as db:
        db.load(text=text)
        with db.transaction() as tx:
            tx.insert("b", [("a",)])
        assert db.load(text=text + active).changes["seen"].counts == (0, 0)
        with db.transaction() as tx:
            tx.insert("other", [("c",)])
        assert changes_of(tx, "seen") == ([("a",)], [])
