"""Goals of one shape, answered by one run: the same answers and errors as one by one."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import OWNER, Principal
from corollary.database.reading.shape_plans import parse_simple_goal
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.dispatch import handle
from corollary.serve.processes.goal_batches import answer_batch
from corollary.serve.requests import QueryRequest, SqlRequest
from corollary.serve.service import ServiceLimits
from support.serve.services import READER, make_warehouse

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl both(x: symbol, y: symbol) virtual
both(x, y) :- path(x, y), path(y, x).
.decl age(who: symbol, years: number, weight: float)
.decl share(who: symbol, part: number) virtual
share(who, 100 / years) :- age(who, years, _).
.decl flag(x: symbol, ok: bool)
"""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[HandlerContext]:
    place = make_warehouse(tmp_path / "w", PROGRAM)
    database = corollary.open(place, engine="local")
    chance = random.Random(5)
    with database.transaction() as transaction:
        edges = {tuple(chance.choices("abcdefgh", k=2)) for _ in range(14)}
        transaction.insert("edge", sorted(edges))
        transaction.insert("age", [("ann", 4, 1.5), ("bob", 0, 2.5), ("cy", -5, 0.5)])
        transaction.insert("flag", [("a", True), ("b", False)])
    found = HandlerContext(database, ServiceLimits())
    with found.acting_as(OWNER):
        yield found
    found.close()


def one_by_one(context: HandlerContext, who: Principal, request: QueryRequest) -> object:
    try:
        return handle(context, who, request).body
    except ServiceError as error:
        return error.as_json()


def body(found: Answer | ServiceError) -> object:
    return found.body if isinstance(found, Answer) else found.as_json()


def compare(context: HandlerContext, goals: list[str], who: Principal = OWNER) -> None:
    requests = [(number, who, QueryRequest(goal)) for number, goal in enumerate(goals)]
    found = {number: body(each) for number, each in answer_batch(context, requests)}
    assert found == {number: one_by_one(context, who, each) for number, _, each in requests}


@pytest.mark.parametrize("relation", ["edge", "path", "both"])
def test_batches_answer_as_single_goals_do(context: HandlerContext, relation: str) -> None:
    letters = "abcdefghz"
    for who in (OWNER, READER):
        compare(context, [f'{relation}("{each}", y)' for each in letters], who)
        compare(context, [f'{relation}(x, "{each}")' for each in letters], who)
        compare(context, [f'{relation}("{each}", "b")' for each in letters], who)
        compare(context, [f'{relation}("{each}", _)' for each in letters], who)
    compare(context, [f"{relation}(x, y)", f"{relation}(x, x)", f"{relation}(_, _)"])


@pytest.mark.parametrize(
    "goal",
    [
        'path("a", y).',
        'path("a", y), y != "b"',
        'path("a"',
        'path("a", "b", "c")',
        "path(1, y)",
        'path("a\\"b", y)',
        'path("a\\\\", y)',
        'nosuch("a", y)',
        "age(x, 4, w)",
        "age(x, 4.0, w)",
        "age(x, y, 1.5)",
        "age(x, y, 1)",
        "age(x, -5, w)",
        "age(x, 0x4, w)",
        "age(x, 99999999999999999999, w)",
        "flag(x, true)",
        "flag(x, ok)",
        'path(count, "b")',
        "path (  x ,y )",
        "",
        "path()",
        'path("a", )',
        "SELECT x FROM path",
        'both("a", nil)',
    ],
)
def test_goals_that_are_not_what_they_look_like(context: HandlerContext, goal: str) -> None:
    compare(context, [goal, goal, 'path("b", y)'])
    compare(context, [goal, 'path("b", y)'], READER)


def test_an_error_reaches_its_sender_only(context: HandlerContext) -> None:
    """A rule that divides by zero for one of the goals."""
    compare(context, ['share("ann", n)', 'share("bob", n)', 'share("cy", n)'])
    context.database.grant("alice", "share")
    compare(context, ['share("ann", n)', 'share("bob", n)', 'share("cy", n)'], READER)


def test_plans_follow_data_and_program(context: HandlerContext) -> None:
    goals = [f'both("{each}", y)' for each in "abcde"]
    compare(context, goals)
    with context.database.transaction() as transaction:
        transaction.insert("edge", [("h", "a"), ("a", "h")])
    compare(context, goals)
    context.database.load(text=PROGRAM.replace("path(y, x)", "edge(y, x)"))
    compare(context, goals)
    gone = PROGRAM.partition(".decl both")[0] + PROGRAM.partition("path(y, x).")[2]
    context.database.load(text=gone)
    compare(context, goals)


def test_pages_of_a_batch(context: HandlerContext) -> None:
    requests = [(n, OWNER, QueryRequest("path(x, y)", limit=n)) for n in range(4)]
    found = dict(answer_batch(context, requests))
    for number, _, request in requests:
        answer = found[number]
        assert isinstance(answer, Answer)
        assert answer.body == handle(context, OWNER, request).body
        rest = QueryRequest("path(x, y)", cursor=answer.json["cursor"])
        whole = handle(context, OWNER, QueryRequest("path(x, y)")).json["rows"]
        assert answer.json["rows"] + handle(context, OWNER, rest).json["rows"] == whole


def test_symbols_of_any_kind(context: HandlerContext) -> None:
    names = ["é", "日本", "a b", "'", "%", "a,b", ")", "(", "_", "", "x\\"]
    with context.database.transaction() as transaction:
        transaction.insert("edge", [(each, f"to {each}") for each in names])
    goals = ['edge("' + each.replace("\\", "\\\\") + '", y)' for each in names]
    compare(context, goals)
    assert parse_simple_goal('edge("日本", y)') is not None


def test_plans_of_goals_and_of_questions_are_kept_apart() -> None:
    with closing(HandlerContext(corollary.open(None, engine="local"), ServiceLimits())) as context:
        with context.acting_as(OWNER):
            context.database.load(text=".decl p(x: number, y: number) p(1, 2). p(3, 2).")
        goal, question = (
            QueryRequest("p(1, y)"),
            SqlRequest("SELECT x, y, x + y FROM p WHERE y >= 2"),
        )
        for _ in range(3):
            asked = [(1, OWNER, goal), (2, OWNER, question)]
            found = {
                number: each.json["rows"]
                for number, each in answer_batch(context, asked)
                if isinstance(each, Answer)
            }
            assert found == {1: [[2]], 2: [[1, 2, 3], [3, 2, 5]]}
