"""`db.sql`: definitions, changes and questions; what a warehouse keeps of them; who may ask."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.core.printer import print_program
from corollary.core.states import State
from corollary.database.pending_commit import DeferredOperations
from corollary.database.program.column_mapping import Alteration
from corollary.database.program.parts import SOURCE_PREFIX
from corollary.database.transaction import Transaction
from corollary.database.upkeep.alter import alter
from corollary.database.writing.operations import Operation
from corollary.errors import AccessError, ConstraintError, InputError, LimitError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

TABLES = """
CREATE TABLE t (k INT PRIMARY KEY, a INT);
CREATE TABLE u (a INT, b INT);
"""


@pytest.fixture
def db() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as opened:
        opened.sql(TABLES)
        opened.sql("INSERT INTO t VALUES (1, 2), (2, NULL), (3, 4)")
        opened.sql("INSERT INTO u VALUES (2, 3), (2, 3), (4, 1)")
        yield opened


def ask(db: Any, text: str, **parameters: Any) -> list[tuple[Any, ...]]:
    return sorted(db.sql(text, **parameters).rows(), key=str)


def refusal(db: Any, text: str, **parameters: Any) -> str:
    with pytest.raises(InputError) as caught:
        db.sql(text, **parameters)
    return str(caught.value)


# --- questions ---------------------------------------------------------------------------------


def test_questions_see_copies_nulls_and_order(db: corollary.Database) -> None:
    assert ask(db, "SELECT * FROM u") == [(2, 3), (2, 3), (4, 1)]
    answer = db.sql("SELECT a, k FROM t ORDER BY a DESC NULLS FIRST, k LIMIT 2")
    assert answer.columns == ("a", "k")
    assert answer.rows() == [(None, 2), (4, 3)]
    assert db.sql("SELECT k FROM t ORDER BY a LIMIT 1 OFFSET 1").rows() == [(1,)]
    assert ask(db, "SELECT COUNT(*) AS n FROM t JOIN u ON t.a = u.a") == [(3,)]


def test_an_answer_has_all_forms(db: corollary.Database) -> None:
    answer = db.sql("SELECT k, CAST(a AS DECIMAL(5, 2)) AS d FROM t WHERE k = 1")
    assert answer.arrow().to_pylist() == [{"k": 1, "d": Decimal("2.00")}]
    assert list(answer.pandas()["k"]) == [1]
    assert len(answer) == 1
    assert repr(answer) == "<answer (k: number, d: decimal(5,2)?), 1 row>\n  (1, Decimal('2.00'))"


def test_two_columns_may_have_one_name_in_an_answer(db: corollary.Database) -> None:
    answer = db.sql("SELECT k, k FROM t WHERE k = 1")
    assert (answer.columns, answer.rows()) == (("k", "k"), [(1, 1)])


def test_parameters_are_constants_and_never_text(db: corollary.Database) -> None:
    assert ask(db, "SELECT k FROM t WHERE a = :a", a=4) == [(3,)]
    text = "x' OR 1 = 1; DROP TABLE t; --"
    assert ask(db, "SELECT :s AS s, :d AS d", s=text, d=date(2026, 11, 16)) == [
        (text, date(2026, 11, 16))
    ]
    assert "`:b` has no value" in refusal(db, "SELECT :b AS b", a=1)


def test_questions_read_rules_and_rules_read_views(db: corollary.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT k, a FROM t WHERE a IS NOT NULL")
    with db.transaction() as transaction:
        transaction.edit(
            lambda program: (
                program + parse(SourceFile("more", ".decl w(x: number?) w(x) :- v(_, x), x > 2."))
            )
        )
    assert ask(db, "SELECT * FROM w") == [(4,)]
    assert db.query("v(k, 4)").to_pydict() == {"k": [3]}


def test_unknown_names_have_a_place_and_a_suggestion(db: corollary.Database) -> None:
    said = refusal(db, "SELECT k\nFROM tt")
    assert "SQL:2:6" in said
    assert "did you mean `t`?" in said
    said = refusal(db, "SELECT kk FROM t")
    assert "did you mean `k`?" in said or "`t.k`" in said


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t VALUES (1)", "DELETE FROM t", "UPDATE t SET a = 1"]
)
def test_a_write_to_an_empty_database_is_refused(statement: str) -> None:
    with (
        corollary.open(None, engine="local") as db,
        pytest.raises(InputError, match="There is no relation `t`"),
    ):
        db.sql(statement)


def test_a_recursive_question_is_ordered_by_a_column_that_it_does_not_show() -> None:
    with corollary.open(None, engine="local") as db:
        question = (
            "WITH RECURSIVE r(n, m) AS (SELECT 1, 9 UNION SELECT n + 1, m - 2 FROM r WHERE n < 4) "
            "SELECT n FROM r ORDER BY m"
        )
        assert db.sql(question).rows() == [(4,), (3,), (2,), (1,)]
        assert db.sql(f"{question} LIMIT 2").rows() == [(4,), (3,)]


def test_auxiliary_relations_cannot_be_named(db: corollary.Database) -> None:
    assert "There is no relation" in refusal(db, "SELECT * FROM `t.range1`")


def test_explain_shows_the_bound_key(db: corollary.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT k, a FROM t")
    assert "^bf" in db.explain("SELECT a FROM v WHERE k = 3")
    assert "procedure" in db.explain("v(3, x)")


# --- writes ------------------------------------------------------------------------------------


def test_insert_update_delete(db: corollary.Database) -> None:
    transaction = db.sql("INSERT INTO t (k) VALUES (9)")
    assert isinstance(transaction, Transaction)
    assert transaction.changes["t"].added.to_pylist() == [{"k": 9, "a": None}]
    db.sql("INSERT INTO t SELECT a + 10, b FROM u WHERE a = 4")
    db.sql("UPDATE t SET a = COALESCE(a, 0) + 1 WHERE k IN (2, 14)")
    db.sql("DELETE FROM t WHERE k = :k", k=9)
    assert ask(db, "SELECT * FROM t") == [(1, 2), (14, 2), (2, 1), (3, 4)]
    db.sql("UPDATE t SET k = k + 1")
    assert ask(db, "SELECT k FROM t") == [(15,), (2,), (3,), (4,)]


def test_rows_without_a_key_are_updated(db: corollary.Database) -> None:
    transaction = db.sql("UPDATE u SET b = b + a WHERE a = 2")
    assert isinstance(transaction, Transaction)
    assert str(transaction.changes) == "<Changes: u +2 −2>"
    assert ask(db, "SELECT * FROM u") == [(2, 5), (2, 5), (4, 1)]
    db.sql("UPDATE u SET a = 2, b = CASE b WHEN 1 THEN 5 ELSE NULL END")  # each copy once
    assert ask(db, "SELECT * FROM u") == [(2, 5), (2, None), (2, None)]


def test_with_before_insert_and_nulls_without_a_type(db: corollary.Database) -> None:
    tables = "w AS (SELECT 7 AS k), x AS (SELECT k + 1 AS k FROM w)"
    db.sql(f"WITH {tables} INSERT INTO t SELECT k, NULL FROM x")
    db.sql("INSERT INTO t (a, k) WITH w AS (SELECT 9 AS k) SELECT NULL AS n, k FROM w")
    assert ask(db, "SELECT * FROM t WHERE k > 3") == [(8, None), (9, None)]
    assert "`WITH` cannot stand before `DELETE`" in refusal(
        db, "WITH w AS (SELECT 1 k) DELETE FROM t"
    )
    twice = "WITH w AS (SELECT 1 AS k) INSERT INTO t WITH x AS (SELECT * FROM w) SELECT k, k FROM x"
    assert "C1361" in refusal(db, twice)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("SELECT -128Y, -32768S, - 9223372036854775808L", (-128, -32768, -(2**63))),
        ("SELECT make_date(12, 12, 12)", (date(12, 12, 12),)),
        ("SELECT to_date('2026', 'yyyy[-MM[-dd]]')", (date(2026, 1, 1),)),
        ("SELECT to_date('2026-03-04', 'yyyy[-MM[-dd]]')", (date(2026, 3, 4),)),
        ("SELECT date_format(DATE '2026-03-04', 'yyyy[-MM]')", ("2026-03",)),
        ("SELECT 1 / 0 + NULL, CAST(NULL AS INT) = CAST(NULL AS INT)", (None, None)),
        ("SELECT COALESCE(CAST(NULL AS INT), CAST(NULL AS INT)) IS NULL", (True,)),
        ("SELECT MAX(k) FROM t WHERE CAST(NULL AS INT) IS NULL", (3,)),
        ("SELECT COUNT(*) FROM t WHERE CAST(NULL AS INT) = CAST(NULL AS INT)", (0,)),
        ("SELECT COUNT(*) FROM t WHERE a > '2' AND k IN ('1', 3)", (1,)),
    ],
)
def test_what_spark_answers(db: corollary.Database, question: str, answer: tuple[Any, ...]) -> None:
    assert ask(db, question) == [answer]


def test_a_table_of_a_question_is_written_in_one_transaction(db: corollary.Database) -> None:
    made = db.sql("CREATE TABLE c AS SELECT a, COUNT(*) AS n, 1.5 AS x FROM u GROUP BY a")
    assert isinstance(made, Transaction)
    assert ask(db, "SELECT * FROM c") == [(2, 2, Decimal("1.5")), (4, 1, Decimal("1.5"))]
    assert db.sql("CREATE TABLE IF NOT EXISTS c AS SELECT 1 AS a") is None
    db.sql("INSERT INTO c VALUES (NULL, NULL, NULL)")
    db.sql("TRUNCATE TABLE u")
    assert ask(db, "SELECT COUNT(*) FROM c") == [(3,)]
    assert ask(db, "SELECT * FROM u") == []
    assert "C1371" in refusal(db, "CREATE TABLE C AS SELECT 1 AS a")
    db.sql("BEGIN; INSERT INTO u VALUES (1, 1); CREATE TABLE d AS SELECT * FROM u; COMMIT")
    assert ask(db, "SELECT * FROM d") == [(1, 1)]


def test_merge(db: corollary.Database) -> None:
    db.sql(
        """CREATE TABLE m (k INT PRIMARY KEY, v INT, s STRING);
           CREATE TABLE src (k INT, v INT, s STRING);
           CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(v) AS v FROM m;
           INSERT INTO m VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, NULL), (4, 40, 'd');
           INSERT INTO src VALUES (1, 11, 'x'), (2, NULL, 'y'), (5, 50, 'z'), (6, NULL, 'w')"""
    )
    changed = db.sql(
        """MERGE INTO m AS t USING src AS b ON t.k = b.k
           WHEN MATCHED AND b.v > 0 THEN UPDATE SET v = t.v + b.v, t.s = b.v
           WHEN MATCHED THEN DELETE
           WHEN NOT MATCHED AND b.v IS NOT NULL THEN INSERT (k, v) VALUES (b.k, b.v)
           WHEN NOT MATCHED BY SOURCE AND t.v > 35 THEN UPDATE SET s = 'old'
           WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    )
    assert ask(db, "SELECT * FROM m") == [(1, 21, "11"), (4, 40, "old"), (5, 50, None)]
    assert changed.changes["total"].added.to_pylist() == [{"n": 3, "v": 111}]
    whole = "MERGE INTO m USING src ON m.k = src.k WHEN MATCHED THEN UPDATE SET *"
    db.sql(f"{whole} WHEN NOT MATCHED THEN INSERT *")
    assert ask(db, "SELECT * FROM m WHERE k <> 4") == ask(db, "SELECT * FROM src")
    db.sql("INSERT INTO src VALUES (1, 12, 'x')")
    assert "Several rows of the source change one row" in refusal(db, whole)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("MERGE INTO u USING t ON t.a = u.a WHEN MATCHED THEN DELETE", "`u` has no key"),
        ("MERGE INTO v USING t ON t.k = v.k WHEN MATCHED THEN DELETE", "C0915"),
        ("MERGE INTO t USING u ON t.k = u.a WHEN NOT MATCHED THEN DELETE", "cannot do this"),
        ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE", "last"),
        ("MERGE INTO t USING u ON t.k = u.z WHEN MATCHED THEN DELETE", "`u` has no column `z`"),
    ],
)
def test_a_merge_that_is_refused(db: corollary.Database, statement: str, said: str) -> None:
    db.sql("CREATE VIEW v AS SELECT k FROM t")
    assert said in refusal(db, statement)


