"""Which function answers which request."""

from collections.abc import Callable
from typing import Any

from corollary.serve import requests
from corollary.serve.answers import Answer
from corollary.serve.handlers import history, questions, relations, writes
from corollary.serve.handlers.context import HandlerContext, refuse_below
from corollary.serve.handlers.failures import service_error
from corollary.serve.principals import Principal

HANDLERS: dict[type[requests.Request], Callable[[HandlerContext, Principal, Any], Answer]] = {
    requests.QueryRequest: questions.answer_query,
    requests.SqlRequest: questions.answer_sql,
    requests.RelationsRequest: relations.answer_relations,
    requests.RelationRowsRequest: questions.answer_relation_rows,
    requests.ApplyRequest: writes.answer_apply,
    requests.CommitsRequest: history.answer_commits,
    requests.CommitRequest: history.answer_commit,
    requests.ChangesRequest: history.answer_changes,
}


def handle(context: HandlerContext, who: Principal, request: requests.Request) -> Answer:
    """Answer a request.

    Raises:
        ServiceError: it has no answer.
    """
    try:
        refuse_below(who, request.role, f"ask for `{requests.request_kind(type(request))}`")
        return HANDLERS[type(request)](context, who, request)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
        raise service_error(error) from None
