"""What is typed into the shell is cut into entries."""

import pytest

from corollary.cli.shell.entries import EntryBuffer


def entries(*lines: str) -> list[tuple[str, str]]:
    buffer = EntryBuffer()
    found = [entry for line in lines for entry in buffer.feed(line)]
    found += buffer.finish()
    return [(str(each.kind), each.text) for each in found]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["SELECT 1;"], [("sql", "SELECT 1")]),
        (["SELECT 1", "  AS x;"], [("sql", "SELECT 1\n  AS x")]),
        (["SELECT 1; SELECT 2;"], [("sql", "SELECT 1"), ("sql", "SELECT 2")]),
        (["SELECT ';' -- ;", ";"], [("sql", "SELECT ';' -- ;")]),
        (["SELECT 'a", "b';"], [("sql", "SELECT 'a\nb'")]),
        (["SELECT 1"], [("sql", "SELECT 1")]),
        (["-- nothing", "SELECT 1;"], [("sql", "-- nothing\nSELECT 1")]),
        (['link("a", y).'], [("datalog", 'link("a", y).')]),
        (['link("a.b", y),', ' y != "c".'], [("datalog", 'link("a.b", y),\n y != "c".')]),
        (["p(x) :- q(x), x > 1.5.", "p(1)?"], [
            ("datalog", "p(x) :- q(x), x > 1.5."), ("datalog", "p(1)?"),
        ]),
        ([".decl p()", "p(1)."], [("datalog", ".decl p()"), ("datalog", "p(1).")]),
        (["a.b(x)."], [("datalog", "a.b(x).")]),
        ([r"\d", "SELECT 1;"], [("command", r"\d"), ("sql", "SELECT 1")]),
        (["", "  "], []),
        (["SELEC 1;", "SELECT 2;"], [("sql", "SELEC 1"), ("sql", "SELECT 2")]),
        (["x is 1 + 2, p(x)."], [("datalog", "x is 1 + 2, p(x).")]),
        (["update(x)."], [("datalog", "update(x).")]),
        (["(SELECT 1);"], [("sql", "(SELECT 1)")]),
    ],
)  # fmt: skip
def test_entries(lines: list[str], expected: list[tuple[str, str]]) -> None:
    assert entries(*lines) == expected
