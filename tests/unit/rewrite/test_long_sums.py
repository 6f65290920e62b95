"""Sums of thousands of terms: they are long, not nested, from the text to the values."""

import pytest

from corollary import Database
from corollary.core.logic import Functor, variables_of
from corollary.core.printer import print_clause
from corollary.errors import CorollaryError
from corollary.frontends.datalog import parse_clause
from support.maintained_database import delete, insert, opened

TERMS = 1_200
"""More than Python calls into itself."""


def chain(operators: str, *terms: str) -> str:
    """Return a left-deep chain that repeats operators and terms."""
    parts = [terms[0]]
    for at in range(1, TERMS):
        parts += [operators[at % len(operators)], terms[at % len(terms)]]
    return " ".join(parts)


PROGRAM = f"""\
.decl base(x: number, v: number?)
.decl total(x: number, t: number)
total(x, {chain("+", "x")}) :- base(x, _).
.decl nullable(x: number, t: number?)
nullable(x, {chain("+", "v", "x")}) :- base(x, v).
.decl mixed(x: number)
mixed(x) :- base(x, _), {chain("+-", "x")} = {chain("-+", "2 * x", "x")}.
.decl sums(t: number)
sums(t) :- t = sum {chain("+", "x")} : {{ base(x, _) }}.
"""


def rows(db: Database, relation: str) -> list[tuple[object, ...]]:
    return sorted(db.relation(relation).rows(), key=str)


@pytest.mark.long
def test_the_values_of_long_sums_are_maintained() -> None:
    """An overflow in the middle is an error, after which all is as before."""
    with opened(PROGRAM) as db:
        with pytest.raises(CorollaryError, match="C0810"):
            insert(db, "base", [(2**62, 1)])
        assert rows(db, "total") == []
        insert(db, "base", [(1, None), (2, 5), (4, 0)])
        assert rows(db, "total") == [(1, TERMS), (2, 2 * TERMS), (4, 4 * TERMS)]
        assert rows(db, "nullable") == [(1, None), (2, 7 * TERMS // 2), (4, 2 * TERMS)]
        assert rows(db, "sums") == [(7 * TERMS,)]
        delete(db, "base", [(4, 0)])
        assert rows(db, "total") == [(1, TERMS), (2, 2 * TERMS)]
        assert rows(db, "sums") == [(3 * TERMS,)]


def test_long_sums_are_printed_read_and_compared() -> None:
    text = f"p({chain('+-', 'x')}) :- q(x)."
    clause = parse_clause(text)
    assert print_clause(clause) == text
    again = parse_clause(print_clause(clause))
    assert again == clause
    assert hash(again) == hash(clause)
    (one,) = clause.heads[0].arguments
    (other,) = parse_clause(f"p({chain('-+', 'x')}) :- q(x).").heads[0].arguments
    assert isinstance(one, Functor)
    assert one != other
    assert len(list(variables_of(one))) == TERMS