def test_what_is_there_is_shown(db: corollary.Database) -> None:
    db.sql(
        "CREATE VIEW v AS SELECT k, 1.5 AS x FROM t; CREATE MATERIALIZED VIEW w AS SELECT k FROM t"
    )
    assert db.sql("SHOW TABLES").columns == ("namespace", "tableName", "isTemporary")
    assert [row[1] for row in db.sql("SHOW TABLES").rows()] == ["t", "u", "v", "w"]
    assert [row[1] for row in db.sql("SHOW TABLES LIKE 'T*|w'").rows()] == ["t", "w"]
    assert [row[1] for row in db.sql("SHOW VIEWS").rows()] == ["v", "w"]
    assert db.sql("SHOW VIEWS LIKE 'x'").rows() == []
    assert db.sql("SHOW COLUMNS IN v").rows() == [("k",), ("x",)]
    assert db.sql("DESC TABLE v").rows() == [("k", "int", None), ("x", "decimal(2,1)", None)]
    ((plan,),) = db.sql("EXPLAIN SELECT a FROM t WHERE k = 1").rows()
    assert plan == db.explain("SELECT a FROM t WHERE k = 1").strip()
    assert "C1368" in refusal(db, "DESCRIBE z")
    columns = [("m", "int", None), ("s", "bigint", None)]
    assert (
        db.sql("DESCRIBE QUERY SELECT k + 1 AS m, SUM(a) AS s FROM t GROUP BY k").rows() == columns
    )
    assert db.sql("DESC VALUES (1)").rows() == [("col1", "int", None)]
    assert "C1303" in refusal(db, "DESCRIBE SELECT z FROM t")
    ((text,),) = db.sql("SHOW CREATE TABLE w").rows()
    assert text == "CREATE MATERIALIZED VIEW w AS SELECT k FROM t"
    assert db.sql("SHOW FUNCTIONS LIKE 'upp*|max_*|•*'").rows() == [("max_by",), ("upper",)]
    assert db.sql("DESCRIBE FUNCTION EXTENDED upper").rows()[0] == ("Function: upper",)
    assert "has another value each time" in db.sql("DESC FUNCTION rand").rows()[1][0]
    assert db.sql("DESCRIBE FUNCTION nothing").rows() == [("Function: nothing not found.",)]


