"""Cures on the command line: what a note says to do is done, and the command succeeds.

Cures of programs are tried in `tests/cases/test_cures.py`. A new code gets a case here, or a line
in `untried_cures.txt`, which `COROLLARY_ACCEPT=1` writes anew.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.command_line import OK, cli, put
from support.diagnostic_codes import codes_in

NETWORK = """\
.decl edge(x: symbol, y: symbol)
.input edge
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
lost(x) :- -edge(x, _).
.alert lost "{x}"
.output link
"""
SHARE = ".decl s(t: number, n: number)\ns(3, 0).\n.decl r(x: number) .output r\nr(t / n) :- s(t, n)"
LATE = (
    ".decl o(d: date)\n.input o\n.decl late(d: date) .output late\nlate(d) :- o(d), d < today().\n"
)
KEYED = ".decl k(id: number, v: number) key(id)\n.input k\n.output k\n"
FILES = {
    "net.dl": NETWORK,
    "late.dl": LATE,
    "share.dl": f"{SHARE}.\n",
    "keyed.dl": KEYED,
    "number.dl": ".decl n(x: number) .input n\n.output n\n",
    "facts/edge.facts": "a\tb\nb\tc\n",
    "facts/o.facts": "2026-11-15\n",
    "facts/n.facts": "two\n",
    "facts/k.facts": "1\t1\n",
    "short/k.facts": "1\n",
    "second.csv": "1,2\n",
    "day.csv": "2026-11-17\n",
    "rule.jsonl": '{"op": "remove-rule", "rule": "link(x, y) :- edge(y, x)."}\n',
    "tab.dl": '.decl t(x: symbol) .output t\nt("a\\tb").\n',
    "more.csv": "c,d\n",
    "more.txt": "c,d\n",
    "new.dl": NETWORK + ".decl q(x: number)\nq(1).\n",
}
WAREHOUSE = ("run net.dl -F facts --warehouse wh --engine local",)


@dataclass(frozen=True)
class Cure:
    """A command that fails with a code, a part of its note, and what helps.

    Attributes:
        before: commands that come first.
        mended: the files that are written, None for one that is removed.
        helps: the command that succeeds then; the same one if it is not given.
    """

    code: str
    command: str
    note: str
    mended: Mapping[str, str | None] = field(default_factory=dict)
    helps: str = ""
    before: tuple[str, ...] = ()


CURES = [
    Cure("C0801", "run number.dl -F facts", "", {"facts/n.facts": "2\n"}),
    Cure("C0802", "run keyed.dl -F short", "", {"short/k.facts": "1\t2\n"}),
    Cure("C0804", "run net.dl -F nowhere", "", helps="run net.dl -F facts"),
    Cure(
        "C0805",
        "run net.dl -F facts --root other",
        "--root",
        helps="run net.dl -F facts --root .",
    ),
    Cure(
        "C0807",
        "run tab.dl",
        "rfc4180=true",
        {"tab.dl": '.decl t(x: symbol) .output t(rfc4180=true)\nt("a\\tb").\n'},
    ),
    Cure("C0810", "run share.dl", "add a condition", {"share.dl": f"{SHARE}, n != 0.\n"}),
    Cure(
        "C0820",
        'trace net.dl -F facts --remove \'edge("a", "b")\' --algorithm counting',
        "`ranked`",
        helps='trace net.dl -F facts --remove \'edge("a", "b")\' --algorithm ranked',
    ),
    Cure("C0902", "query wh 'lost(x)'", "derived relation", helps="query wh 'link(x, y)'"),
    Cure("C0903", "query wh 'link@old(x, y)'", "leave out `@old`", helps="query wh 'link(x, y)'"),
    Cure(
        "C0903",
        "query wh 'edge(x, y), -edge(x, y)'",
        "leave out `-`",
        helps="query wh 'edge(x, y)'",
    ),
    Cure(
        "C0904",
        "query wh \"select y from link where x = 'a' and y <> 'b'\"",
        "`link(x, y)`",
        helps='query wh \'link(x, y), x = "a", y != "b"\'',
    ),
    Cure(
        "C0905",
        'query wh \'link("a", y) ; link(z, "a")\'',
        "write `_`",
        helps='query wh \'link("a", _) ; link(_, "a")\'',
    ),
    Cure(
        "C0906",
        "query wh 'link(x, y)' --order z",
        "`x`, `y`",
        helps="query wh 'link(x, y)' --order y",
    ),
    Cure(
        "C0908",
        "run late.dl -F facts",
        "--today 2026-11-16",
        helps="run late.dl -F facts --today 2026-11-16",
    ),
    Cure(
        "C0909",
        "apply late --insert corollary.today=day.csv",
        "--today 2026-11-16",
        {"day.csv": "2026-11-17\n"},
        "apply late --today 2026-11-16 --engine local",
        ("run late.dl -F facts --warehouse late --today 2026-11-15 --engine local",),
    ),
    Cure(
        "C0911",
        "apply wh --engine local --changes rule.jsonl",
        "its rules are `link(x, y) :- edge(x, y).`",
        {"rule.jsonl": '{"op": "remove-rule", "rule": "link(x, y) :- edge(x, y)."}\n'},
    ),
    Cure(
        "C0915",
        "apply wh --insert link=more.csv",
        "relations it is derived from",
        helps="apply wh --insert edge=more.csv --engine local",
    ),
    Cure(
        "C0916",
        "apply wh --insert egde=more.csv",
        "`edge`",
        helps="apply wh --insert edge=more.csv --engine local",
    ),
    Cure(
        "C0917",
        "run net.dl -F facts --warehouse w2 --relation edge=epf --engine local",
        "has rules",
        helps="run net.dl -F facts --warehouse w2 --relation link=epf --engine local",
    ),
    Cure(
        "C0919",
        "trace net.dl -F facts --add 'edge(x, y) :- edge(y, x)'",
        'edge("a", "b")',
        helps='trace net.dl -F facts --add \'edge("a", "b")\'',
    ),
    Cure(
        "C0930",
        "status nowhere",
        "corollary run PROGRAM --warehouse DIR",
        helps="run net.dl -F facts --warehouse nowhere --engine local",
    ),
    Cure(
        "C0936",
        "query wh 'link(x, y)' --at 9",
        "commits 1 to 1",
        helps="query wh 'link(x, y)' --at 1",
    ),
    Cure(
        "C0937",
        "apply keyed --insert k=second.csv",
        "",
        {"second.csv": "2,2\n"},
        "apply keyed --insert k=second.csv --engine local",
        ("run keyed.dl -F facts --warehouse keyed --engine local",),
    ),
    Cure(
        "C0972",
        "apply wh --insert edge=more.txt",
        ".csv",
        helps="apply wh --insert edge=more.csv --engine local",
    ),
    Cure(
        "C0973",
        "export wh link --to more.csv",
        "--force",
        helps="export wh link --to more.csv --force",
    ),
    Cure(
        "C1040",
        "query wh 'link(x, y)' --as alice",
        "corollary grant W alice link",
        helps="grant wh alice link",
    ),
    Cure("C1043", "grant wh alice lnik", "`link`", helps="grant wh alice link"),
    Cure("C1100", "advise net.dl --query edge", "", helps="advise net.dl --query link"),
    Cure("C1101", "advise net.dl --query link^b", "link^bf", helps="advise net.dl --query link^bf"),
]


def run(command: str) -> tuple[int, str]:
    result = cli(*shlex.split(command))
    return result.exit_code, result.stdout + result.stderr


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: f"{cure.code}-{cure.note[:16]}")
def test_cures(cure: Cure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        put(name, text)
    needs_warehouse = " wh" in f"{cure.command} {cure.helps}"
    for command in (*(WAREHOUSE if needs_warehouse else ()), *cure.before):
        status, said = run(command)
        assert status == OK, said
    status, said = run(cure.command)
    assert status != OK, said
    assert cure.code in said
    note = "\n".join(line for line in said.splitlines() if line.startswith("  = "))
    assert cure.note in note, said
    for name, text in cure.mended.items():
        put(name, text or "")
    status, said = run(cure.helps or cure.command)
    assert status == OK, said


UNTRIED = Path(__file__).with_name("untried_cures.txt")
"""The codes of data, databases, warehouses, alerts, advice and documents whose cures are not tried
here yet; many of them have tests of their own."""


def test_codes_whose_cures_are_not_tried() -> None:
    tried = {cure.code for cure in CURES}
    left = codes_in(".") - codes_in("frontends", "analysis") - tried
    if os.environ.get("COROLLARY_ACCEPT"):
        UNTRIED.write_text("\n".join(sorted(left)) + "\n", "utf-8")
    assert left == set(UNTRIED.read_text("utf-8").split())
