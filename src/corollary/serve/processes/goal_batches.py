"""Batches of requests: waiting goals of one shape are answered by one run."""

from collections.abc import Iterator, Sequence

from corollary.database.access.principals import AccessRole, Principal
from corollary.database.changes import json_rows
from corollary.database.reading.reader import Reader
from corollary.database.reading.shape_plans import GoalPlans, SimpleGoal, parse_simple_goal
from corollary.errors import CorollaryError, LimitError
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.cursors import Cursor
from corollary.serve.handlers.dispatch import handle
from corollary.serve.handlers.failures import service_error
from corollary.serve.requests import JSON_MAX_ROWS, QueryRequest, Request

AT_ONCE_MAX_ROWS = 20_000
"""The answers to a batch are decoded at once up to this number, and else goal by goal."""

Asked = tuple[int, Principal, Request]
Found = tuple[int, Answer | ServiceError]


def answer_batch(context: HandlerContext, requests: Sequence[Asked]) -> Iterator[Found]:
    """Answer some requests on one state; yield for each its number and its answer, goals first."""
    with context.pinned():
        yield from _answer_pinned(context, requests)


def _answer_pinned(context: HandlerContext, requests: Sequence[Asked]) -> Iterator[Found]:
    others: list[Asked] = []
    goals: dict[object, list[tuple[int, QueryRequest, SimpleGoal]]] = {}
    granted: dict[str, frozenset[str]] = {}
    by_number = {each[0]: each for each in requests}
    for number, who, request in requests:
        goal = None
        if isinstance(request, QueryRequest) and _is_plain(context, request):
            goal = parse_simple_goal(request.goal)
            if goal is not None and who.role is AccessRole.READ:
                if who.name not in granted:
                    view = context.view(who)[0]
                    granted[who.name] = view.granted if isinstance(view, Reader) else frozenset()
                goal = goal if goal.shape[0] in granted[who.name] else None
            if goal is not None:
                assert isinstance(request, QueryRequest)
                goals.setdefault(goal.shape, []).append((number, request, goal))
                continue
        others.append((number, who, request))
    for group in goals.values():
        found = _answer_goals(context, group)
        if found is None:
            others += [by_number[number] for number, _, _ in group]
        else:
            yield from found
    for number, who, request in others:
        try:
            yield number, handle(context, who, request)
        except ServiceError as error:
            yield number, error


def _is_plain(context: HandlerContext, request: QueryRequest) -> bool:
    """Return whether a goal asks for the first page of its answers of now, as JSON."""
    is_seen = request.min_commit is None or request.min_commit <= context.commit
    return (
        is_seen
        and request.at is None
        and request.cursor is None
        and not request.order
        and not request.arrow
        and (request.limit is None or request.limit >= 0)
    )


def _answer_goals(
    context: HandlerContext, group: Sequence[tuple[int, QueryRequest, SimpleGoal]]
) -> list[Found] | None:
    """Answer goals of one shape; None if each has to be answered for itself.

    An error is one of those: it has to reach who has caused it, and nobody else. Goals that are in
    a hurry have no time for that: they are all told that it is over.
    """
    plans: GoalPlans = context.goal_plans
    try:
        found = plans.answer([goal for _, _, goal in group], group[0][1].goal)
    except CorollaryError as error:
        if context.is_hurried and isinstance(error, LimitError):
            return [(number, service_error(error)) for number, _, _ in group]
        return None
    if found is None:
        return None
    shape, table, starts = found
    columns, commit = list(shape.columns), context.commit
    decoded = None
    if table.num_rows <= AT_ONCE_MAX_ROWS:
        decoded = json_rows(table, shape, is_sorted=True)
    answers: list[Found] = []
    for (number, request, _), first, end in zip(group, starts, starts[1:], strict=False):
        count = JSON_MAX_ROWS if request.limit is None else min(request.limit, JSON_MAX_ROWS)
        last = min(end, first + count)
        if not columns:
            rows: list[list[object]] = [[]] * (end - first)
        elif decoded is not None:
            rows = decoded[first:last]
        else:
            rows = json_rows(table.slice(first, last - first), shape, is_sorted=True)
        cursor = Cursor(commit, count).encode(request) if last < end and columns else None
        document = {"columns": columns, "rows": rows, "commit": commit, "cursor": cursor}
        answers.append((number, Answer.of(commit, document)))
    return answers