def test_details_of_tables_are_shown() -> None:
    with corollary.open(None, engine="local") as db:
        db.sql(
            "CREATE TABLE d (a INT COMMENT 'of a' DEFAULT 1 + 1, b STRING) COMMENT 'all of d' "
            "TBLPROPERTIES ('x' = 'y', 'z' = '1'); CREATE VIEW e AS SELECT a FROM d"
        )
        rows = db.sql("DESCRIBE EXTENDED d").rows()
        assert rows[0] == ("a", "int", "of a")
        assert rows.index(("a", "int", "1 + 1")) > rows.index(("# Column Default Values", "", ""))
        assert ("Comment", "all of d", "") in rows
        assert ("Type", "VIEW", "") in db.sql("DESC FORMATTED e").rows()
        assert db.sql("SHOW TBLPROPERTIES d").rows() == [("x", "y"), ("z", "1")]
        assert db.sql("SHOW TBLPROPERTIES d ('z')").rows() == [("z", "1")]
        assert db.sql("SHOW CREATE VIEW e").rows() == [("CREATE VIEW e AS SELECT a FROM d",)]
        assert "CREATE" not in db.sql("EXPLAIN EXTENDED SELECT * FROM d").rows()[0][0]


def test_arguments_have_names(db: corollary.Database) -> None:
    # As Spark 4.3 answers.
    assert ask(db, "SELECT mask('Ab1-', lowerChar => 'q') AS m") == [("Xqn-",)]
    assert ask(db, "SELECT mask(otherChar => '*', str => 'Ab1-') AS m") == [("Xxn*",)]
    assert ask(db, "SELECT * FROM explode(collection => array(1, 2))") == [(1,), (2,)]
    assert ask(db, "SELECT posexplode(collection => array(7))") == [(0, 7)]
    assert ask(db, "SELECT inline(input => array(struct(1 AS a)))") == [(1,)]
    assert "does not have" in refusal(db, "SELECT mask('a', upper => 'q') AS m")
    assert "gets twice" in refusal(db, "SELECT mask('a', str => 'q') AS m")
    assert "needs an argument `str`" in refusal(db, "SELECT mask(upperChar => 'q') AS m")
    assert "without names" in refusal(db, "SELECT upper(x => 'q') AS m")


def test_a_column_without_a_name_is_not_listed(db: corollary.Database) -> None:
    text = refusal(db, "SELECT a - lag(zz) OVER (ORDER BY a) AS x FROM u")
    assert text.endswith("the columns are `a`, `b`")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DECLARE VARIABLE x INT", "`:x`"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS a", "INSERT OVERWRITE"),
        ("CREATE TABLE x USING delta AS SELECT 1 AS a", "leave it out"),
        ("CACHE TABLE t", "MATERIALIZED VIEW"),
        ("CREATE SCHEMA s", "one schema"),
        ("ALTER VIEW v RENAME TO w", "make a view of the new name"),
        ("WITH s AS (SELECT 1 AS k) MERGE INTO t USING s ON t.k = s.k", "after `USING`"),
    ],
)
def test_what_has_no_meaning_has_a_cure(db: corollary.Database, statement: str, said: str) -> None:
    found = refusal(db, statement)
    assert "C1363" in found
    assert said in found


