"""Bounds on questions before their evaluation: words, depth, seconds; long lists are data."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import corollary
from corollary.core.engine import Limits
from corollary.database.database import Database
from corollary.database.intake.evaluate_once import QueriedProgram
from corollary.database.program.question_bounds import QUESTION_MAX_WORDS, check_size
from corollary.database.writing.inputs import FileLocations
from corollary.errors import InputError, LimitError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

MANY = 300
"""More literals than are compared one by one."""
PROGRAM = """
.decl item(id: number, name: symbol, price: decimal(10,2)?, day: date?)
item(1, "a", 1.50, d"2026-01-01"). item(2, "b", null, d"2026-01-02"). item(3, "c", 300.00, null).
item(900, "it's", 2.25, d"2026-03-01").
.decl gap(x: number?)
gap(1). gap(null). gap(-5).
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with corollary.open(None, engine="local") as made:
        made.load(text=PROGRAM)
        yield made


def listed(make: Callable[[int], str], first: int = 2, count: int = MANY) -> str:
    return ", ".join(make(number) for number in range(first, first + count))


NUMBERS = listed(str)
TEXTS = f"{listed(lambda each: repr(f'n{each}'))}, 'b', 'it''s'"
ROWS = listed("({})".format)
PRICES = listed(lambda each: f"{each}.0")
DAYS = f"DATE'2026-01-02', {listed(lambda each: f'DATE{str(2000 + each)!r}')}"


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        (f"SELECT id FROM item WHERE id IN ({NUMBERS})", [(2,), (3,)]),
        (f"SELECT id FROM item WHERE id NOT IN ({NUMBERS})", [(1,), (900,)]),
        (f"SELECT id FROM item WHERE name IN ({TEXTS})", [(2,), (900,)]),
        (f"SELECT id FROM item WHERE price IN ({PRICES})", [(3,)]),
        (f"SELECT id FROM item WHERE price NOT IN ({PRICES})", [(1,), (900,)]),
        (f"SELECT id FROM item WHERE day IN ({DAYS})", [(1,), (2,)]),
        (f"SELECT x FROM gap WHERE x IN (-5, {NUMBERS}, NULL)", [(-5,)]),
        (f"SELECT x FROM gap WHERE x NOT IN ({NUMBERS})", [(-5,), (1,)]),
        (f"SELECT x FROM gap WHERE x NOT IN ({NUMBERS}, NULL)", []),
        (
            f"SELECT x, x IN (1, {NUMBERS}) AS a, x IN ({NUMBERS}, NULL) AS b FROM gap",
            [(None, None, None), (-5, False, None), (1, True, None)],
        ),
        (
            f"SELECT id, CASE WHEN id IN ({NUMBERS}) THEN 'in' ELSE 'out' END AS c FROM item",
            [(1, "out"), (2, "in"), (3, "in"), (900, "out")],
        ),
        (
            f"SELECT count(*) FROM item GROUP BY id > 2 HAVING max(id) IN ({NUMBERS})",
            [(2,)],
        ),
        (
            f"SELECT a.id, b.id FROM item a LEFT JOIN item b ON b.id=a.id+1 AND b.id IN({NUMBERS})",
            [(1, 2), (2, 3), (3, None), (900, None)],
        ),
        (
            f"SELECT count(*) FILTER (WHERE id IN ({NUMBERS})) AS n FROM item",
            [(2,)],
        ),
        (
            f"SELECT id FROM item WHERE EXISTS (SELECT 1 FROM gap WHERE x + id IN ({NUMBERS}))",
            [(1,), (2,), (3,)],
        ),
        (f"SELECT count(*) FROM (VALUES {ROWS}, (NULL)) t(x) WHERE x IS NULL", [(1,)]),
        (f"SELECT count(*), sum(x) FROM (VALUES {ROWS}) t(x)", [(300, 45450)]),
        (
            f"SELECT x, count(*) FROM (VALUES (7), {ROWS}, (NULL)) t(x) WHERE x < 8 GROUP BY x",
            [(2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 2)],
        ),
        (f"VALUES {listed('({})'.format, 1, 250)} ORDER BY col1 DESC LIMIT 2", [(250,), (249,)]),
        (
            f"SELECT x FROM (VALUES (1), {ROWS}) t(x) WHERE x < 4 UNION ALL SELECT 2.5",
            [(1,), (2,), (3,), (2.5,)],
        ),
    ],
)
def test_long_lists(database: Database, question: str, rows: list[Any]) -> None:
    """The expectations are those of SQL's three truth values."""
    found = database.sql(question).rows()
    assert found == rows if "ORDER BY" in question else Counter(found) == Counter(rows)


