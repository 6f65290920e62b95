"""Aggregates of all values of a group in the rule language, under changes; worked out by hand."""

import pytest

import corollary
from corollary.errors import InputError

TEXT = """
.decl p(k: symbol, i: number, x: float?, s: symbol?)
.decl v(k: symbol, a: float, m: float)
v(k, a, m) :- p(k, _, _, _), a = var_pop(x) : { p(k, _, x, _) },
    m = percentile_cont(x, 0.5, false) : { p(k, _, x, _) }.
.decl w(k: symbol, b: symbol?)
w(k, b) :- p(k, _, _, _), b is max_by(i, s) : { p(k, i, _, s) }.
.decl texts(t: symbol)
texts(t) :- t = listagg(s, i, "-", true) : { p(_, i, _, s) }.
"""


def test_groups_of_nulls_have_no_value_unless_asked_for_with_is() -> None:
    with corollary.open(None, engine="local") as database:
        database.load(text=TEXT)
        with database.transaction() as change:
            change.insert("p", [("a", 1, 1.0, "x"), ("a", 2, 4.0, None), ("b", 3, None, "y")])
        assert database.relation("v").rows() == [("a", 2.25, 2.5)]
        assert sorted(database.relation("w").rows()) == [("a", None), ("b", "y")]
        assert database.relation("texts").rows() == [("y-x",)]
        with database.transaction() as change:
            change.insert("p", [("b", 4, 3.0, "z"), ("a", 5, 4.0, "x")])
        assert sorted(database.relation("v").rows()) == [("a", 2.0, 4.0), ("b", 0.0, 3.0)]
        assert sorted(database.relation("w").rows()) == [("a", "x"), ("b", "z")]
        assert database.relation("texts").rows() == [("x-z-y-x",)]


def test_a_percentile_lies_on_the_way_from_one_value_to_the_next() -> None:
    query = """
        SELECT percentile_cont(0.1) WITHIN GROUP (ORDER BY x DESC) AS high,
            percentile(x, array(0.25, 0.5)) AS low,
            percentile(x, array(0.5)) FILTER (WHERE x > 9) AS none
        FROM VALUES (1), (2), (3) AS t(x)"""
    with corollary.open(None, engine="local") as database:
        assert database.sql(query).rows() == [(2.8, (1.5, 2.0), None)]  # 3 + 0.2 * (2 - 3)


@pytest.mark.parametrize("call", ["corr(x)", "mode(x)", "var_pop(x, x, x)"])
def test_arguments_are_counted(call: str) -> None:
    text = f".decl p(x: float)\n.decl q(y: float)\nq(y) :- y = {call} : {{ p(x) }}."
    with corollary.open(None, engine="local") as database, pytest.raises(InputError, match="C0101"):
        database.load(text=text)


def test_a_relation_may_have_the_name_of_an_aggregate() -> None:
    with corollary.open(None, engine="local") as database:
        database.load(text=".decl mode(x: number)\n.decl q(x: number)\nmode(1). q(x) :- mode(x).")
        assert database.relation("q").rows() == [(1,)]
