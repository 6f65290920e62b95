"""Cures: what fails with a code, and what its note says to do, which helps.

A module for each kind: `commands`, `intake` (files, sources and guards), `upkeep`, `documents`, and
`calls` for Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
FUNCTOR = "import corollary\n\n\n@corollary.functor\ndef {}(x):\n    return x\n"
SQLITE = '.decl u(x: number)\n.output u(IO=sqlite, filename="s.db", name="{}")\nu(1).\n'
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
    "by_hand.dl": KEYED.replace(".input k\n", ""),
    "first.csv": "1,1\n",
    "second.csv": "1,2\n",
    "day.csv": "2026-11-17\n",
    "rule.jsonl": '{"op": "remove-rule", "rule": "link(x, y) :- edge(y, x)."}\n',
    "empty.dl": '.decl t(x: symbol?) .output t\nt("").\n',
    "tab.dl": '.decl t(x: symbol) .output t\nt("a\\tb").\n',
    "more.csv": "c,d\n",
    "cured.dl": ".functor cured(x: number): number\n.decl c(x: number) .output c\nc(@cured(1)).\n",
    "cured.py": FUNCTOR.format("cured"),
    "sqlite_out.dl": '.decl s(x: number) .output s(IO=sqlite, filename="s.db")\ns(1).\n',
    "sqlite_none.dl": '.decl t(x: number) .input t(IO=sqlite, filename="s.db")\n.output t\n',
    "sqlite_wide.dl": '.decl s(a: number, b: number)\n.input s(IO=sqlite, filename="s.db")\n',
    "sqlite_taken.dl": SQLITE.format("_s"),
    "plain.py": "def planned(x):\n    return x\n",
    "more.txt": "c,d\n",
    "bad.yaml": "cases: [\n",
    "key.yaml": "cases: [{name: a, than: {}}]\n",
    "row.yaml": "cases: [{name: a, given: {edge: [[a]]}, then: {}}]\n",
    "lone.test.yaml": "cases: [{name: a, then: {}}]\n",
    "new.dl": NETWORK + ".decl q(x: number)\nq(1).\n",
}
WAREHOUSE = ("run net.dl -F facts --warehouse wh --engine local",)


@dataclass(frozen=True)
class Cure:
    """A command that fails with a code, a part of its note, and what helps.

    Attributes:
        before: commands that come first.
        mended: the files that are written, None for one that is removed.
        helps: the commands that succeed then, with `&&` between them; by default the same one.
        is_warning: whether the command succeeds also before, with a warning that is gone then.
    """

    code: str
    command: str
    note: str
    mended: Mapping[str, str | None] = field(default_factory=dict)
    helps: str = ""
    before: tuple[str, ...] = ()
    is_warning: bool = False
