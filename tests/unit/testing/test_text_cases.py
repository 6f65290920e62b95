"""Cases in Datalog and in SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from corollary.errors import CorollaryError, InputError
from corollary.testing.case_files import read_cases
from corollary.testing.run_case import run_case
from support.command_line import OK, cli, put

NETWORK = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl back(x: symbol, y: symbol)
back(y, x) :- path(x, y).
.decl weight(x: symbol, n: number, f: float, d: date?, on: bool)
lost(x, y) :- -path(x, y).
.alert lost "lost {x} -> {y}"
circle(x) :- +path(x, x).
.abort circle "a circle through {x}"
"""
CASES = """
// case: an edge is lost
// given
edge("a", "b"). edge("b", "c").
// when
-edge("b", "c").
// then back, path
path("a", "b"). back("b", "a").
-path("b", "c"). -path("a", "c").
// removed edge
edge("b", "c").
// alert: lost a -> c
// alert: lost b -> c

// case: several steps
// then path
// when
edge("a", "b"). +edge("b", "c").
.alert path "{x} to {y}"
// then
+path("a", "b"). +path("b", "c"). +path("a", "c").
// proof
path("a", "c") :- edge("a", "b"), edge("b", "c").
// remove
path(x, z) :- path(x, y), edge(y, z).
.alert path "{x} to {y}"
// removed
path("a", "c").
// when
edge("c", "d").
path(x, x) :- edge(x, _), x = "e".
// added
path("c", "d").
// no alerts

// case: circles
// given
edge("a", "b").
// when
edge("b", "a").
// refused: circle

// case: values
// given
weight("-1", -1, 1.5, d"2026-11-16", true).
// when
weight("null", 0x10, -2e3, null, false).
// then
weight("-1", -1, 1.5, d"2026-11-16", true). weight("null", 16, -2000.0, null, false).
"""
SHOP = """
CREATE TABLE price (item STRING, net DECIMAL(10, 2), PRIMARY KEY (item));
CREATE VIEW cheap AS SELECT item, net * 2 AS twice FROM price WHERE net < 10;
"""
SQL_CASES = """
-- case: a price rises
-- given price
VALUES ('pen', 2), ('ink', 5.5);
-- then cheap
VALUES ('pen', 4), ('ink', 11.00);
-- when
UPDATE price SET net = 20 WHERE item = 'pen';
-- removed cheap
SELECT 'pen' AS item;
-- then price
SELECT 'ink' AS item, 5.50 AS net UNION ALL SELECT 'pen', 20;
-- when
INSERT INTO price VALUES ('ink', 1);
-- refused: C0937
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("network.dl", NETWORK)
    put("shop.sql", SHOP)


def lines(name: str, text: str) -> dict[str, list[str]]:
    """Return for each case what does not hold."""
    cases = read_cases(put(name, text))
    return {each.name: list(run_case(each).lines()) for each in cases}


def test_cases_in_datalog() -> None:
    assert lines("network.test.dl", CASES) == {
        "an edge is lost": [],
        "several steps": [],
        "circles": [],
        "values": [],
    }
    found = lines("network.test.dl", CASES.replace('back("b", "a")', 'back("a", "b")'))
    assert found["an edge is lost"] == [
        "  rows of back:",
        '    missing     back("a", "b")',
        '    unexpected  back("b", "a")',
    ]


def test_cases_in_sql() -> None:
    assert lines("shop.test.sql", SQL_CASES) == {"a price rises": []}
    assert lines("shop.test.sql", SQL_CASES.replace("11.00", "12")) == {
        "a price rises": [
            "  rows of cheap:",
            '    missing     cheap("ink", 12.00)',
            '    unexpected  cheap("ink", 11.00)',
        ]
    }


def test_they_are_found_in_directories() -> None:
    put("network.test.dl", CASES)
    put("shop.test.sql", SQL_CASES)
    put("sub/network.test.dl", f"// program: ../network.dl\n{CASES}")
    found = cli("test")
    assert (found.exit_code, found.stderr[:9]) == (OK, "9 passed "), found.stdout


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("// given\n", "There is no case yet.", 1),
        ("// case: a\n// given\nedge(x, y) :- path(x, y).\n", "`given` has something else than", 2),
        ("// case: a\n// when\n.decl p(x: number)\n", "`when` has something else than", 2),
        ("// case: a\n// given\nedge(", "Expected a term or `)`, but", 3),
        ('// case: a\n// given\nedge("a").\n// then\n', "The row has 1 value, and `edge`", 3),
        ("// case: a\n// then\n\n\npaht(1, 2).\n", "There is no relation `paht`.", 5),
    ],
)
def test_what_is_wrong(text: str, message: str, line: int) -> None:
    path = put("network.test.dl", text)
    error: CorollaryError | None
    try:
        (error,) = [run_case(each).error for each in read_cases(path)]
    except InputError as refused:
        error = refused
    assert isinstance(error, InputError)
    (finding,) = error.diagnostics
    assert finding.message.startswith(message), finding.message
    assert finding.span is not None
    assert finding.span.line == line
