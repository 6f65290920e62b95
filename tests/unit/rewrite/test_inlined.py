"""Which bodies of aggregates are read through their rule, and what is computed of them then."""

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.database.program.loaded_program import load_program
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

BASE = """\
.decl t(k: number, a: number, c: number) key(k)
.decl u(a: number, b: number)
.decl h(a: number, n: number)
h(a, n) :- each(a, _, _), n = sum b : { each(a, _, b) }.
"""
EACH = ".decl each(a: number, k: number, b: number)"
BODIES = {
    f"{EACH} virtual\neach(a, k, b) :- t(k, a, _), u(a, b).": True,
    f"{EACH} virtual\neach(a, 1, b) :- t(1, a, _), u(a, b).": True,
    f"{EACH}\neach(a, k, b) :- t(k, a, _), u(a, b).": False,
    f"{EACH} virtual\neach(a, c, b) :- t(_, a, c), u(a, b).": False,
    f"{EACH} virtual\neach(a, k, b) :- t(k, a, _), u(a, b) ; t(k, b, a).": False,
}


@pytest.mark.parametrize(("body", "is_inlined"), BODIES.items())
def test_bodies(body: str, is_inlined: bool) -> None:
    program = load_program(parse(SourceFile("test", BASE + body))).normal
    assert program.relations["each"].is_inlined is is_inlined
    assert program.relations["each"].is_virtual is ("virtual" in body)


def test_the_change_of_an_inlined_body_is_found_for_those_who_read_it() -> None:
    db = corollary.open(None, engine="local")
    body = next(iter(BODIES))
    db.load(text=f"{BASE}{body}\n.decl seen(k: number)\nseen(k) :- each(_, k, b), b > 3.")
    with db.transaction() as tx:
        tx.insert("t", [(1, 1, 0), (2, 1, 0), (3, 2, 0)])
        tx.insert("u", [(1, 5), (1, 2), (2, 3)])
    assert sorted(db.relation("h").rows()) == [(1, 14), (2, 3)]
    with db.transaction() as tx:
        tx.delete("t", [(1, 1, 0)])
        tx.insert("t", [(1, 2, 7)])
        tx.insert("u", [(2, 4)])
    assert sorted(db.relation("h").rows()) == [(1, 7), (2, 14)]
    assert sorted(db.relation("seen").rows()) == [(1,), (2,), (3,)]
    with db.transaction() as tx:
        tx.delete("u", [(2, 4)])
    assert sorted(to_python(tx.changes["seen"].removed)) == [(1,), (3,)]
    assert sorted(db.relation("h").rows()) == [(1, 7), (2, 6)]
