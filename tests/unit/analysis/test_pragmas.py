"""Warnings that a comment accepts: on its line, on the next one, in the whole file."""

import pytest

from corollary.analysis.check import diagnose
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

HEAD = ".decl n(x: number)\n.output n\nn(0).\n"
ENDLESS = "n(x + 1) :- n(x)."
ALLOW = "// corollary: allow C0706"


def codes(text: str) -> list[str]:
    return [each.code for each in diagnose(parse(SourceFile("p.dl", text)))]


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{ENDLESS} {ALLOW}\n",
        f"{HEAD}{ALLOW}\n{ENDLESS}\n",
        f"{HEAD}  {ALLOW}: a limit stops it\n\n// why\n/* and\nhow */\n{ENDLESS}\n",
        f"{HEAD}n(x + 1) :-\n    n(x). //corollary:allow C0703,C0706\n",
        f"{HEAD}n(x + 1) :- {ALLOW}\n    n(x).\n",
        f"{ALLOW}\n{HEAD}{ENDLESS}\nn(x + 2) :- n(x).\n",
        f"// A counter.\n/* of two\n lines */\n\n{ALLOW} C0703\n{HEAD}{ENDLESS}\n",
        f"{HEAD}{ENDLESS} {ALLOW}".replace("\n", "\r\n"),
    ],
)
def test_accepted(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{ENDLESS}\n{ALLOW}\n",
        f"{HEAD}{ALLOW}\nn(7).\n{ENDLESS}\n",
        f"{HEAD}n(7). {ALLOW}\n{ENDLESS}\n",
        f"{HEAD}{ENDLESS} // corollary: allow C0701\n",
        f'{HEAD}.decl s(x: symbol)\n.output s\ns("{ALLOW}").\n{ENDLESS}\n',
        f"{HEAD}/* {ALLOW} */ {ENDLESS}\n",
        f"// see corollary: allow C0706\n{HEAD}{ENDLESS}\n",
    ],
)
def test_not_accepted(text: str) -> None:
    assert codes(text) == ["C0706"]


def test_errors_are_never_accepted() -> None:
    assert codes("// corollary: allow C0201\n.decl p(x: number)\np(x) :- q(x).\n.output p\n") == [
        "C0201"
    ]


def test_a_file_speaks_for_itself() -> None:
    one = parse(SourceFile("one.dl", f"{ALLOW}\n{HEAD}"))
    two = parse(SourceFile("two.dl", ENDLESS))
    assert [each.code for each in diagnose(one + two)] == ["C0706"]
