"""Which changes matter to a query that is followed, and how often its answer is asked for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pyarrow as pa
import pytest

from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.serve.answers import Answer, Event
from corollary.serve.postgres.followed_queries import (
    FollowedAnswers,
    FollowedQuery,
    analyse_query,
)
from corollary.serve.postgres.parameters import ParameterValue
from corollary.serve.postgres.prepared import prepare_statement
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.postgres.statements import SubscribeStatement, read_statements
from corollary.serve.postgres.translation import TranslatedStatement
from corollary.serve.requests import Request
from corollary.serve.service import Service

COLUMNS = [
    {"name": "Src", "type": "symbol"},
    {"name": "n", "type": "number?"},
    {"name": "f", "type": "float"},
]
RELATIONS = VisibleRelations.of_json(
    {
        "relations": [
            {"name": name, "columns": COLUMNS, "kind": "base", "tuples": 4} for name in ("T", "u")
        ]
    }
)


def analyse(query: str, values: tuple[ParameterValue, ...] = ()) -> FollowedQuery:
    (statement,) = read_statements(f"SUBSCRIBE ({query})")
    assert isinstance(statement, SubscribeStatement)
    tree = prepare_statement(statement, (), RELATIONS).tree
    assert tree is not None
    return analyse_query(tree, values, RELATIONS)


@pytest.mark.parametrize(
    ("query", "values", "reads", "positions"),
    [
        ("SELECT * FROM t", (), {"t": [()]}, (0, 1, 2)),
        ("SELECT n, x.src AS a FROM t AS x WHERE 'a' = x.src", (), {"t": [((0, "a"),)]}, (1, 0)),
        ("SELECT * FROM t WHERE (n = $1 AND src = $2)", (5, "a"), {"t": [((1, 5), (0, "a"))]},
         (0, 1, 2)),
        # No rows of the relation by themselves, but of those with the value alone.
        ("SELECT DISTINCT n FROM t WHERE src = 'a'", (), {"t": [((0, "a"),)]}, ()),
        ("SELECT n FROM t WHERE src = 'a' AND n > 3", (), {"t": [((0, "a"),)]}, ()),
        ("SELECT n FROM t WHERE src = 'a' ORDER BY n LIMIT 1", (), {"t": [((0, "a"),)]}, ()),
        ("SELECT sum(n) FROM t WHERE src = 'a' GROUP BY f", (), {"t": [((0, "a"),)]}, ()),
        ("SELECT n FROM t WHERE src = 'a' UNION ALL SELECT n FROM t WHERE src = 'b'", (),
         {"t": [((0, "a"),), ((0, "b"),)]}, ()),
        ("WITH w AS (SELECT n FROM t WHERE src = 'a') SELECT w.n FROM w, u WHERE u.src = 'b'", (),
         {"t": [((0, "a"),)], "u": [((0, "b"),)]}, ()),
        ("SELECT t.n FROM t LEFT JOIN u ON u.n = t.n WHERE t.src = 'a'", (),
         {"t": [((0, "a"),)], "u": [()]}, ()),
        ("SELECT n FROM t WHERE src = 'a' AND EXISTS (SELECT 1 FROM t AS o WHERE o.n = t.n)", (),
         {"t": [(), ((0, "a"),)]}, ()),
        # What is no such condition.
        ("SELECT n FROM t WHERE src = 'a' OR n = 3", (), {"t": [()]}, ()),
        ("SELECT n FROM t WHERE NOT src = 'a'", (), {"t": [()]}, ()),
        ("SELECT n FROM t WHERE f = 1.5", (), {"t": [()]}, ()),
        ("SELECT n FROM t WHERE src = upper('a')", (), {"t": [()]}, ()),
        ("SELECT t.n FROM t, u WHERE t.src = u.src", (), {"t": [()], "u": [()]}, ()),
        ("SELECT n + 1 FROM t", (), {"t": [()]}, ()),
        ("SELECT n, n FROM t", (), {"t": [()]}, ()),
    ],
)  # fmt: skip
def test_what_matters_to_a_query(
    query: str,
    values: tuple[ParameterValue, ...],
    reads: dict[str, Any],
    positions: tuple[int, ...],
) -> None:
    found = analyse(query, values)
    assert found.reads == reads
    assert found.positions == positions
    assert (found.relation is not None) == bool(positions)


def change(relation: str, added: list[list[Any]], removed: list[list[Any]]) -> Event:
    return Event.of("change", {"relation": relation, "added": added, "removed": removed})


def test_the_rows_of_a_change_that_matter() -> None:
    events = [
        change("T", [["a", 1, 0.5], ["b", 1, 0.5], ["a", 2, 0.5]], [["a", None, 0.5]]),
        change("u", [["x", 1, 0.5]], []),
    ]
    rows = analyse("SELECT f, n FROM t WHERE src = 'a'")
    assert rows.is_affected(events[:1])
    assert rows.changed_rows(events[:1], "added") == [[0.5, 1], [0.5, 2]]
    assert rows.changed_rows(events[:1], "removed") == [[0.5, None]]
    assert not analyse("SELECT * FROM t WHERE src = 'a' AND n = 3").is_affected(events[:1])
    joined = analyse("SELECT t.n FROM t JOIN u ON u.n = t.n WHERE t.src = 'z' AND u.src = 'x'")
    assert not joined.is_affected(events[:1])
    assert joined.is_affected(events)


class SlowService:
    """Answers with a row, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int | None]] = []
        self.running = self.most = 0

    async def call(self, who: Principal, request: Request) -> Answer:
        sql, at = getattr(request, "sql", ""), getattr(request, "at", None)
        self.asked.append((who.name, sql, at))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        return Answer(at or 0, table=pa.table({"n": [at]}))


def test_an_answer_is_asked_for_once_for_all_who_follow_a_query() -> None:
    async def follow() -> SlowService:
        service = SlowService()
        answers = FollowedAnswers(cast("Service", service))
        one = TranslatedStatement("one", {"p1": 1})
        kept = []
        for commit in (1, 2):
            asking = [answers.at(OWNER, one, commit) for _ in range(50)]
            asking.append(answers.at(Principal("writer", AccessRole.WRITE), one, commit))
            kept.append(await asyncio.gather(*asking))
        before, after = kept
        assert len({id(each) for each in after}) == 1
        first, again = (after[at].since(before[at], "diff") for at in (0, 1))
        assert first is again
        assert first.to_pylist() == [{"n": 1, "diff": -1}, {"n": 2, "diff": 1}]
        await answers.at(OWNER, one, 2, is_shared=False)
        for name in ("ann", "bob"):  # what they may see is not the same
            await answers.at(Principal(name, AccessRole.READ), one, 2)
        several = [TranslatedStatement("several", {"p1": at}) for at in range(50)]
        await asyncio.gather(*(answers.at(OWNER, each, 2) for each in several))
        return service

    service = asyncio.run(follow())
    owner = OWNER.name
    assert service.asked[:3] == [(owner, "one", 1), (owner, "one", 2), (owner, "one", 2)]
    assert service.asked[3:5] == [("ann", "one", 2), ("bob", "one", 2)]
    assert len(service.asked) == 5 + 50
    assert service.most <= 8, "a token has other requests, too"
