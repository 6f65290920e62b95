"""Statements from text: what they say, where they end, what is wrong with them."""

import pytest

from corollary.errors import InputError
from corollary.frontends.sql.statements import nodes
from corollary.frontends.sql.statements.parser import parse_statements
from corollary.source import SourceFile


def parsed(text: str) -> list[nodes.Statement]:
    return parse_statements(SourceFile("shop.sql", text))


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parsed(text)
    (found,) = caught.value.diagnostics
    assert found.span is not None
    return f"{found.code} {found.span.line}:{found.span.column} {found.message} {found.note}"


def test_comments_and_semicolons_in_texts_do_not_end_statements() -> None:
    found = parsed("-- a; b\nSELECT ';' /* ; */ AS x; ;\n\nVALUES (1) -- end;")
    assert [type(each) for each in found] == [nodes.QueryStatement, nodes.QueryStatement]
    assert [each.span.line for each in found] == [2, 4]


def test_a_table_with_everything() -> None:
    (table,) = parsed(
        """CREATE TABLE IF NOT EXISTS `my t` (
             k INT PRIMARY KEY COMMENT 'it''s the key',
             a DECIMAL(12, 2) NOT NULL CHECK (a > 0),
             p BIGINT REFERENCES p ON DELETE SET NULL,
             CONSTRAINT u UNIQUE (a, p) NOT ENFORCED,
             FOREIGN KEY (k, a) REFERENCES q (x, y) ON DELETE CASCADE)
           USING csv OPTIONS (path 'x.csv', 'header' = 'true')
           PARTITIONED BY (p) TBLPROPERTIES ('duplicates' = 'drop') COMMENT 'all of it'"""
    )
    assert isinstance(table, nodes.CreateTable)
    assert table.name.text == "my t"
    assert table.if_not_exists
    assert [str(each.type.type) for each in table.columns] == [
        "number?",
        "decimal(12,2)",
        "number?",
    ]
    assert [each.type.bits for each in table.columns] == [32, 64, 64]
    assert [type(each).__name__ for each in table.constraints] == [
        *("KeyConstraint", "CheckConstraint", "ForeignKey", "KeyConstraint", "ForeignKey")
    ]
    assert [each.is_enforced for each in table.constraints] == [True, True, True, False, True]
    assert [each.on_delete for each in table.constraints if isinstance(each, nodes.ForeignKey)] == [
        nodes.DeleteAction.SET_NULL,
        nodes.DeleteAction.CASCADE,
    ]
    assert [(each.name, each.value) for each in table.options] == [
        ("path", "x.csv"),
        ("header", "true"),
    ]
    assert table.duplicates is nodes.Duplicates.DROP


def test_words_of_sql_are_names_of_columns() -> None:
    (table,) = parsed("CREATE TABLE t (key INT, value STRING, date DATE, check INT, comment INT)")
    assert isinstance(table, nodes.CreateTable)
    names = [each.name.text for each in table.columns]
    assert names == ["key", "value", "date", "check", "comment"]


def test_views_assertions_alerts_triggers() -> None:
    found = parsed(
        """CREATE OR REPLACE VIEW v (a, b COMMENT 'x') COMMENT 'y' AS SELECT 1, 2;
           CREATE MATERIALIZED VIEW m AS WITH q AS (SELECT 1 AS x) SELECT * FROM q;
           CREATE ASSERTION a CHECK (NOT EXISTS (SELECT * FROM v));
           CREATE ALERT w MESSAGE 'lost {x}' AS SELECT 1 AS x;
           CREATE TRIGGER r AFTER UPDATE ON t REFERENCING OLD TABLE AS o NEW TABLE n
             FOR EACH STATEMENT WHEN (EXISTS (SELECT * FROM n)) INSERT INTO u SELECT k FROM o;
           DROP VIEW IF EXISTS v"""
    )
    kinds = ["CreateView", "CreateView", "CreateAssertion", "CreateAlert", "CreateTrigger", "Drop"]
    assert [type(each).__name__ for each in found] == kinds
    view, stored, _, alert, trigger, drop = found
    assert isinstance(view, nodes.CreateView)
    assert [each.text for each in view.columns] == ["a", "b"]
    assert view.is_replacing
    assert isinstance(stored, nodes.CreateView)
    assert stored.is_materialized
    assert stored.text.startswith("CREATE MATERIALIZED VIEW m AS WITH")
    assert isinstance(alert, nodes.CreateAlert)
    assert alert.message == "lost {x}"
    assert isinstance(trigger, nodes.CreateTrigger)
    assert (trigger.old and trigger.old.text, trigger.new and trigger.new.text) == ("o", "n")
    assert isinstance(trigger.action, nodes.Insert)
    assert isinstance(drop, nodes.Drop)
    assert drop.if_exists


