"""Fields that join records with other literals: which of them become columns."""

import pytest

import corollary
from corollary.core.printer import print_rule
from corollary.database.database import state_of

TEXT = """
.type Pair = [a: number, b: number]
.decl rec(r: Pair, k: number)
.decl p(a: number, k: number)
.decl out(k: number)
"""


def opened(rule: str) -> corollary.Database:
    db = corollary.open(None, engine="local")
    db.load(text=TEXT + rule)
    return db


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("out(k) :- rec([a, _], k), p(a, _).", "out(k) :- rec.fields1(_1, k, a), p(a, _)."),
        # Joined by a variable, by a whole record, or inside of its own recursion.
        ("out(k) :- rec([a, _], k), p(a, k).", "out(k) :- rec(_1, k), p(a, k), a = _1.a."),
        (
            "out(k) :- rec([a, b], k), p(a, b).",
            "out(k) :- rec(_1, k), p(a, b), a = _1.a, b = _1.b.",
        ),
        (
            "rec(r, k + 1) :- rec(r, k), r = [a, _], p(a, _), k < 3.",
            "rec(r, _1) :- rec(r, k), p(a, _), a = r.a, k < 3, _1 = k + 1.",
        ),
    ],
)
def test_which_fields_become_columns(rule: str, expected: str) -> None:
    program = state_of(opened(rule)).loaded.normal
    assert print_rule(program.rules[0]) == expected