def test_a_view_gets_another_query(db: corollary.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
    db.sql("CREATE VIEW v AS SELECT * FROM w")
    db.sql("ALTER VIEW w AS SELECT k, 2 AS z FROM t WHERE k = 1")
    assert ask(db, "SELECT * FROM v") == [(1, 2)]
    ((text,),) = db.sql("SHOW CREATE TABLE w").rows()
    assert text.startswith("CREATE OR REPLACE MATERIALIZED VIEW")
    assert "C1372" in refusal(db, "ALTER VIEW t AS SELECT 1")
    db.sql("CREATE MATERIALIZED VIEW x PARTITIONED BY (k) COMMENT 'x' CLUSTER BY (k) AS TABLE w")
    assert ask(db, "SELECT * FROM x") == [(1, 2)]


def test_rows_are_overwritten_and_named(db: corollary.Database) -> None:
    db.sql("CREATE TABLE s LIKE t")
    db.sql("INSERT INTO s BY NAME SELECT 7 AS a, k FROM t")
    assert {row[1] for row in ask(db, "SELECT k, a FROM s")} == {7}
    db.sql("INSERT OVERWRITE s (k) SELECT k FROM s WHERE k = 1 UNION ALL VALUES (1), (5)")
    assert ask(db, "SELECT k, a FROM IDENTIFIER('s')") == [(1, None), (1, None), (5, None)]
    db.sql("INSERT OVERWRITE TABLE s SELECT * FROM s WHERE k > 1")
    assert ask(db, "TABLE s") == [(5, None)]
    db.sql("INSERT INTO s TABLE s; CREATE VIEW v AS (TABLE s) UNION ALL TABLE s")
    assert ask(db, "WITH w AS (TABLE v) SELECT COUNT(*) AS n, MAX(k) AS m FROM w") == [(4, 5)]
    assert "C1367" in refusal(db, "INSERT INTO s BY NAME SELECT 1 AS nothing")


def test_the_level_at_which_spark_gives_up_is_no_limit(db: corollary.Database) -> None:
    query = "SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3"
    text = f"WITH RECURSIVE r(n) MAX RECURSION LEVEL 5 AS ({query}) SELECT * FROM r"
    assert ask(db, text) == [(1,), (2,), (3,)]


def test_copies_are_written_and_deleted(db: corollary.Database) -> None:
    db.sql("INSERT INTO u VALUES (2, 3)")
    db.sql("INSERT INTO u SELECT * FROM u WHERE a = 4")
    assert len(ask(db, "SELECT * FROM u")) == 5
    db.sql("DELETE FROM u WHERE b = 3")
    assert ask(db, "SELECT * FROM u") == [(4, 1), (4, 1)]


def take(db: corollary.Database, relation: str, rows: list[tuple[Any, ...]]) -> None:
    """Insert rows as a source that reads the file `orders.csv` does."""
    read = Operation(State.ADDED, relation, rows, f"{SOURCE_PREFIX}{relation} < orders.csv")
    with db.transaction() as transaction:
        transaction.read(lambda: DeferredOperations([read], {}))


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("DELETE FROM t WHERE k = 7", "(`7`, `70`) of `t`"),
        ("DELETE FROM t", "(`7`, `70`) of `t`"),
        ("UPDATE t SET a = 71 WHERE k = 7", "(`7`, `70`) of `t`"),
        ("DELETE FROM u WHERE a = 5", "(`5`, `5`) of `u`"),
        ("UPDATE t SET a = 1; DELETE FROM u", "(`7`, `70`) of `t`"),
        (
            "BEGIN; INSERT INTO t VALUES (8, 8); DELETE FROM u WHERE a = 5; COMMIT",
            "(`5`, `5`) of `u`",
        ),
    ],
)
def test_a_row_of_a_source_cannot_be_deleted(
    db: corollary.Database, statement: str, row: str
) -> None:
    take(db, "t", [(7, 70)])
    take(db, "u", [(5, 5)])
    before = db.commits, ask(db, "SELECT * FROM t"), ask(db, "SELECT * FROM u")
    message = refusal(db, statement)
    assert "C0928" in message
    assert f"The row {row} is asserted by the source `orders.csv`" in message
    assert "nothing was changed" in message
    assert (db.commits, ask(db, "SELECT * FROM t"), ask(db, "SELECT * FROM u")) == before


def test_rows_beside_those_of_a_source_are_written(db: corollary.Database) -> None:
    take(db, "t", [(7, 70)])
    db.sql("DELETE FROM t WHERE k < 3")
    db.sql("UPDATE t SET a = a WHERE k = 7")  # asks for nothing that the source has not
    db.sql("UPDATE t SET a = 5 WHERE k = 3")
    assert ask(db, "SELECT * FROM t") == [(3, 5), (7, 70)]


def test_a_key_that_a_source_has_is_named_with_its_source(db: corollary.Database) -> None:
    take(db, "t", [(7, 70)])
    message = violated(db, "INSERT INTO t VALUES (7, 71)")
    assert "correct (`7`, `70`) in the source `orders.csv`, or do without (`7`, `71`)" in message
    message = violated(db, "INSERT INTO t VALUES (3, 5)")
    assert "delete one of them in the same transaction" in message
    db.sql("BEGIN; DELETE FROM t WHERE k = 3; INSERT INTO t VALUES (3, 5); COMMIT")
    assert ask(db, "SELECT a FROM t WHERE k = 3") == [(5,)]


def test_a_transaction_says_which_rows_it_keeps(db: corollary.Database) -> None:
    take(db, "t", [(7, 70), (8, 80)])
    with db.transaction() as transaction:
        transaction.delete("t", [(1, 2), (7, 70)])
    assert repr(transaction.kept) == "{'t': <Kept: 1 tuple of t, from the source `orders.csv`>}"
    assert transaction.as_json()["kept"] == {
        "t": {"rows": [[7, 70]], "count": 1, "asserted_by": "the source `orders.csv`"}
    }
    assert ask(db, "SELECT k FROM t") == [(2,), (3,), (7,), (8,)]


@pytest.mark.parametrize(
    ("query", "added", "removed"),
    [
        ("SELECT k FROM t WHERE a > 3", [[3]], [[1]]),  # the same columns
        ("SELECT k AS j FROM t", [[2], [3]], []),  # another name
        ("SELECT DISTINCT a AS k FROM t", [[None], [2], [4]], [[1]]),  # null is possible
        ("SELECT a - 1 AS k FROM t", [[None], [3]], []),  # copies are possible
        ("SELECT b AS k FROM u", [[1], [1]], []),  # copies are possible
        ("SELECT k, a FROM t WHERE k > 1", [[2, None], [3, 4]], [[1]]),  # other columns
    ],
)
def test_a_view_that_is_redefined_says_what_came_and_went(
    tmp_path: Path, query: str, added: list[Any], removed: list[Any]
) -> None:
    with corollary.open(tmp_path / "w", engine="local") as db:
        db.sql(TABLES)
        db.sql("INSERT INTO t VALUES (1, 2), (2, NULL), (3, 4)")
        db.sql("INSERT INTO u VALUES (1, 1), (1, 1), (2, 1)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE a < 3")
        found = db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
        assert isinstance(found, Transaction)
        assert found.changes["v"].as_json() == {"added": added, "removed": removed}
        assert found.changes["v"].arrow().num_rows >= len(added)
        rows = db.sql("SELECT * FROM v").rows()
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert db.sql("SELECT * FROM v").rows() == rows
        # The log counts different rows.
        feed = {
            tuple(row.items())
            for each in db.feed("v", since=db.commits - 1)
            for row in each.arrow().to_pylist()
        }
        kinds = [dict(row)["_change_type"] for row in feed]
        assert db.log()[0].changes["v"] == (kinds.count("insert"), kinds.count("delete"))
        again = db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k FROM t WHERE a < 3")
        assert isinstance(again, Transaction)
        assert again.changes["v"].as_json() == {"added": removed, "removed": added}


