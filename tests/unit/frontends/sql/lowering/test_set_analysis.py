"""Which queries are sets, by which keys; and what determines what."""

import pytest

from corollary.frontends.sql.lowering.set_analysis import Dependencies
from support.sql_views import lowered_view

SETS = {
    "SELECT k, a FROM t": [{0}],
    "SELECT k + 1, a FROM t": [{0}],
    "SELECT a FROM t WHERE k = 3": [set()],
    "SELECT t.a, u.k FROM t JOIN t u ON t.a = u.k": None,
    "SELECT t.k, u.a FROM t JOIN t u ON t.a = u.k": [{0}],
    "SELECT p.y, p.z FROM p JOIN t ON p.x = t.k WHERE t.k = 1": [{0}],
    "SELECT t.k, e.dst FROM t LEFT JOIN e ON t.k = e.src AND e.dst = 2": [{0}],
    "SELECT e.dst FROM t LEFT JOIN e ON t.k = e.src WHERE t.k = 1": [{0}],
    "SELECT t.k, q.k FROM t FULL JOIN t q ON t.a = q.a": [{0, 1}],
    "SELECT t.a FROM t FULL JOIN e ON t.k = e.src": None,
    "SELECT DISTINCT a, b FROM u": [{0, 1}],
    "SELECT a, max(b) FROM u GROUP BY a": [{0}],
    "SELECT max(b) FROM u": [set()],
    "SELECT max(b) FROM u GROUP BY a": None,
    "SELECT k FROM t INTERSECT SELECT a FROM u": [{0}],
    "SELECT k, a FROM t EXCEPT ALL SELECT a, b FROM u": [{0}],
    "SELECT a FROM u EXCEPT ALL SELECT k FROM t": None,
    "SELECT 1 AS one, k FROM t UNION ALL SELECT 2, k FROM t": [{0, 1}],
    "SELECT k FROM t UNION ALL SELECT k FROM t": None,
    "SELECT a FROM u": None,
    "SELECT t.k, (SELECT max(b) FROM u WHERE u.a = t.a) FROM t": [{0}],
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": [{0}],
}


@pytest.mark.parametrize(("query", "keys"), SETS.items())
def test_keys_of_queries(query: str, keys: list[set[int]] | None) -> None:
    view = lowered_view(query)
    assert view.is_bag == (keys is None)
    assert list(map(set, view.keys)) == (keys or [])


def test_dependencies_are_followed_to_the_end() -> None:
    known = Dependencies()
    known.add((), {"one"})
    known.add({"a", "one"}, {"b"})
    known.add({"b"}, {"c"})
    assert known.closure({"a"}) == {"a", "b", "c", "one"}
    assert not known.determines({"b"}, {"a"})


def test_keys_are_the_smallest_ones() -> None:
    known = Dependencies()
    known.add({"a"}, {"w"})
    known.add({"b", "c"}, {"w"})
    assert known.keys(["a", "b", "c"], set(), {"w"}) == [{0}, {1, 2}]
    assert known.keys(["a", "b"], {"c"}, {"w"}) == [{0}, {1}]
    assert known.keys(["b"], set(), {"w"}) == []
    assert known.keys(["b"], set(), set()) == [set()]
    known.add({"p", "q", "r", "s"}, {"x"})
    assert known.keys(["p", "q", "r", "s", "a"], set(), {"x"}) == [{0, 1, 2, 3}]