def test_a_long_list_is_data_and_not_rules(database: Database) -> None:
    """The plan does not grow with the values."""
    asked = "SELECT id FROM item WHERE id IN ({})"
    short, long = (asked.format(listed(str, 2, count)) for count in (MANY, 4 * MANY))
    assert len(database.explain(short)) == len(database.explain(long))


def test_writes_with_long_lists() -> None:
    with corollary.open(None, engine="local") as made:
        made.sql("CREATE TABLE t (x BIGINT, y STRING)")
        made.sql(f"INSERT INTO t VALUES {listed(lambda each: f'({each}, {str(each)!r})', 1)}")
        made.sql(f"INSERT INTO t VALUES {listed('({}, NULL)'.format, 1)}")
        made.sql(f"DELETE FROM t WHERE x IN ({listed(str, 3)})")
        assert Counter(made.relation("t").rows()) == Counter(
            [(1, "1"), (2, "2"), (1, None), (2, None)]
        )


@pytest.mark.slow
def test_long_chains(database: Database) -> None:
    union = " UNION ALL ".join("SELECT 1" for _ in range(1000))
    assert database.sql(f"SELECT count(*) FROM ({union})").rows() == [(1000,)]
    assert database.sql(f"{union} ORDER BY 1 LIMIT 2").rows() == [(1,), (1,)]
    either = " OR ".join(f"id = {each}" for each in range(3, 1200))
    assert database.sql(f"SELECT id FROM item WHERE {either}").rows() == [(3,), (900,)]


DEEP = {
    "sum": "SELECT " + "+".join(["id"] * 2000) + " FROM item",
    "brackets": f"SELECT {'(' * 2000}1{')' * 2000}",
    "not": f"SELECT * FROM item WHERE {'NOT ' * 2000} id = 1",
    "minus": f"SELECT {'- ' * 2000}1",
    "case": f"SELECT CASE {' '.join(f'WHEN id = {i} THEN {i}' for i in range(600))} END FROM item",
    "tables": "WITH t0 AS (SELECT 1 AS x)"
    + "".join(f", t{i} AS (SELECT x FROM t{i - 1})" for i in range(1, 400))
    + " SELECT * FROM t399",
    "subqueries": f"SELECT * FROM {'(SELECT * FROM ' * 1000}item{') t' * 1000}",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_statements_are_refused(database: Database, name: str) -> None:
    with pytest.raises(InputError, match=r"(C1322|C1361).*nested"):
        database.sql(DEEP[name])
    with pytest.raises(InputError, match=r"(C1322|C1361).*nested"):
        database.ask(DEEP[name], None, {})


@pytest.mark.parametrize(
    "goal",
    [f"x = {'(' * 2000}1{')' * 2000}", f"x = {'-' * 2000}1", f"{'!' * 2000}gap(1)"],
    ids=["brackets", "minus", "not"],
)
def test_deep_goals_are_refused(database: Database, goal: str) -> None:
    with pytest.raises(InputError, match="C0101"):
        database.query(goal)


def test_the_words_of_a_question_are_bounded(database: Database) -> None:
    long = "1," * (QUESTION_MAX_WORDS // 2)
    for ask in (
        lambda: database.sql(f"SELECT id FROM item WHERE id IN ({long} 1)"),
        lambda: database.ask(f"SELECT id FROM item WHERE id IN ({long} 1)", None, {}),
        lambda: database.query(f"x = f({long} 1)"),
    ):
        with pytest.raises(InputError, match=r"C0997.*400,000.*\n.*join it"):
            ask()


@pytest.mark.parametrize("sign", ["'", '"', "`", "/*", "--", "'\\", "//"])
def test_texts_and_comments_count_once(sign: str) -> None:
    """An end that is missing is not looked for again and again."""
    check_size(f"SELECT {sign}" + "a, " * QUESTION_MAX_WORDS)
    check_size(sign + "\\'" * QUESTION_MAX_WORDS + "\\")


@pytest.mark.parametrize("ask", ["sql", "question_shape", "query"])
def test_seconds_count_from_the_first_word(ask: str) -> None:
    with corollary.open(None, engine="local", limits=Limits(seconds=0.0)) as made:
        text = "1 = 1" if ask == "query" else "SELECT 1"
        arguments = ({},) if ask == "question_shape" else ()
        with pytest.raises(LimitError, match="before the evaluation"):
            getattr(made, ask)(text, *arguments)


def test_a_program_is_asked_with_a_long_list() -> None:
    program = parse(SourceFile("p.dl", ".decl p(x: number)\np(2). p(1000)."))
    question = f"SELECT x FROM p WHERE x IN ({NUMBERS})"
    assert QueriedProgram(program, FileLocations()).sql(question).rows() == [(2,)]