def test_values_are_converted_when_they_are_assigned(db: corollary.Database) -> None:
    db.sql("CREATE TABLE w (d DECIMAL(6, 2), f DOUBLE, s STRING, m TIMESTAMP)")
    db.sql("INSERT INTO w VALUES (1, 2, 3, DATE '2026-11-16')")
    row = db.sql("SELECT CAST(d AS STRING), f, s, CAST(m AS STRING) FROM w").rows()
    assert row == [("1.00", 2.0, "3", "2026-11-16 00:00:00")]
    assert "does not fit `d`" in refusal(db, "INSERT INTO w (d) VALUES ('1')")


def test_one_transaction_between_begin_and_commit(db: corollary.Database) -> None:
    before = db.commits
    assert db.sql("BEGIN; DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (1, 7)") is None
    assert ask(db, "SELECT a FROM u WHERE b = 1") == [(4,)]
    assert (1, 7) in ask(db, "SELECT k, a FROM t")
    db.sql("COMMIT")
    assert db.commits == before + 1
    assert ask(db, "SELECT a FROM t WHERE k = 1") == [(7,)]
    db.sql("BEGIN; DELETE FROM t; ROLLBACK")
    assert len(ask(db, "SELECT * FROM t")) == 3
    assert "No transaction is open." in refusal(db, "COMMIT")
    db.sql("BEGIN")
    assert "is open already" in refusal(db, "BEGIN")
    db.sql("ROLLBACK")