def test_writes_and_transactions() -> None:
    found = parsed(
        """BEGIN; INSERT INTO t (a) VALUES (1); INSERT INTO t SELECT * FROM u;
           UPDATE t AS x SET a = 1, b = x.a + 1 WHERE k = 2;
           DELETE FROM t x WHERE x.k = 1; COMMIT"""
    )
    kinds = [type(each).__name__ for each in found]
    assert kinds == [
        *(
            "TransactionBoundary",
            "Insert",
            "Insert",
            "UpdateStatement",
            "Delete",
            "TransactionBoundary",
        )
    ]
    update = found[3]
    assert isinstance(update, nodes.UpdateStatement)
    assert [name.text for name, _ in update.assignments] == ["a", "b"]
    assert update.alias == "x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 'abc", "C1300 1:8 The closing"),
        ("SELECT 1;\nSELCT 1", "C1363 2:1 Corollary has no statement `SELCT` in SQL."),
        ("SELCT 1", "did you mean `SELECT`?"),
        ("CREATE VEW v AS SELECT 1", "C1363 1:8"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "leave out `TEMPORARY`"),
        ("CREATE VIEW v AS\n SELECT a FROM WHERE x", "C1300 2:16"),
        ("CREATE VIEW v AS SELECT (1", "C1300 1:25 `(` is not closed."),
        ("CREATE VIEW v AS SELECT 1 FROM t )", "C1300 1:34 `)` closes nothing"),
        ("CREATE VIEW v AS 5", "C1361 1:18 Here a query is expected, but `5` comes."),
        ("CREATE TABLE t (a INT", "C1361 1:22 Here `)` is expected, but the statement ends."),
        ("CREATE TABLE t (a TEXT)", "C1362 1:19"),
        ("CREATE TABLE t (a CHAR(3))", "Spark would add blanks"),
        ("CREATE TABLE t (a INT GENERATED ALWAYS AS (5))", "C1363 1:23"),
        ("SHOW DATABASES", "C1361 1:6 Here `TABLES`, `VIEWS`, `COLUMNS`, `FUNCTIONS`, `TBL"),
        ("EXPLAIN DROP TABLE t", "C1361 1:9 Here a question is expected"),
        ("CREATE TABLE t (a INT) USING csv AS SELECT 1 AS a", "CREATE MATERIALIZED VIEW"),
        ("CREATE TABLE s.t (a INT)", "C1364 1:14"),
        ("CREATE TRIGGER t BEFORE INSERT ON t", "C1365 1:18"),
        ("CREATE TRIGGER t AFTER INSERT ON t FOR EACH ROW DELETE FROM t", "C1365 1:36"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('duplicates' = 'twice')", "C1366 1:39"),
        ("INSERT INTO t BY NAME SELECT a + 1 FROM u", "C1363 1:23"),
        ("ALTER VIEW v RENAME TO w", "C1363 1:14"),
        (
            "CREATE TRIGGER t AFTER INSERT ON t FOR EACH STATEMENT INSERT OVERWRITE t SELECT 1",
            "C1365 1:55",
        ),
        ("UPDATE t SET", "C1361 1:13"),
        ("DELETE FROM t WHERE", "C1361 1:20 Here a condition is expected"),
        ("ALTER TABLE t ADD x INT", "C1361 1:19 Here `COLUMN`, `COLUMNS` or a constraint"),
        ("DROP TABLE t CASCADES", "C1361 1:14 Here the end of the statement is expected"),
    ],
)
def test_errors_have_a_place_and_a_cure(text: str, said: str) -> None:
    assert said in refused(text)


def test_the_errors_of_all_statements_are_reported() -> None:
    with pytest.raises(InputError) as caught:
        parsed("SELCT 1; CREATE TABLE t (a TEXT); SELECT 1")
    assert [each.code for each in caught.value.diagnostics] == ["C1363", "C1362"]


def test_deep_nesting_is_refused() -> None:
    assert refused(f"SELECT {'(' * 200}1{')' * 200}").startswith("C1361")
