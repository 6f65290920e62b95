"""REFRESH POLICY: how a view follows changes, whatever would be cheaper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.program import NormalProgram
from corollary.core.statistics import Statistics
from corollary.database import planning
from corollary.errors import InputError
from corollary.maintain.update import Update

QUERY = "SELECT t.a, count(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY t.a"
TABLES = """
CREATE TABLE t (k INT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, b INT);
"""


@pytest.fixture
def db() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as opened:
        opened.sql(TABLES)
        yield opened


def algorithms(db: Any, name: str, change: str) -> set[str]:
    return {each.algorithm for at, each in db.sql(change).stats.items() if at.startswith(name)}


def rows(count: int) -> str:
    return ", ".join(f"({k}, {k % 7})" for k in range(count))


@pytest.mark.slow
def test_policies(tmp_path: Path) -> None:
    path = str(tmp_path / "w")
    with corollary.open(path, engine="local") as db:
        db.sql(TABLES)
        for policy in ("AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL"):
            name = policy.replace(" ", "_").lower()
            db.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY {policy} AS {QUERY}")
        db.sql(
            f"CREATE MATERIALIZED VIEW p TBLPROPERTIES ('corollary.refresh_policy' = 'full') "
            f"AS {QUERY}"
        )
        db.sql(f"INSERT INTO t VALUES {rows(60)}; INSERT INTO u VALUES {rows(300)}")
    with corollary.open(path, engine="local") as db:  # the policy is kept
        change = "DELETE FROM u WHERE b = 3"
        stats = db.sql(change).stats
        by_view = {at.split(".")[0]: set() for at in stats}
        for at, each in stats.items():
            by_view[at.split(".")[0]].add(each.algorithm)
        assert by_view["full"] == by_view["p"] == {"recompute"}
        assert "recompute" not in by_view["incremental"] | by_view["incremental_strict"]
        found = db.sql("SELECT * FROM auto ORDER BY a").rows()
        for name in ("incremental", "incremental_strict", "full", "p"):
            assert db.sql(f"SELECT * FROM {name} ORDER BY a").rows() == found
        db.sql("ALTER VIEW full AS SELECT a FROM t")
        assert algorithms(db, "full", "DELETE FROM t WHERE k = 1") == {"recompute"}
        everything = "DELETE FROM u"
        assert "recompute" not in algorithms(db, "incremental", everything)


def test_strict_is_an_error_where_nothing_else_is_possible(db: corollary.Database) -> None:
    text = """
        .decl e(x: number, y: number)
        .decl p(x: number, y: number) choice-domain x
        p(1, 1).
        p(y, x) :- p(x, _), e(x, y).
    """
    with corollary.open(None, engine="local") as other:
        other.load(text=text + '.output p(refresh="incremental")')
        assert "choices in recursion are made anew" in refused(
            other, text + '.output p(refresh="incremental strict")'
        )
        assert "C0823" in refused(other, text + '.output p(refresh="incremental strict")')
        assert "`refresh`" in refused(other, text + '.output p(refresh="never")')


def refused(db: corollary.Database, text: str) -> str:
    with pytest.raises(InputError) as caught:
        db.load(text=text)
    return str(caught.value)


def test_explain_says_how_each_part_follows(db: corollary.Database) -> None:
    def explained(text: str) -> str:
        return str(db.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v {text}").rows()[0][0])

    found = explained(f"AS {QUERY}")
    assert found.startswith("v: refresh policy AUTO\n")
    assert "v [aggregate 1]: totals of the touched groups" in found
    assert "computed anew: where it would handle more than" in found
    assert "more than" not in explained(f"REFRESH POLICY INCREMENTAL AS {QUERY}")
    assert "computed anew: always" in explained(f"REFRESH POLICY FULL AS {QUERY}")
    number = db.commits
    assert not db.sql("SHOW VIEWS").rows()
    assert db.commits == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY SOME AS SELECT 1 AS a", "incremental strict"),
        ("CREATE VIEW v REFRESH POLICY FULL AS SELECT 1 AS a", "CREATE MATERIALIZED VIEW"),
        ("EXPLAIN CREATE VIEW v AS SELECT 1 AS a", "EXPLAIN SELECT"),
    ],
)
def test_refused(db: corollary.Database, text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"C136[36]") as caught:
        db.sql(text)
    assert said in str(caught.value)


def test_strict_is_an_error_of_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that has no increment is refused as a whole, though the view was made once."""
    text = """
        .decl e(x: number, y: number)
        .decl p(x: number, y: number) choice-domain x
        .output p(refresh="incremental strict")
        p(1, 1).
        p(y, x) :- p(x, _), e(x, y).
    """
    with corollary.open(None, engine="local") as db:
        monkeypatch.setattr(planning, "incremental_update", no_changes)
        db.load(text=text)
        monkeypatch.undo()
        assert db.query("p(x, y)").to_pylist() == [{"x": 1, "y": 1}]
        with pytest.raises(InputError, match="C0823"), db.transaction() as transaction:
            transaction.insert("e", [(1, 2)])
        assert db.query("e(x, y)").to_pylist() == []
        assert db.query("p(x, y)").to_pylist() == [{"x": 1, "y": 1}]


def no_changes(program: NormalProgram, statistics: Statistics) -> Update:
    """Return the update by nothing, of which every view follows."""
    return Update(program, program, {}, statistics)