def test_views_cannot_be_written(db: corollary.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT k FROM t")
    assert "C0915" in refusal(db, "INSERT INTO v VALUES (1)")


# --- tables ------------------------------------------------------------------------------------


def violated(db: corollary.Database, text: str) -> str:
    before = db.commits
    with pytest.raises(ConstraintError) as caught:
        db.sql(text)
    assert db.commits == before
    return str(caught.value)


def test_keys_ranges_and_lengths(db: corollary.Database) -> None:
    assert "key (k)" in violated(db, "INSERT INTO t VALUES (1, 5)")
    assert "does not fit INT" in violated(db, "INSERT INTO t VALUES (8, 2147483648)")
    db.sql("CREATE TABLE w (a TINYINT, b VARCHAR(3) UNIQUE, c BIGINT NOT NULL UNIQUE)")
    db.sql("INSERT INTO w VALUES (-128, 'äöü', 1), (127, NULL, 2), (NULL, NULL, 3)")
    assert "TINYINT" in violated(db, "INSERT INTO w VALUES (128, 'x', 4)")
    assert "VARCHAR(3)" in violated(db, "INSERT INTO w VALUES (1, 'abcd', 4)")
    assert "two rows of w have b" in violated(db, "INSERT INTO w VALUES (1, 'äöü', 4)")
    assert "key (c)" in violated(db, "INSERT INTO w VALUES (1, 'x', 3)")


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_bounds_are_checked_on_rows_that_come_in(key: str) -> None:
    db = corollary.open(None, engine="local")
    db.sql(f"CREATE TABLE w (k BIGINT {key}, a SMALLINT, b VARCHAR(3))")
    many = {"k": range(1000), "a": [*range(999), None], "b": ["äöü", None] * 500}
    with db.transaction() as tx:
        tx.insert("w", pa.table(many))
    with db.transaction() as tx:
        tx.insert("w", [(1000, 32767, "äöü"), (1001, -32768, None)])
    assert not any("range" in name for name in tx.stats)
    for rows, message in (
        ([(2000, 32768, "")], "a = 32768 does not fit SMALLINT in w"),
        ([(2000, 1, ""), (2001, 1, "äöüß")], "b = äöüß does not fit VARCHAR(3) in w"),
        (pa.table({**many, "k": range(2000, 3000), "a": range(-32769, -31769)}), "a = -32769"),
        (pa.table({**many, "k": range(2000, 3000), "b": [*"ab", "four"] * 333 + [""]}), "b = four"),
    ):
        with (
            pytest.raises(ConstraintError, match=re.escape(message)) as caught,
            db.transaction() as tx,
        ):
            tx.insert("w", rows)
        assert str(caught.value.diagnostics[0].span).startswith("SQL:1:")
    assert len(db.relation("w")) == 1002


def test_bounds_hold_for_what_triggers_write() -> None:
    db = corollary.open(None, engine="local")
    db.sql(
        """CREATE TABLE w (a TINYINT PRIMARY KEY);
        CREATE TABLE x (a BIGINT PRIMARY KEY);
        CREATE TRIGGER copy AFTER INSERT ON x REFERENCING NEW TABLE n FOR EACH STATEMENT
            INSERT INTO w SELECT a FROM n;
        CREATE TRIGGER mend AFTER INSERT ON w REFERENCING NEW TABLE n FOR EACH STATEMENT
            DELETE FROM w WHERE a IN (SELECT a FROM n WHERE a = 500)"""
    )
    db.sql("INSERT INTO x VALUES (1)")
    assert "a = 200 does not fit TINYINT" in violated(db, "INSERT INTO x VALUES (200)")
    db.sql("INSERT INTO w VALUES (500)")  # a trigger takes it out again
    assert db.relation("w").rows() == [(1,)]


def test_unique_counts_copies(db: corollary.Database) -> None:
    db.sql("CREATE TABLE w (a INT UNIQUE, b INT)")
    db.sql("INSERT INTO w VALUES (1, 1), (NULL, 1), (NULL, 1)")
    assert "two rows of w have a = 1" in violated(db, "INSERT INTO w VALUES (1, 1)")
    assert "two rows of w have a = 1" in violated(db, "INSERT INTO w VALUES (1, 2)")


def test_checks_fail_on_false_only(db: corollary.Database) -> None:
    db.sql("CREATE TABLE w (a INT CHECK (a > 0), b INT, CONSTRAINT small CHECK (a < b))")
    db.sql("INSERT INTO w VALUES (1, 2), (NULL, 3), (1, NULL)")
    assert "CHECK (a > 0) of w is false" in violated(db, "INSERT INTO w VALUES (0, 2)")
    assert "CHECK small (a < b)" in violated(db, "INSERT INTO w VALUES (5, 5)")


@pytest.mark.parametrize(
    ("duplicates", "rows"), [("count", [(1,), (1,)]), ("drop", [(1,)]), ("refuse", None)]
)
def test_duplicates(db: corollary.Database, duplicates: str, rows: list[tuple[int]] | None) -> None:
    db.sql(f"CREATE TABLE w (a INT) TBLPROPERTIES ('duplicates' = '{duplicates}')")
    if rows is None:
        assert "w has a row twice" in violated(db, "INSERT INTO w VALUES (1), (1)")
    else:
        db.sql("INSERT INTO w VALUES (1), (1)")
        assert db.sql("SELECT * FROM w").rows() == rows


def test_foreign_keys(db: corollary.Database) -> None:
    db.sql("""
        CREATE TABLE p (k INT PRIMARY KEY, s STRING);
        CREATE TABLE a (i INT PRIMARY KEY, x INT REFERENCES p);
        CREATE TABLE b (i INT PRIMARY KEY, x INT REFERENCES p ON DELETE CASCADE);
        CREATE TABLE c (i INT PRIMARY KEY, x INT REFERENCES p (k) ON DELETE SET NULL);
        CREATE TABLE d (i INT PRIMARY KEY, x INT REFERENCES b ON DELETE CASCADE);
        CREATE TABLE e (x INT, FOREIGN KEY (x) REFERENCES p NOT ENFORCED);
        CREATE TABLE f (x INT REFERENCES p ON DELETE CASCADE);
        INSERT INTO p VALUES (3, 'c'); INSERT INTO f VALUES (3), (3), (NULL);
        DELETE FROM p WHERE k = 3;
        INSERT INTO p VALUES (1, 'a'), (2, 'b');
        INSERT INTO a VALUES (1, 2), (2, NULL);
        INSERT INTO b VALUES (1, 1);
        INSERT INTO c VALUES (1, 1), (2, 2);
        INSERT INTO d VALUES (1, 1);
        INSERT INTO e VALUES (99)
    """)
    assert "a refers to p by x = 7" in violated(db, "INSERT INTO a VALUES (3, 7)")
    assert "a refers to p by x = 2" in violated(db, "DELETE FROM p WHERE k = 2")
    db.sql("DELETE FROM p WHERE k = 1")
    assert ask(db, "SELECT * FROM f") == [(None,)]
    assert ask(db, "SELECT * FROM b") == ask(db, "SELECT * FROM d") == []
    assert ask(db, "SELECT * FROM c") == [(1, None), (2, 2)]
    db.sql("UPDATE p SET s = 'z' WHERE k = 2")  # the key stays, so nothing follows
    assert ask(db, "SELECT * FROM c") == [(1, None), (2, 2)]


# --- views and their edits ---------------------------------------------------------------------


def test_views_in_any_order_and_in_circles(db: corollary.Database) -> None:
    db.sql("""
        CREATE VIEW third AS SELECT n + 1 AS n FROM second;
        CREATE VIEW second AS SELECT k AS n FROM t;
        CREATE VIEW even (n) AS SELECT 0 UNION SELECT n + 1 FROM odd WHERE n < 9;
        CREATE VIEW odd (n) AS SELECT n + 1 FROM even WHERE n < 9;
    """)
    assert ask(db, "SELECT * FROM third") == [(2,), (3,), (4,)]
    assert ask(db, "SELECT * FROM even") == [(0,), (2,), (4,), (6,), (8,)]
    assert ask(db, "SELECT * FROM odd") == [(1,), (3,), (5,), (7,), (9,)]


def test_the_same_text_changes_nothing(db: corollary.Database) -> None:
    text = "CREATE MATERIALIZED VIEW v AS SELECT a FROM u"
    db.sql(text)
    before = db.commits, db.program
    assert db.sql(text).commit_number is None
    assert db.sql(TABLES).commit_number is None
    assert db.sql("CREATE TABLE IF NOT EXISTS t (z INT)").commit_number is None
    assert (db.commits, db.program) == before


def test_a_replaced_view_changes_what_reads_it(db: corollary.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT a FROM u; CREATE MATERIALIZED VIEW w AS SELECT a FROM v")
    assert db.relation("w").rows() == [(2,), (2,), (4,)]
    db.sql("CREATE OR REPLACE VIEW v AS SELECT DISTINCT a, b FROM u")
    assert sorted(db.relation("w").rows()) == [(2,), (4,)]
    said = refusal(db, "CREATE OR REPLACE VIEW v AS SELECT b FROM u")
    assert "SQL of w" in said
    assert "C1371" in refusal(db, "CREATE VIEW v AS SELECT 1 AS x")


def test_drop(db: corollary.Database) -> None:
    empty = print_program(db.program)
    db.sql("CREATE VIEW v AS SELECT a FROM u; CREATE ALERT w AS SELECT a FROM v")
    assert "`w` reads it" in refusal(db, "DROP VIEW v")
    db.sql("DROP ALERT w; DROP VIEW v; DROP VIEW IF EXISTS v")
    assert print_program(db.program) == empty
    assert db.sql("DROP TABLE u; DROP TABLE t").dropped == {"t": 3, "u": 3}
    assert print_program(db.program) == ""


def test_drop_cascades_to_what_reads_it_and_to_references(db: corollary.Database) -> None:
    empty = print_program(db.program)
    db.sql("""
        CREATE VIEW v AS SELECT a FROM u; CREATE MATERIALIZED VIEW w AS SELECT a FROM v;
        CREATE ALERT x AS SELECT a FROM w; CREATE ASSERTION y CHECK (NOT EXISTS (SELECT * FROM v))
    """)
    db.sql("DROP VIEW v CASCADE")
    assert print_program(db.program) == empty
    db.sql("""
        CREATE TABLE p (n INT PRIMARY KEY);
        CREATE TABLE c (n INT REFERENCES p (n) ON DELETE CASCADE, m INT CHECK (m > 0))
    """)
    db.sql(
        "CREATE VIEW v AS SELECT n FROM p; INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1)"
    )
    assert "`c` refers to it and `v` reads it" in refusal(db, "DROP TABLE p")
    assert db.sql("DROP TABLE p CASCADE").dropped == {"p": 1}
    db.sql("INSERT INTO c VALUES (2, 2)")
    assert "CHECK (m > 0)" in violated(db, "INSERT INTO c VALUES (3, 0)")
    assert ask(db, "SELECT * FROM c") == [(1, 1), (2, 2)]
    db.sql("DROP TABLE c RESTRICT")
    assert print_program(db.program) == empty


def test_rows_that_are_dropped_stay_in_earlier_commits(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.sql("CREATE TABLE t (k INT, a INT); INSERT INTO t VALUES (1, 5), (1, 5), (2, 6)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(a) AS a FROM t GROUP BY k")
        full = db.commits
        db.sql("BEGIN; INSERT INTO t VALUES (7, 7); DROP TABLE t CASCADE; CREATE TABLE t (a INT)")
        assert ask(db, "SELECT * FROM t") == []
        db.sql("ROLLBACK; BEGIN; INSERT INTO t VALUES (7, 7); DROP TABLE t CASCADE")
        db.sql("CREATE TABLE t (k INT, a INT); INSERT INTO t VALUES (8, 8)")
        assert db.sql("COMMIT").dropped == {"t": 3}
    with corollary.open(tmp_path / "wh", engine="local") as db:
        assert ask(db, "SELECT * FROM t") == [(8, 8)]
        assert db.sql("DROP TABLE IF EXISTS nothing; DROP TABLE t").dropped == {"t": 1}
        old = f"SELECT * FROM t VERSION AS OF {full}"
        assert ask(db, f"{old} ORDER BY k") == [(1, 5), (1, 5), (2, 6)]
        assert ask(db, f"SELECT * FROM v VERSION AS OF {full}") == [(1, 10), (2, 6)]


def test_an_assertion_an_alert_and_triggers(db: corollary.Database) -> None:
    db.sql("""
        CREATE ASSERTION few CHECK ((SELECT COUNT(*) FROM t) < 5);
        CREATE ALERT big MESSAGE '{k} has {a}' AS SELECT k, a FROM t WHERE a > 100;
        CREATE TABLE log (k INT, was DECIMAL(8, 1), is_now INT, PRIMARY KEY (k, was));
        CREATE TRIGGER note AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE AS n
          FOR EACH STATEMENT WHEN (EXISTS (SELECT * FROM n WHERE a > 50))
          INSERT INTO log SELECT o.k, o.a, n.a FROM o JOIN n ON o.k = n.k WHERE o.a IS NOT NULL;
        CREATE TRIGGER gone AFTER DELETE ON t REFERENCING OLD TABLE o FOR EACH STATEMENT
          DELETE FROM log WHERE k IN (SELECT k FROM o)
    """)
    assert "the assertion few is false" in violated(db, "INSERT INTO t VALUES (7, 1), (8, 1)")
    transaction = db.sql("UPDATE t SET a = 101 WHERE k = 1")
    assert [each.message for each in transaction.alerts] == ["1 has 101"]
    assert ask(db, "SELECT * FROM log") == [(1, Decimal(2), 101)]
    db.sql("UPDATE t SET a = 5 WHERE k = 3")
    assert ask(db, "SELECT * FROM log") == [(1, Decimal(2), 101)]
    db.sql("DELETE FROM t WHERE k = 1")
    assert ask(db, "SELECT * FROM log") == []
    db.sql("DROP TRIGGER note; DROP TRIGGER gone; DROP ASSERTION few; DROP ALERT big")
    assert {each.relation for each in db.program.reactions} == {
        *("t.range1", "t.range2", "u.range1", "u.range2", "log.range1", "log.range2")
    }


@pytest.mark.parametrize(
    ("action", "result"),
    [
        ("INSERT INTO s SELECT a FROM n WHERE a IS NOT NULL", [(5,)]),
        ("INSERT INTO b SELECT a FROM n", [(5,), (5,), (7,), (7,)]),
        ("INSERT INTO b SELECT DISTINCT a FROM n", [(5,), (7,), (7,)]),
        ("INSERT INTO b SELECT COUNT(*) FROM n", [(2,), (7,), (7,)]),
        ("INSERT INTO b VALUES (1)", [(1,), (7,), (7,)]),
        ("DELETE FROM b WHERE a - 2 IN (SELECT a FROM n)", []),
    ],
)
def test_triggers_and_copies(action: str, result: list[tuple[int]]) -> None:
    with corollary.open(None, engine="local") as db:
        db.sql(f"""
            CREATE TABLE t (k INT PRIMARY KEY, a INT); CREATE TABLE s (a INT PRIMARY KEY);
            CREATE TABLE b (a INT);
            INSERT INTO b VALUES (7), (7);
            CREATE TRIGGER x AFTER INSERT ON t REFERENCING NEW TABLE n FOR EACH STATEMENT {action};
            INSERT INTO t VALUES (1, 5), (2, 5);
            DELETE FROM t WHERE k = 1;
        """)
        table = "s" if "INTO s" in action else "b"
        assert ask(db, f"SELECT * FROM {table}") == result


# --- what lasts --------------------------------------------------------------------------------


def test_a_warehouse_keeps_statements(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.sql(TABLES)
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, 10 / b AS q FROM u")
        db.sql("INSERT INTO u VALUES (1, 2), (1, 2)")
        program = print_program(db.program)
    with corollary.open(tmp_path / "wh", engine="local") as db:
        assert print_program(db.program) == program
        assert db.relation("v").rows() == [(1, 5.0), (1, 5.0)]
        assert db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, 10 / b AS q FROM u").changes == {}
        said = refusal(db, "INSERT INTO u VALUES (1, 0)")
        assert "CREATE MATERIALIZED VIEW v AS SELECT a, 10 / b AS q FROM u" in said
        db.sql("CREATE VIEW w AS SELECT COUNT(*) AS n FROM v")
        assert ask(db, "SELECT * FROM w") == [(2,)]


def test_altered_columns_leave_rules_where_sql_was(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.sql(f"{TABLES} CREATE VIEW v AS SELECT a AS x FROM t; CREATE VIEW w AS SELECT x FROM v")
        db.sql("INSERT INTO t VALUES (1, 2)")
        alter(db, Alteration("t", rename={"a": "z"}))
        assert {each.relation for each in db.program.directives if each.name == "sql"} == {"u", "w"}
        db.sql("CREATE VIEW y AS SELECT z FROM t")
        assert ask(db, "SELECT x, z FROM w, y") == [(2, 2)]


def test_questions_about_the_past(tmp_path: Path) -> None:
    with corollary.open(tmp_path / "wh", engine="local") as db:
        db.sql(TABLES)
        db.sql("CREATE VIEW v AS SELECT COUNT(*) AS n FROM u")
        third = db.sql("INSERT INTO u VALUES (1, 1)").commit_number
        db.sql("INSERT INTO u VALUES (2, 2)")
        assert ask(db, f"SELECT n FROM v VERSION AS OF {third}") == [(1,)]
        assert ask(db, "SELECT n FROM v VERSION AS OF :c", c=third) == [(1,)]
        assert ask(db, "SELECT n FROM v", at=third) == [(1,)]
        assert ask(db, "SELECT n FROM v TIMESTAMP AS OF '2999-01-01'") == [(2,)]
        assert "C0936" in refusal(db, "SELECT n FROM v TIMESTAMP AS OF '1999-01-01'")
        assert "C1376" in refusal(db, "SELECT v.n FROM v VERSION AS OF 3, u")
        assert "C1376" in refusal(db, "SELECT n FROM v VERSION AS OF 3", at=3)


# --- who may ask -------------------------------------------------------------------------------


def test_readers_see_what_was_granted(db: corollary.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT a FROM u; CREATE VIEW bad AS SELECT 1 / (k - 1) AS x FROM t")
    db.grant("ann", "v", "bad")
    ann = db.reader("ann")
    assert ask(ann, "SELECT DISTINCT a FROM V") == [(2,), (4,)]
    for text in (
        "SELECT * FROM u",
        "SELECT * FROM v WHERE a IN (SELECT k FROM t)",
        "WITH w AS (SELECT * FROM u) SELECT * FROM w",
        "SELECT * FROM nothing",
    ):
        with pytest.raises(AccessError) as caught:
            ann.sql(text)
        assert "C1040" in str(caught.value)
    with pytest.raises(AccessError) as caught:
        ann.sql("SELECT x FROM bad")
    assert "C1042" in str(caught.value)
    assert "1 / " not in str(caught.value)
    for text in ("DELETE FROM v", "CREATE VIEW w AS SELECT 1 AS a", "BEGIN"):
        with pytest.raises(AccessError):
            ann.sql(text)
    assert "one question" in refusal(ann, "SELECT 1; SELECT 2").lower()


def test_null_for_a_column_of_another_type() -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=".decl person(id: number, born: date?)")
        db.sql("INSERT INTO person VALUES (1, NULL), (2, NULL)")
        assert db.sql("SELECT id FROM person WHERE born IS NULL ORDER BY id").rows() == [(1,), (2,)]


def test_deletes_follow_deletes_in_a_transaction() -> None:
    with corollary.open(None, engine="local") as db:
        db.load(text=".decl n(x: number)")
        db.sql("INSERT INTO n VALUES (1), (2), (3), (4)")
        db.sql("BEGIN; DELETE FROM n WHERE x < 3; DELETE FROM n WHERE x > 1 AND x < 4; COMMIT")
        assert db.sql("SELECT x FROM n").rows() == [(4,)]


# --- words -------------------------------------------------------------------------------------

CONSTRAINED = """CREATE TABLE c (k INT PRIMARY KEY,
  a INT NOT NULL,
  b TINYINT CHECK (b > 0),
  s VARCHAR(3) UNIQUE,
  CONSTRAINT few CHECK (a < 10));
INSERT INTO c VALUES (5, 2, 3, 'abc');
CREATE VIEW ratio AS SELECT SUM(10 / (a - 2)) AS q FROM c;
CREATE ASSERTION small CHECK ((SELECT COUNT(*) FROM c) < 3);"""


@pytest.mark.parametrize(
    ("statement", "message", "place"),
    [
        (
            "INSERT INTO c VALUES (1, NULL, 1, 'a')",
            "C1374]: `a` of `c` is NOT NULL, but",
            "SQL:1:1",
        ),
        ("UPDATE c SET b = 1, a = NULL", "C1374]: `a` of `c` is NOT NULL, but", "SQL:1:21"),
        ("INSERT INTO c VALUES (1, 20, 1, 'a')", "C1051]: CHECK few (a < 10) of c is", "SQL:5:3"),
        ("INSERT INTO c VALUES (1, 2, -1, 'a')", "C1051]: CHECK (b > 0) of c is", "SQL:3:13"),
        ("INSERT INTO c VALUES (1, 2, 300, 'a')", "C1051]: b = 300 does not fit", "SQL:3:3"),
        ("INSERT INTO c VALUES (1, 2, 3, 'abc')", "C1051]: two rows of c have s", "SQL:4:16"),
        ("INSERT INTO c VALUES (5, 3, 3, 'abd')", "C0937]: `c` would hold two rows", "SQL:1:1"),
        ("UPDATE c SET a = a / 0", "C0810]: Division by zero for k = 5, a = 2", "SQL:1:18"),
        ("SELECT * FROM ratio", "C0810]: Division by zero for k = 5, a = 2", "SQL:7:22"),
        ("SELECT (SELECT b FROM u WHERE a = 2) AS x", "C0810]: A subquery in place", "SQL:1:1"),
        ("SELECT CAST(b AS TINYINT) + a / 0 FROM u", "C0810]: Division by zero for a", "SQL:1:1"),
        ("INSERT INTO ratio VALUES (1)", "C0915]: `ratio` is a view", "SQL:1:13"),
        (
            "INSERT INTO c VALUES (1, 2, 3, 'x'), (2, 3, 4, 'y')",
            "C1051]: the assertion small is false",
            "SQL:8:1",
        ),
    ],
)
def test_errors_speak_of_the_statement(
    db: corollary.Database, statement: str, message: str, place: str
) -> None:
    db.sql(CONSTRAINED)
    with pytest.raises(InputError) as caught:
        db.sql(statement)
    (found,) = caught.value.diagnostics
    assert message in str(found)
    assert str(found.span) == place
    for word in ("rule", ".each", ".rows", "n = ", "tuple", "caused by `+small"):
        assert word not in f"{found.message} {found.note}"


def test_constraints_of_a_warehouse_speak_of_the_statement(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "w"), engine="local") as first:
        first.sql(CONSTRAINED)
    with corollary.open(str(tmp_path / "w"), engine="local") as again:
        found = refusal(again, "INSERT INTO c VALUES (1, 20, 1, 'a')")
        assert found.startswith("error[C1051]: CHECK few (a < 10) of c is false for k = 1")
        assert "SQL of c:1:1" in found


def test_a_limit_speaks_of_the_statement() -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT n FROM r"
    limits = corollary.Limits(rounds=20)
    with corollary.open(None, engine="local", limits=limits) as db, pytest.raises(LimitError) as e:
        db.sql(endless)
    assert ", at work on the SQL at SQL:1:40;" in str(e.value)


def test_pivot_has_expressions_of_aggregates() -> None:
    """The answers are those of Spark."""
    rows = "('a', 2020, 1, 10), ('a', 2021, 2, 20), ('b', 2020, 3, 30)"
    query = "SELECT * FROM t PIVOT ({} FOR y IN (2020, 2021)) ORDER BY k"
    with corollary.open(None, engine="local") as database:
        database.sql(f"CREATE TABLE t (k STRING, y INT, q INT, v INT); INSERT INTO t VALUES {rows}")
        assert database.sql(query.format("sum(v) + 1 AS s, avg(v)")).rows() == [
            ("a", 1, 11, 10.0, None, None),
            ("a", 2, None, None, 21, 20.0),
            ("b", 3, 31, 30.0, None, None),
        ]
        found = database.sql(query.format("sum(v * q), coalesce(max(q), 0)")).rows()
        assert found == [("a", 10, 1, 40, 2), ("b", 90, 3, None, None)]
